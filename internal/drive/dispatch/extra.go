package dispatch

import (
	"slices"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/drive/live"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/mount"
	"sallyport/internal/who/group"
)

// findExtra finds the folders of this machine that a session of a group is shown, and says in the log which it is not.
func findExtra(d *Dispatcher, g group.Group) []live.Mounted {
	all := d.Extra.Find(g.Runner.Wishes())
	for _, m := range all {
		if m.Refused != "" {
			d.Log.Warn("a folder that a group asks for is not shown", "group", g.Folder, "path", m.Path, "because", m.Refused)
		}
	}
	return all
}

// joined are the parts of what an agent is told once, with room between them.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "\n\n")
}

// mounts are those that are granted.
func mounts(all []live.Mounted) (shown []sandbox.Mount) {
	for _, m := range all {
		if m.Refused == "" {
			shown = append(shown, m.Shown)
		}
	}
	return shown
}

// tellExtra is what an agent is told of them. Why one is not shown is for people alone: it may name what lies beside.
func tellExtra(all []live.Mounted, of group.Folder) string {
	if len(all) == 0 {
		return ""
	}
	lines := []string{"Beside your own folder you see folders of your users' machine:"}
	for _, m := range all {
		line := "- " + sandbox.Extra + "/" + m.Name + ", " + mount.Mode(m.Shown.Writable)
		if m.Shown.Writable {
			line += ": what you change there is changed for them"
		}
		if m.Refused != "" {
			line = "- " + sandbox.Extra + "/" + m.Name + " is not shown in this session; a person sees why with: sallyport group show " + string(of)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// tellSkills is what an agent is told of its group's skills. No program of an agent looks for them where they are.
func tellSkills(all []group.Skill) string {
	if len(all) == 0 {
		return ""
	}
	lines := []string{"You have skills: files that say how something is done here. Before you do what one of them is for, read its file " +
		"to the end, by a command of your shell where your tools for files do not reach it:"}
	for _, s := range all {
		line := "- " + inert.Line(s.Name)
		if s.Description != "" {
			line += ": " + s.Description
		}
		lines = append(lines, line+" ("+inert.Path(SkillsFolder+"/"+s.Path)+")")
	}
	return strings.Join(lines, "\n")
}

// Where a session of a group finds what is its own, inside.
const (
	WorkFolder   = sandbox.Mountpoint + "/agent" // what it writes here stays
	RunnerFolder = "/app/src"
	SkillsFolder = "/app/skills"
)

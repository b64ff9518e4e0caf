package dispatch

import (
	"slices"
	"strings"

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

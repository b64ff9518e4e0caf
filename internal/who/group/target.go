package group

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
)

// Mapped is one path of the workspace of a group's change, and the path of the home that it stands for.
type Mapped struct {
	Path   string      `json:"path"`   // in the workspace
	Target string      `json:"target"` // in the home
	Class  right.Class `json:"class"`  // right.Group or right.Host
	Runs   bool        `json:"runs"`   // it is the group's runner or one of its skills
	Lossy  bool        `json:"lossy"`  // a migration, which a rollback may not undo without a loss (SM-068)
	Others bool        `json:"others"` // another group's data (SM-070)
	Rules  bool        `json:"rules"`  // the rules themselves change (SM-919)
}

// Relocated reports whether a path stands elsewhere in the home than in the workspace.
func (m Mapped) Relocated() bool { return m.Path != m.Target }

// rulesFiles say what may be done in a home.
var rulesFiles = []string{config.PolicyFile, config.SallyportFile, config.RepositoryFile}

// migrationsFolder holds what changes a database.
const migrationsFolder = "migrations"

const targetBytesMax = 4096 // PATH_MAX

// Target says what a path of the workspace of a group's change stands for (SM-061 to SM-074, SM-167). The class follows from where the
// path lies, and from nothing that anybody says. Backslashes separate, as slashes do.
//
// Errors: problem.Refused for a path that no change may have; all that was offered with it is refused (SM-073).
func Target(folder Folder, workspace string) (Mapped, error) {
	p := strings.ReplaceAll(workspace, `\`, "/")
	if why := folder.fault(p); why != "" {
		return Mapped{}, folder.refuseChange(workspace, why)
	}

	top, _, _ := strings.Cut(p, "/")
	m := Mapped{Path: p, Target: p, Class: right.Host, Lossy: look(top) == migrationsFolder, Rules: slices.Contains(rulesFiles, look(p))}
	own := folder.path()
	switch {
	case within(p, own):
		m.Class = right.Group
		m.Runs = within(p, own+"/"+runnerFolder) || within(p, own+"/"+skillsFolder)
	case within(p, groupsFolder):
		m.Others = isOthers(p)
	}
	for _, name := range overlaid {
		if in := templateFolder + "/" + name; within(p, in) {
			m.Target, m.Class, m.Runs = own+p[len(templateFolder):], right.Group, true
		}
	}
	if len(m.Target) > targetBytesMax {
		return Mapped{}, folder.refuseChange(workspace, "its path in the home is too long")
	}
	return m, nil
}

// refuseChange says why a path cannot be part of a change of the group.
func (f Folder) refuseChange(at, why string) error {
	return problem.Errorf(problem.Refused, f.show(), "%s cannot be part of a change of the group %s: %s", inert.Path(at), f, why)
}

// within reports whether p is a folder, or lies below it.
func within(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, folder+"/")
}

// isOthers reports whether a path below groups/ is data of some group. A file beside the folders is none.
func isOthers(p string) bool {
	parts := strings.SplitN(p, "/", 3)
	if len(parts) == 2 {
		_, err := ParseFolder(parts[1])
		return err == nil
	}
	return true // below another group, or in the place of all of them
}

// fault says why no change of a group may have a path; "" if one may.
func (f Folder) fault(p string) string {
	if why := policy.NameFault(p); why != "" {
		return why
	}
	parts := strings.Split(p, "/")
	for _, part := range parts {
		if name := hostsOwn(part); name != "" {
			return inert.Path(part) + " is a spelling of " + name + ", which no change has"
		}
	}

	var above string
	for _, part := range parts {
		var names []string // that a path's class and target follow from: another spelling of one must not be of another class
		switch above {
		case "":
			names = []string{groupsFolder, templateFolder}
		case groupsFolder:
			names = []string{string(f)}
		case templateFolder, f.path():
			names = overlaid
		}
		if name := look(part); name != part && slices.Contains(names, name) {
			return inert.Path(part) + " is another spelling of " + name
		}
		above = path.Join(above, part)
	}
	return ""
}

// hostsOwn returns what of the host's own some file system takes a name for; "" if none.
func hostsOwn(part string) string {
	name := look(part)
	if short, digits, ok := strings.Cut(name, "~"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
		name = "." + short // as NTFS names it too
	}
	switch {
	case name == ".state":
		return ".state"
	case name == ".env", strings.HasPrefix(name, ".env."):
		return ".env or .env.*"
	}
	return ""
}

// look is what a name looks like, or is taken for by some file system: without regard to case, to forms of a letter, and to what has no
// ink, and without what NTFS cuts at the end.
func look(part string) string {
	s := strings.Map(func(r rune) rune {
		if inert.Inkless(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(part))
	s, _, _ = strings.Cut(s, ":")
	return strings.TrimRight(s, ". ")
}

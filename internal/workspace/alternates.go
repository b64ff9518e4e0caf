package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sallyport/internal/git"
	"sallyport/internal/problem"
	"sallyport/internal/sandbox"
)

// ObjectsRoot is where object folders are seen inside a sandbox, as ObjectsRoot/0 and so on.
const ObjectsRoot = sandbox.ObjectsRoot

// objects returns every folder that holds objects of a project: its own first, then
// those that it borrows. A project that borrows is asked through git, as its owner,
// so that nothing comes into reach that they could not reach themselves.
func (m *Manager) objects(ctx context.Context, project git.Project) ([]string, error) {
	own := filepath.Join(project.CommonDir, "objects")
	if st, err := os.Stat(own); err != nil || !st.IsDir() {
		return nil, problem.Errorf(problem.Refused, "git -C "+strconv.Quote(project.Top)+" fsck", "%s is not a folder of objects", own)
	}
	found := []string{own}
	borrows, err := readPlain(filepath.Join(own, "info", "alternates"))
	if err != nil || len(borrows) == 0 {
		return found, err
	}
	out, err := project.Common(m.ops).Run(ctx, git.Cmd{Args: []string{"count-objects", "-v"}})
	if err != nil {
		return nil, fmt.Errorf("find the objects that %s borrows: %w", project.Top, err)
	}
	for line := range strings.Lines(string(out)) {
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "alternate: ")
		if !ok {
			continue
		}
		folder, err := unquote(text)
		if err != nil || !filepath.IsAbs(folder) {
			return nil, problem.Errorf(problem.Refused, "cat "+filepath.Join(own, "info", "alternates"), "%s borrows objects from %q, which is no absolute path", project.Top, text)
		}
		found = append(found, folder)
	}
	return found, nil
}

// unquote reads a path as git prints it: plain, or in double quotes with C escapes.
func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	return strconv.Unquote(s)
}

// alternateLine writes a path for objects/info/alternates.
func alternateLine(path string) string {
	if path != "" && path[0] != '"' && path[0] != '#' && !strings.ContainsAny(path, "\n\r\\") {
		return path + "\n"
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString("\"\n")
	return b.String()
}

// inside returns where object folder number i is seen in a sandbox.
func inside(i int) string { return ObjectsRoot + "/" + strconv.Itoa(i) }

// binds shows object folders inside a sandbox. All that a folder borrows is in the list
// already, and its own list names paths of the host: an empty file covers it.
func (m *Manager) binds(folders []string) []sandbox.Bind {
	var shown []sandbox.Bind
	for i, folder := range folders {
		shown = append(shown, sandbox.Bind{Source: folder, Target: inside(i)})
	}
	for i, folder := range folders {
		if st, err := os.Lstat(filepath.Join(folder, "info", "alternates")); err == nil && st.Mode().IsRegular() && st.Size() > 0 {
			shown = append(shown, sandbox.Bind{Source: m.empty(), Target: inside(i) + "/info/alternates"})
		}
	}
	return shown
}

// empty is a file with nothing in it.
func (m *Manager) empty() string { return filepath.Join(m.root, "empty") }

func (m *Manager) makeEmpty() error {
	if exists(m.empty()) {
		return nil
	}
	return m.ops.Do("workspace:empty", func() error {
		f, err := os.OpenFile(m.empty(), os.O_WRONLY|os.O_CREATE, 0o444)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Chmod(0o444) // whatever the umask
	})
}

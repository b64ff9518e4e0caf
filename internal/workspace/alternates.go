package workspace

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/git"
	"sallyport/internal/problem"
	"sallyport/internal/sandbox"
)

// ObjectsRoot is where object folders are seen inside a sandbox, as ObjectsRoot/0 and so on.
const ObjectsRoot = sandbox.ObjectsRoot

// objects returns every folder that holds objects of a project: its own first, then
// those that it borrows. A project that borrows is asked through git, as its owner.
//
// Each is shown in sandboxes as it is, so what is no folder of objects and nothing else
// is refused by name: a repository may come from a stranger, and its list of what it
// borrows can name a home folder or a socket's.
func (m *Manager) objects(ctx context.Context, project git.Project) ([]string, error) {
	named := []string{filepath.Join(project.CommonDir, "objects")}
	list := filepath.Join(named[0], "info", "alternates")
	borrows, err := readPlain(list)
	if err != nil {
		return nil, err
	}
	if len(borrows) > 0 {
		more, err := m.borrowed(ctx, project)
		if err != nil {
			return nil, err
		}
		named = append(named, more...)
	}
	root, err := filepath.EvalSymlinks(m.root)
	if err != nil {
		root = m.root // not made yet
	}
	var found []string
	for _, name := range named {
		folder, err := objectFolder(name, project)
		if err != nil {
			return nil, problem.Errorf(problem.Refused, "cat "+shellWord(list), "%s has objects in %s, which cannot be shown to an agent: %w", project.Top, name, err)
		}
		if folder == root || strings.HasPrefix(folder, root+"/") {
			return nil, problem.Errorf(problem.Refused, "cat "+shellWord(list), "%s borrows objects from %s, which is sallyport's own", project.Top, name)
		}
		if !slices.Contains(found, folder) {
			found = append(found, folder)
		}
	}
	for _, folder := range found {
		if err := noFurther(folder, found); err != nil {
			return nil, problem.Errorf(problem.Refused, "cat "+shellWord(filepath.Join(folder, "info", "alternates")), "%s has objects in %s, which cannot be shown to an agent: %w", project.Top, folder, err)
		}
	}
	return found, nil
}

// noFurther refuses a folder that borrows from one which is not among those that were looked at. Our git
// follows what a borrowed folder borrows, and may as root go where the project's owner, who wrote it
// down, cannot.
func noFurther(folder string, looked []string) error {
	list, err := readPlain(filepath.Join(folder, "info", "alternates"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		name, err := unquote(line)
		if err != nil {
			return fmt.Errorf("it borrows from %q, which cannot be read", line)
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		real, err := filepath.EvalSymlinks(name)
		if err != nil {
			continue // our git does not get there either
		}
		if !slices.Contains(looked, real) {
			return fmt.Errorf("it borrows from %q, where the repository's owner does not get", name)
		}
	}
	return nil
}

// borrowed asks git which folders a project borrows from, also by way of one another.
func (m *Manager) borrowed(ctx context.Context, project git.Project) ([]string, error) {
	out, err := project.Common(m.ops).Run(ctx, git.Cmd{Args: []string{"count-objects", "-v"}})
	if err != nil {
		return nil, fmt.Errorf("find the objects that %s borrows: %w", project.Top, err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "alternate: ")
		if !ok {
			continue
		}
		folder, err := unquote(text)
		if err != nil || !filepath.IsAbs(folder) {
			return nil, fmt.Errorf("%s borrows objects from %q, which is no absolute path", project.Top, text)
		}
		found = append(found, folder)
	}
	return found, nil
}

// objectFolder returns the true path of a folder that holds git objects and nothing
// else, and that the project's owner could read without us.
func objectFolder(name string, project git.Project) (string, error) {
	folder, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	fd, err := openReal(folder)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), folder)
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, n := range names {
			if !objectName(n) {
				return "", fmt.Errorf("it holds %q, which is no part of a folder of objects", n)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	return folder, theirs(f, folder, project.UID)
}

// objectName reports whether git itself keeps something of that name among objects.
func objectName(n string) bool {
	if n == "pack" || n == "info" || len(n) == 2 && strings.Trim(n, "0123456789abcdef") == "" {
		return true
	}
	for _, passing := range []string{"tmp_obj_", "tmp_objdir-", "incoming-"} {
		if strings.HasPrefix(n, passing) {
			return true
		}
	}
	return false
}

// theirs refuses a folder that only root could have reached for a project of another
// user: it is that user's, or the way to it is open to everybody.
func theirs(f *os.File, path string, uid uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if os.Geteuid() != 0 || uid == 0 || st.Uid == uid {
		return nil
	}
	for p, need := path, uint32(0o005); ; p, need = filepath.Dir(p), 0o001 {
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		if st.Mode&need != need {
			return fmt.Errorf("it belongs to uid %d, and %s is closed to uid %d", st.Uid, p, uid)
		}
		if p == "/" {
			return nil
		}
	}
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
// already, and its own list names paths of the host: an empty folder covers it.
func (m *Manager) binds(folders []string) []sandbox.Bind {
	var shown []sandbox.Bind
	for i, folder := range folders {
		shown = append(shown, sandbox.Bind{Source: m.real(folder), Target: inside(i)})
	}
	for i, folder := range folders {
		if st, err := os.Lstat(filepath.Join(folder, "info", "alternates")); err == nil && st.Mode().IsRegular() && st.Size() > 0 {
			shown = append(shown, sandbox.Bind{Source: m.real(m.empty()), Target: inside(i) + "/info"})
		}
	}
	return shown
}

// real returns the true path of a folder of ours. A project's was true when it was
// judged; if it is not any more, it must not be followed.
func (m *Manager) real(folder string) string {
	if !strings.HasPrefix(folder, m.root+"/") {
		return folder
	}
	if path, err := filepath.EvalSymlinks(folder); err == nil {
		return path
	}
	return folder
}

// empty is a folder with nothing in it.
func (m *Manager) empty() string { return filepath.Join(m.root, "empty") }

func (m *Manager) makeEmpty() error {
	if st, err := os.Lstat(m.empty()); err == nil && st.IsDir() {
		return nil
	}
	if err := m.remove("workspace:clear", m.empty()); err != nil {
		return err
	}
	return m.ops.Do("workspace:empty", func() error {
		if err := os.Mkdir(m.empty(), 0o755); err != nil {
			return err
		}
		return os.Chmod(m.empty(), 0o755) // whatever the umask
	})
}

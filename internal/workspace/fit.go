package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"sallyport/internal/git"
	"sallyport/internal/problem"
)

// Fit refuses by name, before any work starts, a base whose files are not simply the
// bytes of its blobs: submodules, missing objects, and attributes that
// change content on its way to or from the disk.
func (m *Manager) Fit(ctx context.Context, host git.Dir, project git.Project, base git.OID) error {
	if err := m.fitProject(ctx, project); err != nil {
		return err
	}
	tree, err := host.Tree(ctx, base)
	if err != nil {
		return err
	}
	m.fitMu.Lock()
	known := m.fit[tree]
	m.fitMu.Unlock()
	if known {
		return nil
	}
	if err := fitObjects(ctx, host, project, base); err != nil {
		return err
	}
	if err := m.fitTree(ctx, host, project.Top, base); err != nil {
		return err
	}
	m.fitMu.Lock()
	m.fit[tree] = true
	m.fitMu.Unlock()
	return nil
}

// fitProject looks at the person's work tree as a whole.
func (m *Manager) fitProject(ctx context.Context, project git.Project) error {
	for _, odd := range []struct{ key, value, name, next string }{
		{"core.autocrlf", "true", "core.autocrlf=true, so its files are not the bytes that git holds", "git -C %s config core.autocrlf false"},
		{"core.eol", "crlf", "core.eol=crlf, so its files are not the bytes that git holds", "git -C %s config core.eol lf"},
	} {
		value, err := setting(ctx, project.Worktree(m.ops), odd.key)
		if err != nil {
			return err
		}
		if value == odd.value {
			return problem.Errorf(problem.Refused, fmt.Sprintf(odd.next, shellWord(project.Top)), "%s has %s", project.Top, odd.name)
		}
	}
	attributes, err := readPlain(filepath.Join(project.CommonDir, "info", "attributes"))
	if err != nil {
		return err
	}
	return fitAttributes("cat "+shellWord(filepath.Join(project.CommonDir, "info", "attributes")), ".git/info/attributes", string(attributes))
}

// setting reads one configuration value of a person's repository; "" if unset. Truth values are spelled out.
func setting(ctx context.Context, dir git.Dir, key string) (string, error) {
	out, err := dir.Run(ctx, git.Cmd{Args: []string{"config", "--get", key}})
	var failed *git.Failure
	if errors.As(err, &failed) && failed.Code == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s of %s: %w", key, dir.Path, err)
	}
	switch value := strings.ToLower(strings.TrimSpace(string(out))); value {
	case "yes", "on", "1", "":
		return "true", nil
	default:
		return value, nil
	}
}

// fitObjects looks for what a partial or shallow clone left out. A shallow history is
// fine as long as the base itself is whole.
func fitObjects(ctx context.Context, host git.Dir, project git.Project, base git.OID) error {
	shallow, err := readPlain(filepath.Join(project.CommonDir, "shallow"))
	if err != nil {
		return err
	}
	config, err := readPlain(filepath.Join(project.CommonDir, "config"))
	if err != nil {
		return err
	}
	lower := strings.ToLower(string(config))
	if len(shallow) == 0 && !strings.Contains(lower, "promisor") && !strings.Contains(lower, "partialclone") {
		return nil
	}
	out, err := host.Run(ctx, git.Cmd{Args: []string{"rev-list", "--objects", "--no-walk", "--missing=print", string(base)}})
	if err != nil {
		return problem.Errorf(problem.Refused, "git -C "+shellWord(project.Top)+" fetch --unshallow", "the clone at %s lacks objects of the commit %.12s: %w", project.Top, base, err)
	}
	for line := range strings.Lines(string(out)) {
		if missing, ok := strings.CutPrefix(line, "?"); ok {
			return problem.Errorf(problem.Refused, "git -C "+shellWord(project.Top)+" fetch --refetch --no-filter",
				"the clone at %s is partial: object %.12s of the commit %.12s is missing", project.Top, strings.TrimSpace(missing), base)
		}
	}
	return nil
}

// attributesMax is the size of the longest .gitattributes that is read.
const attributesMax = 1 << 20

// attributesFilesMax is how many of them.
const attributesFilesMax = 10_000

// fitTree looks at every entry of the base once. A few objects can stand for any number of files:
// what is more than a workspace may hold is refused before anything is made of it.
func (m *Manager) fitTree(ctx context.Context, host git.Dir, top string, base git.OID) error {
	var paths []string
	var blobs []git.OID
	entries, bytes := 0, int64(0)
	count := "git -C " + shellWord(top) + " ls-tree -r --name-only " + string(base) + " | wc"
	err := host.List(ctx, base, func(p string, e git.Entry, size int64) error {
		entries, bytes = entries+1, bytes+int64(len(p))
		switch {
		case entries > m.limits.Entries:
			return problem.Errorf(problem.Refused, count, "the commit %.12s holds more than %d files (limit entries)", base, m.limits.Entries)
		case bytes > m.limits.PathBytes:
			return problem.Errorf(problem.Refused, count, "the paths of the commit %.12s have more than %d bytes together (limit path bytes)", base, m.limits.PathBytes)
		case len(p) > pathMax:
			return problem.Errorf(problem.Refused, count, "a path of the commit %.12s has more than %d bytes: %.100q…", base, pathMax, p)
		case e.Mode != git.Symlink && path.Base(p) == ".gitattributes":
			if size > attributesMax {
				return problem.Errorf(problem.Refused, "ls -l "+shellWord(top+"/"+p), "%q has %d bytes; at most %d are read", p, size, attributesMax)
			}
			if len(paths) == attributesFilesMax {
				return problem.Errorf(problem.Refused, count, "the commit %.12s holds more than %d files .gitattributes", base, attributesFilesMax)
			}
			paths, blobs = append(paths, p), append(blobs, e.OID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	i := 0
	return host.Blobs(ctx, blobs, func(_ git.OID, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("read %q: %w", paths[i], err)
		}
		i++
		return fitAttributes(host.Command("show "+shellWord(string(base)+":"+paths[i-1])), paths[i-1], string(text))
	})
}

// fitAttributes refuses a file of attributes with one that changes bytes, whatever it applies to; show is a
// command that shows the file.
func fitAttributes(show, file, text string) error {
	for line := range strings.Lines(text) {
		for _, attribute := range attributesOf(line) {
			if converts(attribute) {
				return problem.Errorf(problem.Refused, show, "%q sets the attribute %q; sallyport does not work on repositories whose files are converted", file, attribute)
			}
		}
	}
	return nil
}

// attributesOf returns the attributes of one line, without its pattern.
func attributesOf(line string) []string {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return nil
	}
	if line[0] == '"' {
		for i := 1; i < len(line); i++ {
			if line[i] == '\\' {
				i++
			} else if line[i] == '"' {
				return strings.Fields(line[i+1:])
			}
		}
	}
	fields := strings.Fields(line)
	return fields[1:]
}

// converts reports whether an attribute makes files differ from their blobs.
func converts(attribute string) bool {
	name, value, set := strings.Cut(attribute, "=")
	switch name {
	case "filter", "ident":
		return true
	case "working-tree-encoding":
		return !set || !strings.EqualFold(value, "utf-8") && !strings.EqualFold(value, "utf8")
	case "eol":
		return value == "crlf"
	}
	return false
}

// shellWord quotes a word for a command that is shown to a person; the terminal escapes what is left.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" && s[0] != '-' {
		return s
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return strconv.QuoteToASCII(s)
		}
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

package conversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Settings is what converts files and stands in no tree: of the repository, of its owner, of the system.
type Settings struct {
	above  []file
	below  []file
	config config
	fold   bool
	inside []string          // paths of the work tree that the settings are read from, or through
	live   map[string]string // texts of .gitattributes in a work tree, by folder, that count instead of the tree's
}

// In returns the settings of a work tree whose .gitattributes in some folders, "" = the top, hold what is not committed.
func (s Settings) In(live map[string]string) Settings {
	s.live = live
	return s
}

// Said names what in the settings converts files, once.
func (s Settings) Said() []string {
	var said []string
	for _, f := range append(s.above, s.below...) {
		said = append(said, f.said()...)
	}
	if c := s.config; c.auto != "false" {
		said = append(said, "core.autocrlf="+c.auto+" in git config")
	} else if c.crlf() {
		said = append(said, "core.eol=crlf in git config")
	}
	return said
}

// Said names what converts files in one more .gitattributes of a tree, once each. Errors: Unclear for a file that versions of git
// read in different ways, and where the files hold too much together.
func (l *Limits) Said(name, text string) ([]string, error) {
	f, err := l.parse(Source{Name: name, Text: text, Macros: true})
	if err != nil {
		return nil, err
	}
	return f.said(), nil
}

// said names the attributes of a file that convert other files, whatever they apply to.
func (f file) said() []string {
	var said []string
	had := map[string]bool{}
	for _, l := range f.lines {
		for _, a := range l.gives {
			g := given{a.value, f.Name, a.plain}
			if text := (why{g.says(a.name), f.Name}).inert(); converts(a.name, g) && !had[text] {
				had[text], said = true, append(said, text)
			}
		}
	}
	return said
}

// systemAttributes is git's file for everybody, where it is built for /usr.
const systemAttributes = "/etc/gitattributes"

// Read reads the settings of a project, with the configuration of its owner, whose home folder is home; "" = as the system
// says. Errors: problem.Refused for what cannot be told, naming it.
func Read(ctx context.Context, p git.Project, home string) (Settings, error) {
	set, home, err := p.Settings(ctx, home, "core.autocrlf", "core.eol", "core.ignorecase", "core.attributesfile", "attr.tree")
	if err != nil {
		return Settings{}, fmt.Errorf("read how %q converts files: %w", p.Top, err)
	}
	if tree, ok := set["attr.tree"]; ok {
		return Settings{}, problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" config --show-origin attr.tree",
			"%q takes its attributes from another tree (attr.tree=%s), which sallyport does not read", p.Top, inert.Line(tree))
	}
	s := Settings{config: config{eol: strings.ToLower(set["core.eol"])}}
	if s.config.auto, err = truth(p, set, "core.autocrlf", "input"); err != nil {
		return Settings{}, err
	}
	fold, err := truth(p, set, "core.ignorecase", "false")
	if err != nil {
		return Settings{}, err
	}
	s.fold = fold == "true"

	theirs := filepath.Join(home, ".config/git/attributes")
	if named, ok := set["core.attributesfile"]; ok {
		if theirs, err = pathOf(p, named, home); err != nil {
			return Settings{}, err
		}
	}
	for _, f := range []struct {
		name, path string
		to         *[]file
	}{
		{".git/info/attributes", filepath.Join(p.CommonDir, "info/attributes"), &s.above},
		{theirs, theirs, &s.below},
		{systemAttributes, systemAttributes, &s.below},
	} {
		s.inside = append(s.inside, p.Below(f.path)...)
		text, err := read(f.path, p.UID)
		if err != nil {
			return Settings{}, err
		}
		parsed, err := parse(Source{Name: f.name, Text: text, Macros: true})
		if err != nil {
			return Settings{}, problem.Errorf(problem.Refused, "cat "+inert.Path(f.path), "what git converts in %q cannot be told: %w", p.Top, err)
		}
		*f.to = append(*f.to, parsed)
	}
	return s, nil
}

// truth returns true, false, or the third word that a key may have.
func truth(p git.Project, set map[string]string, key, third string) (string, error) {
	value, is := set[key]
	number, err := strconv.Atoi(value)
	switch value = strings.ToLower(value); {
	case !is || value == "false" || value == "no" || value == "off" || err == nil && number == 0:
		return "false", nil
	case value == third:
		return third, nil
	case value == "" || value == "true" || value == "yes" || value == "on" || err == nil:
		return "true", nil
	}
	return "", problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" config --show-origin "+key,
		"%q has %s=%s, which is no value of it", p.Top, key, inert.Line(value))
}

// pathOf is where a configured path leads.
func pathOf(p git.Project, named, home string) (string, error) {
	if rest, ok := strings.CutPrefix(named, "~/"); ok {
		return filepath.Join(home, rest), nil
	}
	if named == "" || filepath.IsAbs(named) {
		return named, nil
	}
	return "", problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" config --show-origin core.attributesFile",
		"%q has its attributes in %s (core.attributesFile); only an absolute path, or one below ~/, is read", p.Top, inert.Path(named))
}

// read reads a file of attributes that the owner of a repository may read; "" if there is none.
func read(path string, owner uint32) (string, error) {
	refuse := func(why any) (string, error) {
		return "", problem.Errorf(problem.Refused, "ls -l "+inert.Path(path),
			"%s cannot be read, so what git converts cannot be told: %v", inert.Path(path), why)
	}
	if path == "" {
		return "", nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) // a repository could name any device of ours
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return refuse(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return refuse(err)
	case st.Mode&unix.S_IFMT == unix.S_IFCHR: // /dev/null
		return "", nil
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > TextMax:
		return refuse(fmt.Sprintf("it is no regular file of at most %d bytes", TextMax))
	case st.Uid != owner && st.Mode&0o004 == 0: // a repository could name any file of ours
		return refuse("it belongs to somebody else")
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return refuse(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, TextMax))
	if err != nil {
		return refuse(err)
	}
	return string(text), nil
}

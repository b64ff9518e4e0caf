package git

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/pattern"
)

// Named is a path below the work tree that a person's git runs something from, or reads as configuration.
type Named struct {
	Path string // from the top; a file, or a folder with all that is below
	By   string // what names it: a key of the configuration, or a hook
}

// runKeys are the keys whose value git runs by itself, or reads as more configuration.
const runKeys = `^(core\.(hookspath|fsmonitor|sshcommand|askpass|gitproxy|pager|editor|attributesfile)|include\.path|includeif\..*\.path|filter\..*\.(clean|smudge|process)` +
	`|diff\.external|diff\..*\.(command|textconv)|merge\..*\.driver|credential\.(.*\.)?helper|gpg\.(.*\.)?program|gpg\.ssh\.defaultkeycommand|sequence\.editor|interactive\.difffilter` +
	`|pager\..*|trailer\..*\.(command|cmd)|hook\..*\.command|tar\..*\.command|uploadpack\.packobjectshook|remote\..*\.(uploadpack|receivepack|proxy)|mergetool\..*\.(cmd|path)|difftool\..*\.(cmd|path))$`

var runKey = pattern.Of(runKeys)

// Named returns the paths of the work tree that the owner's configuration, whose home folder is home, or a hook that is a link
// has git run, and the files of that configuration and of attributes that lie there themselves. It reads only.
func (p Project) Named(ctx context.Context, home string) ([]Named, error) {
	home = p.home(home)
	all, err := p.configuration(ctx, home)
	if err != nil {
		return nil, fmt.Errorf("read what git runs in %q: %w", p.Top, err)
	}
	tops := p.tops()
	found := linksIn(tops, filepath.Join(p.CommonDir, "hooks"))
	for _, file := range p.readAlways(home) {
		for _, path := range below(tops, file) {
			found = append(found, Named{path, "git's file " + filepath.Base(file)})
		}
	}

	for _, s := range all {
		file := p.origin(s.origin)
		for _, path := range below(tops, file) {
			found = append(found, Named{path, "git's configuration"})
		}
		if !runKey().MatchString(strings.ToLower(s.key)) {
			continue
		}
		for _, path := range p.paths(tops, strings.ToLower(s.key), s.value, home, file) {
			found = append(found, Named{path, "git's " + s.key})
		}
	}
	return unique(found), nil
}

// unique leaves out what was said before.
func unique(all []Named) (found []Named) {
	had := map[Named]bool{}
	for _, n := range all {
		if !had[n] {
			had[n] = true
			found = append(found, n)
		}
	}
	return found
}

// readAlways returns the files that git reads without being told: an empty one is the origin of nothing.
func (p Project) readAlways(home string) []string {
	return []string{
		"/etc/gitconfig", "/etc/gitattributes",
		filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config/git/config"), filepath.Join(home, ".config/git/attributes"),
		filepath.Join(p.CommonDir, "config"), filepath.Join(p.CommonDir, "config.worktree"), filepath.Join(p.CommonDir, "info/attributes"),
	}
}

// origin returns the file that a setting comes from; "" if it comes from none.
func (p Project) origin(said string) string {
	file, ok := strings.CutPrefix(said, "file:")
	switch {
	case !ok:
		return ""
	case filepath.IsAbs(file):
		return file
	}
	return p.Top + "/" + file
}

// paths returns what of a value lies in the work tree. A command's first word is looked for in PATH unless it has a slash.
func (p Project) paths(tops []string, key, value, home, file string) (found []string) {
	whole := key == "core.hookspath" || key == "core.attributesfile" || strings.HasPrefix(key, "include")
	words := []string{value}
	if !whole {
		value = strings.NewReplacer("${HOME}", home, "$HOME", home).Replace(value)
		words = strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n\"'!;|&<>()=", r) })
	}
	for i, word := range words {
		if word == "" || strings.HasPrefix(word, "-") || !whole && i == 0 && !strings.Contains(word, "/") {
			continue
		}
		path := expand(word, home)
		switch {
		case filepath.IsAbs(path):
		case strings.HasPrefix(key, "include") && file != "":
			path = filepath.Dir(file) + "/" + path
		default:
			path = p.Top + "/" + path
		}
		found = append(found, below(tops, path)...)
	}
	return found
}

// expand puts a home folder in the place of ~ or ~user.
func expand(path, home string) string {
	if !strings.HasPrefix(path, "~") {
		return path
	}
	name, rest, _ := strings.Cut(path[1:], "/")
	if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return path
		}
		home = u.HomeDir
	}
	return home + "/" + rest
}

// tops returns the real top of each work tree of the repository: what one of them names may be checked out in another.
func (p Project) tops() []string {
	tops := []string{p.Top}
	if filepath.Base(p.CommonDir) == ".git" {
		tops = append(tops, filepath.Dir(p.CommonDir))
	}
	others, _ := filepath.Glob(filepath.Join(p.CommonDir, "worktrees/*/gitdir")) // the form is right
	for _, file := range others {
		if text, err := os.ReadFile(file); err == nil {
			tops = append(tops, filepath.Dir(strings.TrimSpace(string(text))))
		}
	}
	for i, top := range tops {
		if real, err := filepath.EvalSymlinks(top); err == nil {
			tops[i] = real
		}
	}
	slices.Sort(tops)
	return slices.Compact(tops)
}

// below returns where a path lies in the work trees, from their tops: each link on its way, and the place where it ends.
func below(tops []string, path string) (found []string) {
	if path == "" {
		return nil
	}
	for _, place := range trail(path) {
		for _, top := range tops {
			rel, err := filepath.Rel(top, place)
			outside := err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") || rel == ".git" || strings.HasPrefix(rel, ".git/")
			if !outside && !slices.Contains(found, rel) {
				found = append(found, rel)
			}
		}
	}
	return found
}

// Below returns where an absolute path, and each link on its way, lies in the work trees of the repository, from their tops.
// What lies in the git folder does not count.
func (p Project) Below(path string) []string { return below(p.tops(), path) }

// linksMax is how many links the system follows for one path.
const linksMax = 40

// trail returns the real place of each link that an absolute path leads through, and of what it ends at.
func trail(path string) (places []string) {
	at, todo := "/", strings.Split(path, "/")
	for len(todo) > 0 {
		word := todo[0]
		todo = todo[1:]
		switch word {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		place := filepath.Join(at, word)
		target, err := os.Readlink(place)
		if err != nil || len(places) >= linksMax {
			at = place
			continue
		}
		places = append(places, place)
		todo = append(strings.Split(target, "/"), todo...)
		if filepath.IsAbs(target) {
			at = "/"
		}
	}
	return append(places, at)
}

// linksIn returns what of the work trees a folder of hooks, or a link in it, leads to.
func linksIn(tops []string, folder string) (found []Named) {
	for _, path := range below(tops, folder) {
		found = append(found, Named{path, "a link from git's folder of hooks"})
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return found // without hooks none is a link
	}
	for _, e := range entries {
		for _, path := range below(tops, filepath.Join(folder, e.Name())) {
			found = append(found, Named{path, "the hook " + e.Name()})
		}
	}
	return found
}

package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/disk"
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

// Named returns the paths of the work tree that the owner's configuration, whose home folder is home, or a hook that is a link
// has git run. It reads only.
func (p Project) Named(ctx context.Context, home string) ([]Named, error) {
	ctx, done := context.WithTimeoutCause(ctx, personMax, fmt.Errorf("reading the configuration took longer than %s", personMax))
	defer done()
	out, err := p.Worktree(disk.Ops{}).Run(ctx, Cmd{Args: []string{"config", "--null", "--get-regexp", runKeys}, Home: p.home(home)})
	var failed *Failure
	if err != nil && (!errors.As(err, &failed) || failed.Code != 1) { // 1: none is set
		return nil, fmt.Errorf("read what git runs in %q: %w", p.Top, err)
	}
	found := p.linkedHooks()
	for record := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(record, "\n")
		for _, path := range p.paths(strings.ToLower(key), value) {
			found = append(found, Named{path, "git's " + key})
		}
	}
	return found, nil
}

// paths returns what of a value lies in the work tree. A command's first word is looked for in PATH unless it has a slash.
func (p Project) paths(key, value string) (found []string) {
	whole := key == "core.hookspath" || key == "core.attributesfile" || strings.HasPrefix(key, "include")
	words := []string{value}
	if !whole {
		words = strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n\"'!;|&<>()=", r) })
	}
	for i, word := range words {
		if !whole && i == 0 && !strings.Contains(word, "/") {
			continue
		}
		from := p.Top
		if strings.HasPrefix(key, "include") {
			from = p.CommonDir
		}
		if below := p.below(from, word); below != "" && !slices.Contains(found, below) {
			found = append(found, below)
		}
	}
	return found
}

// below returns where a path lies in the work tree, from the top; "" if it does not.
func (p Project) below(from, path string) string {
	if path == "" || strings.HasPrefix(path, "-") || strings.HasPrefix(path, "~") {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	rel, err := filepath.Rel(p.Top, path)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") || rel == ".git" || strings.HasPrefix(rel, ".git/") {
		return ""
	}
	return rel
}

// linkedHooks returns what hooks of the repository are links to.
func (p Project) linkedHooks() (found []Named) {
	folder := filepath.Join(p.CommonDir, "hooks")
	if target, err := os.Readlink(folder); err == nil {
		if below := p.below(p.CommonDir, target); below != "" {
			return []Named{{below, "a link from git's folder of hooks"}}
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // without hooks none is a link
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(folder, e.Name()))
		if err != nil {
			continue
		}
		if below := p.below(folder, target); below != "" {
			found = append(found, Named{below, "the hook " + e.Name()})
		}
	}
	return found
}

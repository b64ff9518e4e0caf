package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/path/project"
	"sallyport/internal/path/repository"
)

// split parts what was found into changes and what is left over: ignored by the base,
// absent from it, and not asked for by IncludeIgnored (SV-047).
func (w Workspace) split(ctx context.Context, found []finding) (Diff, error) {
	for _, glob := range w.Spec.IncludeIgnored {
		if !doublestar.ValidatePattern(glob) {
			return Diff{}, problem.Errorf(problem.Usage, "sallyport run --help", "%q is not a valid glob", glob)
		}
	}
	var fresh []string
	for _, f := range found {
		if f.fresh {
			fresh = append(fresh, f.Path)
		}
	}
	ignored, err := w.ignored(ctx, fresh)
	if err != nil {
		return Diff{}, fmt.Errorf("find what the base ignores: %w", err)
	}
	var diff Diff
	left := map[string]int{} // folder → index in diff.LeftOver
	for _, f := range found {
		diff.Bytes += f.Fact.Size
		if !ignored[f.Path] || wanted(w.Spec.IncludeIgnored, f.Path) {
			diff.Changes = append(diff.Changes, f.Found)
			continue
		}
		folder, _, inFolder := strings.Cut(f.Path, "/")
		if !inFolder {
			folder = "."
		}
		i, ok := left[folder]
		if !ok {
			i = len(diff.LeftOver)
			left[folder] = i
			diff.LeftOver = append(diff.LeftOver, LeftOver{Folder: folder})
		}
		diff.LeftOver[i].Files++
		diff.LeftOver[i].Bytes += f.Fact.Size
	}
	if git := agentsGit(w.Tree.GitDir); git.Files > 0 {
		diff.LeftOver = append(diff.LeftOver, git)
	}
	return diff, nil
}

// agentsGit counts what an agent put where it would count in a git directory of a person's: hooks and switches. Its git
// directory is its own, made empty of both, and nothing in it lands.
func agentsGit(dir string) LeftOver {
	left := LeftOver{Folder: ".git"}
	top, err := beneath.Real(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return left // there is none, or what is there is no folder any more
	}
	defer unix.Close(top)
	for _, in := range []string{"hooks", "info"} {
		fd, err := beneath.Open(top, in, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			continue
		}
		_ = beneath.Names(fd, func(name string) error {
			if in == "info" && (name == "refs" || name == "attributes" && ours(top)) { // of its git's own upkeep, and of ours
				return nil
			}
			var st unix.Stat_t
			if left.Files++; unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
				left.Bytes += st.Size
			}
			if left.Files > agentsGitMax {
				return errors.New("enough")
			}
			return nil
		})
		unix.Close(fd)
	}
	return left
}

// ours reports whether the attributes of an agent's git are those that it was given.
func ours(top int) bool {
	f, _, err := project.TheirBytes(top, "info/attributes")
	if f == nil || err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(len(repository.OwnAttributes)+1)))
	return err == nil && string(text) == repository.OwnAttributes
}

// agentsGitMax bounds what is counted below the agent's own git directory.
const agentsGitMax = 10_000

func wanted(globs []string, path string) bool {
	for _, glob := range globs {
		if doublestar.MatchUnvalidated(glob, path) {
			return true
		}
	}
	return false
}

// ignored asks git which of paths the base ignores, in one process. Git sees our own
// directory, with a copy of the project's info/exclude, and a folder that holds the
// base's .gitignore files and nothing else: neither what an agent wrote nor a person's
// own settings take part. There are patterns of which git finds out in no time of a person's whether they match a path.
func (w Workspace) ignored(ctx context.Context, paths []string) (map[string]bool, error) {
	host, folder := w.host, w.ignore
	if len(paths) == 0 {
		return nil, nil
	}
	if any, err := ignoresAny(host, folder); err != nil || !any {
		return nil, err
	}
	var in bytes.Buffer
	for _, p := range paths {
		in.WriteString("./" + p) // so that no name begins with a colon, which git would read as magic
		in.WriteByte(0)
	}
	ctx, done := context.WithTimeoutCause(ctx, w.limits.IgnoreTime, problem.Errorf(problem.Refused, host.Command("show "+string(w.Spec.Base)+":.gitignore"),
		"git did not say within %s which of the files the base ignores: its patterns take too long to match", w.limits.IgnoreTime))
	defer done()
	out, err := host.Run(ctx, git.Cmd{
		Args: []string{"check-ignore", "--no-index", "--stdin", "-z"}, Stdin: &in, Dir: folder,
		Env: []string{"GIT_WORK_TREE=" + folder, "GIT_LITERAL_PATHSPECS=0"}, Config: []string{"core.bare=false", "core.ignoreCase=false"},
	})
	var failed *git.Failure
	if errors.As(err, &failed) && failed.Code == 1 {
		return nil, nil // none is ignored
	}
	if err != nil {
		return nil, err
	}
	ignored := map[string]bool{}
	for p := range strings.SplitSeq(string(out), "\x00") {
		ignored[strings.TrimPrefix(p, "./")] = true
	}
	return ignored, nil
}

// ignoresAny reports whether there is anything that could ignore a file.
func ignoresAny(host git.Dir, folder string) (bool, error) {
	if whole.Exists(filepath.Join(host.Path, "info", "exclude")) {
		return true, nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

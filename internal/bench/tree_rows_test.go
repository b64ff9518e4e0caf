package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/secret"
)

// changed is how many files are changed where changes are looked for.
const changed = 65

// BenchmarkTree measures what is done with a copy of a repository while an agent works on it.
func BenchmarkTree(b *testing.B) {
	wt.CanOverlay(b)
	eachSize(b, func(b *testing.B, files int) {
		p, head := realTree(b, files)
		s := &scene{files: files, project: p, head: head,
			manager: workspace.New(workspace.Config{Root: filepath.Join(b.TempDir(), "state"), Strategy: workspace.Overlay})}
		s.prepare(b, head)
		s.cached(b)
		s.delta(b)
		s.changes(b)
		s.events(b)
		s.diffs(b, 50)
		s.diffs(b, 1000)
	})
}

// scene is a repository with the host's copies of it.
type scene struct {
	files   int
	project git.Project
	head    git.OID
	manager *workspace.Manager
	made    int // workspaces so far
}

func (s *scene) prepare(b *testing.B, base git.OID) workspace.Workspace {
	b.Helper()
	s.made++
	w, err := s.manager.Prepare(b.Context(), workspace.Spec{
		Change: id.Change(fmt.Sprintf("chg-%08d", s.made)), Project: s.project, Base: base, Branch: "main", Owner: wt.Self(),
	})
	must(b, err)
	return w
}

// worktree is git's own way to a copy. What it made goes again, uncounted.
func (s *scene) worktree(b *testing.B, commit git.OID) time.Duration {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "tree")
	took := timed(func() { wt.Git(b, s.project.Top, "worktree", "add", "-q", "--detach", dir, string(commit)) })
	wt.Git(b, s.project.Top, "worktree", "remove", "--force", dir)
	return took
}

func (s *scene) cached(b *testing.B) {
	inTurn(b, row{
		path: "a workspace on a base that is cached", size: s.files,
		ours: "an overlay on the base's layers", rival: "git worktree add",
		goal: goalAt{10_000: 1.0 / 50, 100_000: 1.0 / 500},
	}, func() time.Duration {
		return timed(func() { s.prepare(b, s.head) })
	}, func() time.Duration { return s.worktree(b, s.head) })
}

func (s *scene) delta(b *testing.B) {
	paths := spreadOver(b, s.project.Top, 100)
	head, n := s.head, 0
	inTurn(b, row{
		path: "a workspace on a new commit, 100 files from a cached one", size: s.files,
		ours: "a layer of what differs", rival: "git worktree add",
		goal: goalAt{10_000: 1.0 / 20},
	}, func() time.Duration {
		n++
		in := git.Import{Ref: "refs/heads/main", From: head, Parents: []git.OID{head}, Message: "next\n"}
		for _, path := range paths {
			in.Writes = append(in.Writes, git.Write{Path: path, Mode: git.File, Data: git.Text(fmt.Sprintf("package changed%d\n", n))})
		}
		made, err := s.project.Common(disk.Ops{}).Import(b.Context(), "bench:commit", in)
		must(b, err)
		head = made.OID
		unix.Sync() // neither waits for what the other has left to write
		return timed(func() { s.prepare(b, head) })
	}, func() time.Duration { return s.worktree(b, head) })
	wt.Git(b, s.project.Top, "update-ref", "refs/heads/main", string(s.head))
}

// edit changes 65 files, in a workspace and in the person's tree alike.
func (s *scene) edit(b *testing.B, w workspace.Workspace, paths []string, text string) {
	b.Helper()
	var ops []wt.Op
	files := map[string]string{}
	for i, path := range paths {
		body := strings.Repeat(fmt.Sprintf("// %s, line %d says: token := get(key, \"secret\")\n", text, i), 60)
		ops = append(ops, wt.Write(path, body))
		files[path] = body
	}
	wt.Edit(b, w, ops...)
	wt.Files(b, s.project.Top, files)
}

func (s *scene) changes(b *testing.B) {
	paths := spreadOver(b, s.project.Top, changed)
	w := s.prepare(b, s.head)
	s.edit(b, w, paths, "first")
	inTurn(b, row{
		path: fmt.Sprintf("finding %d changes", changed), size: s.files,
		ours: "a walk of the upper layer", rival: "git status --porcelain",
		goal: goalAt{10_000: 1.0 / 30, 100_000: 1.0 / 200},
		why: "nine tenths of it are 1,500 system calls: on both sides of the copy each of the 118 folders on the way to the files is opened, listed, and " +
			"asked for the marks by which an overlay hides what lies below",
	}, func() time.Duration {
		return timed(func() {
			d, err := s.manager.Walk(b.Context(), w)
			must(b, err)
			if len(d.Changes) != changed {
				b.Fatalf("%d changes were found", len(d.Changes))
			}
		})
	}, func() time.Duration {
		return timed(func() { wt.Git(b, s.project.Top, "status", "--porcelain") })
	})

	s.checkpoints(b, w, paths)
	s.scans(b, paths)
	wt.Git(b, s.project.Top, "reset", "-q", "--hard", string(s.head))
}

// checkpoints compares a whole checkpoint with the commands that do its parts. Each round changes every file anew, so that nothing is known.
func (s *scene) checkpoints(b *testing.B, w workspace.Workspace, paths []string) {
	host, err := s.manager.EnsureRepository(b.Context(), s.project, s.head)
	must(b, err)
	scanner, err := secret.New(secret.Config{Cache: secret.NewMemory(10_000)})
	must(b, err)
	with := checkpoint.Taking{
		Workspaces: s.manager, Workspace: w, Host: host, Trigger: checkpoint.AtEnd, Session: "agent-00001", At: time.Unix(1_700_000_000, 0).UTC(),
		Author: git.Signature{Name: "P", Email: "p@example.org"}, Secrets: scanner,
	}
	library := leaks(b)
	globs := []string{"**/*.pem", ".github/**", "**/.env*", "**/secrets/**", "**/*.key"}
	n := 0
	inTurn(b, row{
		path: fmt.Sprintf("a whole checkpoint of %d changes", changed), size: s.files,
		ours: "walk, read once, tree, validate, scan, record", rival: "git status, git diff, doublestar on each path, gitleaks on the diff",
		goal: goalAt{10_000: 1.0 / 3, 100_000: 1.0 / 20},
		note: "the rival keeps nothing: it makes no tree and no commit",
		why: "at 100,000 files 45 ms of it are of git fast-import, which makes the commit upon the trees of 118 folders, and 6 are the walk's; what is " +
			"read, judged, scanned and recorded is the same at every size, and takes some 50",
	}, func() time.Duration {
		n++
		s.edit(b, w, paths, "round "+strconv.Itoa(n))
		return timed(func() {
			_, err := checkpoint.Take(b.Context(), with)
			must(b, err)
		})
	}, func() time.Duration {
		return timed(func() {
			for line := range strings.Lines(wt.Git(b, s.project.Top, "status", "--porcelain")) {
				for _, glob := range globs {
					_, err := doublestar.Match(glob, strings.TrimSpace(line[2:]))
					must(b, err)
				}
			}
			library.Detect(detect.Fragment{Raw: wt.Git(b, s.project.Top, "diff")})
		})
	})
}

// scans compares on as many files of the repository.
func (s *scene) scans(b *testing.B, paths []string) {
	library := leaks(b)
	scanner, err := secret.New(secret.Config{})
	must(b, err)
	texts := map[string]string{}
	for _, path := range paths {
		texts[path] = wt.Git(b, s.project.Top, "show", string(s.head)+":"+path)
	}
	inTurn(b, row{
		path: fmt.Sprintf("looking for secrets in %d files", changed), size: s.files,
		ours: "keywords, windows, the rule's expression, gitleaks confirms", rival: "the gitleaks library, file by file",
		goal: goalAt{0: 0.4},
	}, func() time.Duration {
		return timed(func() {
			for path, text := range texts {
				_, err := scanner.Scan(b.Context(), path, strings.NewReader(text), int64(len(text)))
				must(b, err)
			}
		})
	}, func() time.Duration {
		return timed(func() {
			for path, text := range texts {
				library.Detect(detect.Fragment{Raw: text, FilePath: path})
			}
		})
	})
}

// leaks is the gitleaks library with its own rules, and silent.
func leaks(b *testing.B) *detect.Detector {
	b.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled)
	d, err := detect.NewDetectorDefaultConfig()
	must(b, err)
	return d
}

// events compares how long it takes until changes are told of.
func (s *scene) events(b *testing.B) {
	w := s.prepare(b, s.head)
	logs := b.TempDir()
	n := 0
	inTurn(b, row{
		path: "events: until changes are told of", size: s.files,
		ours: "watches on what the agent writes to", rival: "inotify on every folder of the tree",
		goal: goalAt{0: 0.1},
	}, func() time.Duration {
		n++
		var watch *session.Watch
		took := timed(func() {
			var err error
			watch, err = session.StartWatch(b.Context(), session.Watched{
				Change: "chg-00000001", Side: w.Tree.Upper, Base: w.Tree.Layers, Overlay: true, Log: fmt.Sprintf("%s/%d.jsonl", logs, n),
			})
			must(b, err)
		})
		must(b, watch.Close())
		return took
	}, func() time.Duration {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		must(b, err)
		took := timed(func() {
			must(b, filepath.WalkDir(s.project.Top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					_, err = unix.InotifyAddWatch(fd, path, unix.IN_CREATE|unix.IN_MODIFY)
				}
				return err
			}))
		})
		must(b, unix.Close(fd))
		return took
	})
}

// diffs compares the unified diff of n files with git's.
func (s *scene) diffs(b *testing.B, n int) {
	if s.files < 2*n {
		return
	}
	in := git.Import{Ref: "refs/heads/diffed", From: s.head, Parents: []git.OID{s.head}, Message: "diffed\n"}
	for i, path := range spreadOver(b, s.project.Top, min(n, s.files/4)) {
		text := wt.Git(b, s.project.Top, "show", string(s.head)+":"+path)
		in.Writes = append(in.Writes, git.Write{Path: path, Mode: git.File, Data: git.Text(fmt.Sprintf("// %d\n%s\n// the end\n", i, text))})
	}
	theirs, err := s.project.Common(disk.Ops{}).Import(b.Context(), "bench:commit", in)
	must(b, err)
	host, err := s.manager.EnsureRepository(b.Context(), s.project, s.head)
	must(b, err)
	made, err := host.Import(b.Context(), "bench:commit", in) // cards are made from the host's repository
	must(b, err)
	inTurn(b, row{
		path: fmt.Sprintf("the unified diff of %d files", len(in.Writes)), size: s.files,
		ours: "as a card shows it", rival: "git diff",
		goal: goalAt{0: 1 / 3.5},
		why:  "git makes it, so that what is approved is what git shows of it everywhere else; all of the time is git's",
	}, func() time.Duration {
		return timed(func() {
			var to bytes.Buffer
			must(b, host.Patch(context.Background(), io.MultiWriter(&to), s.head, made.OID, false))
		})
	}, func() time.Duration {
		return timed(func() { wt.Git(b, s.project.Top, "diff", string(s.head), string(theirs.OID)) })
	})
}

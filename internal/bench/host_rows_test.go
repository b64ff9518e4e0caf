package bench_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	wt "sallyport/internal/path/workspace/workspacetest"
)

// host is a home of this run's own with the product's own programs: a daemon, a keeper, a journal.
type host struct {
	program, dir string
	env          []string
}

// newHost makes one. It ends with the benchmark.
func newHost(b *testing.B) host {
	b.Helper()
	dir, err := os.MkdirTemp("", "sallyport-bench-") // its sockets' names must stay short
	must(b, err)
	h := host{program: program(b, "sallyport"), dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SALLYPORT_HOME=" + filepath.Join(dir, "home"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "GIT_CONFIG_NOSYSTEM=1",
	}}
	must(b, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	must(b, os.WriteFile(filepath.Join(dir, ".gitconfig"), []byte("[user]\nname = P\nemail = p@example.org\n"), 0o644))
	b.Cleanup(func() {
		if out, err := h.try("", "daemon", "stop"); err != nil {
			b.Errorf("daemon stop: %v: %s", err, out)
		}
		must(b, exec.Command("chmod", "-R", "u+rwX", dir).Run())
		must(b, os.RemoveAll(dir))
	})
	return h
}

func (h host) try(dir string, args ...string) (string, error) {
	cmd := exec.Command(h.program, args...)
	cmd.Dir, cmd.Env = dir, h.env
	var said, failed strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &failed
	err := cmd.Run()
	return said.String() + failed.String(), err
}

func (h host) run(b *testing.B, dir string, args ...string) {
	b.Helper()
	if out, err := h.try(dir, args...); err != nil {
		b.Fatalf("sallyport %q: %v: %s", args, err, out)
	}
}

// ask runs a command with --json and reads its answer.
func (h host) ask(b *testing.B, dir string, into any, args ...string) {
	b.Helper()
	cmd := exec.Command(h.program, append(args, "--json")...)
	cmd.Dir, cmd.Env = dir, h.env
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("sallyport %q: %v", args, err)
	}
	must(b, json.Unmarshal(out, into))
}

// latest is the change that was requested last, with the time from its approval to the end of its landing.
func (h host) latest(b *testing.B, dir string) (id string, landing time.Duration) {
	b.Helper()
	var list []struct{ ID string }
	h.ask(b, dir, &list, "change", "list")
	var change struct {
		Approval struct{ At time.Time }
		Landing  struct{ Ended time.Time }
	}
	h.ask(b, dir, &change, "change", "show", list[0].ID)
	return list[0].ID, change.Landing.Ended.Sub(change.Approval.At)
}

// BenchmarkHost measures what a person waits for, with the product's own programs.
func BenchmarkHost(b *testing.B) {
	needs(b, "bwrap", "git")
	eachSize(b, func(b *testing.B, files int) {
		h := newHost(b)
		p, _ := realTree(b, files)
		theirs := filepath.Join(b.TempDir(), "theirs")
		must(b, exec.Command("cp", "-a", p.Top, theirs).Run())
		wt.Git(b, theirs, "update-index", "-q", "--refresh")
		lands(b, h, p.Top, theirs, files)
		wholeRuns(b, h, p.Top, theirs, files)
	})
}

// landingTakes is where the time of a landing goes, as strace saw it: the medians of nine in a tree of 11,478 files, on a machine that did
// nothing else.
const landingTakes = "of 193 ms under strace, at 11,478 files, 45 go by until git starts: the approval, the branch and the rules are read, the landing " +
	"is computed, and the keeper is armed; 27 are git fast-import's, which makes the commit in the host's repository, and 36 git index-pack's, " +
	"which adds it to the person's, with 16 to read it in between; 24 are for the journal and what is laid beside the tree, 37 from the lock of " +
	"the index until it is in its place, with the files exchanged, and 10 to read all again and clear up; the disk's syncs are under 10 of all that"

// lands compares the landing of 50 files, and its undoing, with git's way to the same.
func lands(b *testing.B, h host, top, theirs string, files int) {
	paths := spreadOver(b, top, 50)
	script := "for f in " + strings.Join(paths, " ") + "; do echo '// changed' >> $f; done"
	patch := filepath.Join(b.TempDir(), "patch")
	var took, rolled, applied, reset []time.Duration
	for n := range max(*rounds, 1) + 1 {
		h.run(b, top, "run", "--approve", "yes", "--request", "change 50 files", "--", "sh", "-c", script)
		change, landing := h.latest(b, top)
		must(b, os.WriteFile(patch, []byte(wt.Git(b, top, "diff", "--binary", "HEAD~1", "HEAD")+"\n"), 0o644))
		apply := timed(func() {
			wt.Git(b, theirs, "apply", "--index", patch)
			wt.Git(b, theirs, "commit", "-qm", "x")
		})
		h.run(b, top, "rollback", change, "--approve", "yes")
		_, back := h.latest(b, top)
		hard := timed(func() { wt.Git(b, theirs, "reset", "-q", "--hard", "HEAD~1") })
		if n > 0 { // the first warms both
			took, applied, rolled, reset = append(took, landing), append(applied, apply), append(rolled, back), append(reset, hard)
		}
	}
	record(b, row{path: "landing 50 files, from the approval to the closed journal", size: files,
		ours: "with a backup, a journal, and the keeper watching", rival: "git apply --index && git commit", goal: goalAt{10_000: 0.75, 100_000: 0.25},
		note: "the rival syncs nothing to the disk and cannot go back by itself", why: landingTakes, took: took, rivals: applied})
	record(b, row{path: "rolling 50 files back", size: files,
		ours: "as a landing of its own, verified", rival: "git reset --hard", goal: goalAt{10_000: 1, 100_000: 0.33},
		note: "the rival syncs nothing, verifies nothing, and loses what was not committed",
		why:  "it is a landing of the inverse edits, and takes the same steps", took: rolled, rivals: reset})
}

const wholeTakes = "of 121 ms, at 173 files, 36 are git's, in 16 programs one after another, 12 are the sandbox's, and 11 go by until the daemon " +
	"has the request; the rest is the daemon's own: the rows and the disk's syncs, the walk, the scan, the card, the journal, and the files exchanged. " +
	"At 100,000 files it takes 0.9 s of the processors, and 0.35 of them are git's one look at each file of the person's tree, for what is " +
	"uncommitted; 0.1 are for an index of 10 MB, which is read anew wherever somebody may have written it meanwhile, and is written once"

// wholeRuns compares a whole run of one file with its parts by hand.
func wholeRuns(b *testing.B, h host, top, theirs string, files int) {
	n := 0
	tree := filepath.Join(b.TempDir(), "tree")
	r := row{path: "a whole run of one file, warm", size: files, ours: "sallyport run --approve yes",
		rival: "git worktree add, bwrap, git commit, git merge", goal: goalAt{0: 0.25, 10_000: 0.05}, note: "the rival checks nothing, scans nothing, records nothing", why: wholeTakes}
	inTurn(b, r, func() time.Duration {
		n++
		return timed(func() {
			h.run(b, top, "run", "--approve", "yes", "--request", "one file", "--", "sh", "-c", "echo "+strconv.Itoa(n)+" > one")
		})
	}, func() time.Duration {
		took := timed(func() {
			wt.Git(b, theirs, "worktree", "add", "-q", "-b", "work", tree)
			inBwrap(b, tree, "echo "+strconv.Itoa(n)+" > one")
			wt.Git(b, tree, "add", "-A")
			wt.Git(b, tree, "commit", "-qm", "one file")
			wt.Git(b, theirs, "merge", "-q", "--ff-only", "work")
		})
		wt.Git(b, theirs, "worktree", "remove", "--force", tree)
		wt.Git(b, theirs, "branch", "-qD", "work")
		return took
	})
}

// inBwrap runs a script in bubblewrap alone, on a folder.
func inBwrap(b *testing.B, dir, script string) {
	b.Helper()
	out, err := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
		"--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", dir, "/work", "--chdir", "/work",
		"--die-with-parent", "sh", "-c", script).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// BenchmarkGrowth lands one file again and again, in one repository of the least size and one home.
func BenchmarkGrowth(b *testing.B) {
	needs(b, "bwrap", "git")
	h := newHost(b)
	least, _, _ := strings.Cut(*sizes, ",")
	files, err := strconv.Atoi(least)
	must(b, err)
	p, _ := realTree(b, files)
	for n := range max(*landings, 20) {
		l := landed{n: n + 1, took: timed(func() {
			h.run(b, p.Top, "run", "--approve", "yes", "--request", "landing "+strconv.Itoa(n), "--", "sh", "-c", "echo "+strconv.Itoa(n)+" > one")
		})}
		h.look(b, p.Top, &l)
		series = append(series, l)
	}
	tenth, last := tenTo(20), tenTo(len(series))
	record(b, row{path: fmt.Sprintf("growth: landing %d against landing 20", len(series)), size: files, ours: "the median of the last ten of the series",
		rival: "the median of its landings 11 to 20", goal: goalAt{0: 1.1}, took: last, rivals: tenth})
}

// tenTo are the times of the ten landings up to the n-th.
func tenTo(n int) (out []time.Duration) {
	for _, l := range series[n-10 : n] {
		out = append(out, l.took)
	}
	return out
}

// look counts what there is after a landing.
func (h host) look(b *testing.B, top string, l *landed) {
	b.Helper()
	state := filepath.Join(h.dir, "home", ".state")
	for _, dir := range []string{filepath.Join(state, "repos"), filepath.Join(top, ".git", "objects")} {
		must(b, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // swept meanwhile
				return nil
			case err != nil || d.IsDir():
				return err
			case strings.HasSuffix(path, ".pack"):
				l.packs++
			case len(filepath.Base(filepath.Dir(path))) == 2:
				l.loose++
			}
			return nil
		}))
	}
	layers, err := os.ReadDir(filepath.Join(state, "layers"))
	must(b, err)
	l.layers = len(layers)
	l.refs = strings.Count(wt.Git(b, top, "for-each-ref"), "\n") + 1
	pid := h.daemon(b)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(b, err)
	l.files, l.resident = len(open), resident(b, pid)
}

func (h host) daemon(b *testing.B) int {
	b.Helper()
	var status struct{ PID int }
	h.ask(b, "", &status, "daemon", "status")
	return status.PID
}

// resident is what a process holds of memory, in bytes.
func resident(b *testing.B, pid int) int64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			must(b, err)
			return kb << 10
		}
	}
	b.Fatalf("process %d says not what it holds", pid)
	return 0
}

// waiting is how long each agent waits that waits for its model.
const waiting = 10 * time.Second

const manyTake = "two processors do the work of a hundred changes beside the waiting. Each takes some 140 ms of a processor, at 173 files: half of it is the " +
	"daemon's, two fifths are git's and the sandbox's, and the rest is the command's. That is 7 s of both for a hundred, some of it while others wait yet; to watch those that wait is about a tenth of all that is used"

// BenchmarkManyAgents has many agents wait at once, as they do for their models, and compares with one of them alone.
func BenchmarkManyAgents(b *testing.B) {
	needs(b, "bwrap", "git")
	h := newHost(b)
	home := filepath.Join(h.dir, "home")
	must(b, os.Mkdir(home, 0o700))
	must(b, os.WriteFile(filepath.Join(home, "sallyport.yaml"), fmt.Appendf(nil, "changes: {at_once: %d}\n", *agents), 0o600))
	p, _ := realTree(b, 1000)
	one := func(n int) []string {
		return []string{"run", "--approve", "later", "--request", "wait " + strconv.Itoa(n), "--", "sh", "-c",
			fmt.Sprintf("sleep %d; echo %d > f%d", int(waiting.Seconds()), n, n)}
	}
	awaits := func(n int) {
		out, err := h.try(p.Top, one(n)...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 { // it waits for its approval
			b.Errorf("agent %d: %v: %s", n, err, out)
		}
	}
	awaits(0)
	alone := timed(func() { awaits(0) })
	var peak int64
	pid := h.daemon(b)
	all := timed(func() {
		done := make(chan time.Duration, *agents)
		began := time.Now()
		for n := range *agents {
			go func() {
				awaits(n + 1)
				done <- time.Since(began)
			}()
		}
		for range *agents {
			<-done
			peak = max(peak, resident(b, pid))
		}
	})
	b.ReportMetric(float64(peak)/1e6, "MB")
	record(b, row{path: fmt.Sprintf("%d agents at once that wait for their model", *agents), ours: "until the last of them has a card",
		rival: "one of them alone", goal: goalAt{0: 1.3}, note: fmt.Sprintf("the daemon held %d MB at the most that was seen", peak/1e6), why: manyTake,
		took: []time.Duration{all}, rivals: []time.Duration{alone}})
}

// BenchmarkIdle looks at a daemon that has worked and has nothing to do: its memory after a minute and more, in which it gives back what it
// does not need, and its share of a processor in that time.
func BenchmarkIdle(b *testing.B) {
	needs(b, "bwrap", "git")
	h := newHost(b)
	p, _ := realTree(b, 1000)
	for n := range 5 {
		h.run(b, p.Top, "run", "--approve", "yes", "--request", "work", "--", "sh", "-c", "echo "+strconv.Itoa(n)+" > one")
	}
	pid := h.daemon(b)
	before := worked(b, pid)
	const watched = 70 * time.Second
	<-time.After(watched)
	share := (worked(b, pid) - before).Seconds() / watched.Seconds()
	b.ReportMetric(float64(resident(b, pid))/1e6, "MB")
	b.ReportMetric(share*100, "%processor")
	idle = fmt.Sprintf("A minute after five runs an idle daemon holds %d MB (goal: under 60) and takes %.2f %% of a core (goal: under 0.5).", resident(b, pid)/1e6, share*100)
	write(b)
}

// worked is the processor time of a process so far.
func worked(b *testing.B, pid int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	var ticks int64
	for _, field := range slices.Clone(fields[11:13]) { // of its own, and of the kernel for it
		n, err := strconv.ParseInt(field, 10, 64)
		must(b, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk"
)

func TestReadersThatWaitTooLongAreEndedAndFewWait(t *testing.T) {
	top := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--bare", top).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(top, "objects/pack"), 0o755); err != nil {
		t.Fatal(err)
	}
	d, r := Dir{Path: top}, &Readers{}
	ctx := r.In(t.Context())
	var leased []*reader
	for range readersPerRepo + 2 {
		q := d.reader(ctx)
		if oid, err := q.resolve("refs/heads/none"); err != nil || oid != "" {
			t.Fatalf("%q, %v", oid, err)
		}
		leased = append(leased, q)
	}
	for _, q := range leased {
		q.close()
	}
	if r.count != readersPerRepo || len(r.idle[d.place()]) != readersPerRepo {
		t.Errorf("%d wait", r.count)
	}
	begun := r.idle[d.place()][0].since
	r.sweepIdle(begun.Add(readersIdle - time.Nanosecond))
	if r.count != readersPerRepo {
		t.Errorf("%d wait before their time is over", r.count)
	}
	r.sweepIdle(begun.Add(time.Hour))
	if r.count != 0 || len(r.idle) != 0 {
		t.Errorf("%d wait for ever", r.count)
	}
}

// What waits can be asked again, is of the same repository, and has a reader's whole time before it.
func TestOnlyWhatIsInStepWaits(t *testing.T) {
	p, _, _ := configuredPlace(t)
	d := p.Common(disk.Ops{})
	r := &Readers{}
	ctx := r.In(t.Context())
	lease := func(ctx context.Context) *reader {
		t.Helper()
		q := d.reader(ctx)
		if _, err := q.resolve("refs/heads/none"); err != nil {
			t.Fatal(err)
		}
		return q
	}
	waits := func(what string, want int) {
		t.Helper()
		if r.count != want || len(r.idle[d.place()]) != want || len(r.idle) != min(want, 1) {
			t.Errorf("%s: %d wait, not %d", what, r.count, want)
		}
	}
	q := lease(ctx)
	process := q.proc
	q.close()
	waits("one that has answered", 1)
	q.close() // of nothing
	waits("it twice", 1)

	q = lease(ctx)
	if q.proc != process {
		t.Error("what waited is not asked again")
	}
	waits("none while it is leased", 0)
	q.proc.asked = true
	q.close()
	waits("one that has not answered", 0)

	ended, end := context.WithCancel(ctx)
	q = lease(ended)
	end()
	q.close()
	waits("one whose context has ended", 0)

	q = lease(ctx)
	if _, err := q.proc.stderr.WriteString(strings.Repeat("x", complaintsMax)); err != nil {
		t.Fatal(err)
	}
	q.close()
	waits("one that has complained of much", 1)
	q = lease(ctx)
	if _, err := q.proc.stderr.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	q.close()
	waits("one that has complained of more", 0)

	q = lease(ctx)
	q.proc.ground = nil
	q.close()
	waits("one on no ground", 0)

	aside := d
	aside.Objects = t.TempDir()
	q = aside.reader(ctx)
	if _, err := q.resolve("refs/heads/none"); err != nil {
		t.Fatal(err)
	}
	q.close()
	waits("one that reads what is written aside", 0)

	q = lease(ctx)
	q.close()
	waits("one", 1)
	other := d
	other.Path = filepath.Join(t.TempDir(), "other")
	if r.take(other) != nil {
		t.Error("another repository's is asked")
	}
	put(t, filepath.Join(d.Path, "objects/info/alternates"), "")
	if r.take(d) != nil {
		t.Error("one that began on other ground is asked")
	}
	waits("none on other ground", 0)
}

func TestNoMoreWaitThanAllTogetherMay(t *testing.T) {
	p, _, _ := configuredPlace(t)
	d := p.Common(disk.Ops{})
	for count, waits := range map[int]int{readersMax - 1: readersMax, readersMax: readersMax} {
		r := &Readers{count: count} // as if of others
		q := d.reader(r.In(t.Context()))
		if _, err := q.resolve("refs/heads/none"); err != nil {
			t.Fatal(err)
		}
		q.close()
		if r.count != waits || len(r.idle) != waits-count {
			t.Errorf("beside %d: %d wait", count, r.count)
		}
		r.sweep(func(waiting) bool { return true })
		if r.count != count || len(r.idle) != 0 {
			t.Errorf("beside %d: %d wait after the end", count, r.count)
		}
	}
}

// Those whose time is over end, and those of the same repository whose time is not wait on.
func TestOnlyWhatHasWaitedLongEnoughIsEnded(t *testing.T) {
	p, _, _ := configuredPlace(t)
	d := p.Common(disk.Ops{})
	r := &Readers{}
	ctx := r.In(t.Context())
	var leased []*reader
	for range 2 {
		q := d.reader(ctx)
		if _, err := q.resolve("refs/heads/none"); err != nil {
			t.Fatal(err)
		}
		leased = append(leased, q)
	}
	for _, q := range leased {
		q.close()
	}
	at := r.idle[d.place()][0].since
	r.idle[d.place()][1].since = at.Add(time.Second)
	young := r.idle[d.place()][1].process
	r.sweepIdle(at.Add(readersIdle))
	if list := r.idle[d.place()]; r.count != 1 || len(list) != 1 || list[0].process != young {
		t.Errorf("%d wait", r.count)
	}
	r.sweepIdle(at.Add(time.Second + readersIdle))
	if r.count != 0 || len(r.idle) != 0 {
		t.Errorf("%d wait for ever", r.count)
	}
	if young.cmd.ProcessState == nil {
		t.Error("what was ended has not ended")
	}
}

func TestAReaderThatEndsHoldsNothingOpen(t *testing.T) {
	p, _, _ := configuredPlace(t)
	d := p.Common(disk.Ops{})
	const complaints = "/memfd:complaints (deleted)"
	before := held(t, complaints)
	q := d.reader(t.Context())
	if _, err := q.resolve("refs/heads/none"); err != nil {
		t.Fatal(err)
	}
	if n := held(t, complaints); n != before+1 {
		t.Fatalf("%d are open while it reads", n)
	}
	q.close()
	t.Setenv("PATH", t.TempDir())
	if _, err := d.Resolve(t.Context(), "HEAD"); err == nil {
		t.Error("without git something was read")
	}
	if n := held(t, complaints); n != before {
		t.Errorf("%d are left open", n-before)
	}
}

// watched is a context that counts what waits for its end.
type watched struct {
	context.Context
	done  chan struct{}
	waits int
}

func (w *watched) Done() <-chan struct{} { return w.done }

func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.waits++
	return func() bool { w.waits--; return true }
}

// A context may be a daemon's: what has died and was replaced is nothing for its end any more.
func TestAProcessThatDiedWaitsForTheEndOfNoContext(t *testing.T) {
	p, _, _ := configuredPlace(t)
	w := &watched{Context: t.Context(), done: make(chan struct{})}
	q := p.Common(disk.Ops{}).reader(w)
	for range 3 {
		if _, err := q.resolve("refs/heads/none"); err != nil {
			t.Fatal(err)
		}
		if w.waits != 1 {
			t.Fatalf("%d wait for the end while one reads", w.waits)
		}
		q.proc.kill()
		_, _ = q.proc.cmd.Process.Wait()
	}
	if q.close(); w.waits != 0 {
		t.Errorf("%d wait for the end when nothing reads", w.waits)
	}
}

func TestRunEndsWhatHasWaitedLongEnough(t *testing.T) {
	p, _, _ := configuredPlace(t)
	d := p.Common(disk.Ops{})
	process, err := d.read(true)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := &Readers{}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		waits := func() int {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.count
		}
		r.give(d, process)
		time.Sleep(readersIdle - time.Nanosecond)
		if n := waits(); n != 1 {
			t.Errorf("before its time is over %d wait", n)
		}
		time.Sleep(readersLook)
		if n := waits(); n != 0 {
			t.Errorf("after its time is over %d wait", n)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if process.cmd.ProcessState == nil {
		t.Error("it has not ended")
	}
}

package control_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
)

// act is what one of two clients does, to one of three changes or to the repository that it is for.
type act struct {
	Verb   string
	Of     int  // change
	Arg    int  // which of several
	Beside bool // the next act is another client's, at the same time
}

// verbs of a person, of the machine and of the clock; some stand twice, to be likelier.
var acts = []string{"request", "request", "approve", "approve", "refuse", "cancel", "pause", "resume", "rollback", "rollback", "restore", "redo", "confirm",
	"commit", "fault", "fault", "mend", "restart", "pass", "pass", "jump"}

// beside are those that two clients may do in the same instant here: the others look at a repository, and what waits for a lock of
// git's there waits for time, which stands still while a git runs.
var beside = []string{"approve", "refuse", "cancel", "pause", "resume", "confirm", "restore"}

// world is what a sequence works on.
type world struct {
	*drivetest.Odd
	repos  [2]*drivetest.Home
	c      *control.Controller
	end    func()
	broken atomic.Bool // every operation of a landing fails
	fresh  atomic.Bool // agents write a file that nobody else has
	mends  map[int]func()

	mu    sync.Mutex
	ids   [3][]id.Change // a change, its successors, and their rollbacks
	wrong []string
}

func newWorld(h *drivetest.Home) *world {
	w := &world{Odd: h.Odd(), mends: map[int]func(){}}
	w.Service.Boot, h.Parts.Clock = "first", w.Clock
	other := *h
	other.Repo = h.Repo + "2"
	if err := os.CopyFS(other.Repo, os.DirFS(h.Repo)); err != nil {
		h.T.Fatal(err)
	}
	w.repos = [2]*drivetest.Home{h, &other}
	h.Parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
		if w.broken.Load() {
			return fmt.Errorf("%s: input/output error", op)
		}
		return do()
	}}
	h.Cage.Play = func(n int, tree string, killed <-chan struct{}) int {
		name := []string{"page.txt", "other.txt", fmt.Sprintf("own-%d.txt", n)}[n%3]
		if w.fresh.Load() {
			name = fmt.Sprintf("fresh-%d.txt", n)
		} else if n%2 == 0 { // so that there is something to pause
			select {
			case <-killed:
			case <-time.After(time.Minute):
			}
		}
		if os.WriteFile(filepath.Join(tree, name), fmt.Appendf(nil, "version %d\n", n), 0o644) != nil {
			return 1
		}
		return 0
	}
	w.c, w.end = h.Daemon()
	return w
}

func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// pick is one of the changes of a act; false if there is none yet.
func (w *world) pick(d act) (id.Change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ids[d.Of]) == 0 {
		return "", false
	}
	return w.ids[d.Of][d.Arg%len(w.ids[d.Of])], true
}

func (w *world) add(of int, chg id.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.ids[of], chg) {
		w.ids[of] = append(w.ids[of], chg)
	}
}

func (w *world) request(of int, mode request.Approve, trial *time.Duration) error {
	h := w.repos[of%2]
	r, err := w.c.TakeRequest(h.T.Context(), request.Request{By: h.By(), Text: "Change it", Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"}, Approve: mode, Trial: trial}, nil)
	if err == nil {
		w.add(of, r.Change.ID)
	}
	return err
}

// person does what a person can ask of a change.
func (w *world) person(ctx context.Context, d act) error {
	h, c := w.repos[d.Of%2], w.c
	chg, ok := w.pick(d)
	if !ok || d.Verb == "request" {
		length := []*time.Duration{nil, nil, new(time.Duration), nil}[d.Arg%4]
		if length != nil {
			*length = 2 * time.Minute
		}
		return w.request(d.Of, []request.Approve{request.Later, request.Yes}[d.Arg%2], length)
	}
	seen, err := c.Show(ctx, chg)
	if err != nil {
		return err
	}
	switch d.Verb {
	case "approve", "refuse":
		if seen.Approval == nil || seen.Proposal == nil {
			return nil
		}
		if d.Verb == "refuse" {
			return c.Refuse(ctx, seen.Approval.ID, h.By(), "no")
		}
		return c.Approve(ctx, seen.Approval.ID, seen.Proposal.Digest, h.By(), approve.Words{Via: "command line"})
	case "cancel":
		return c.Cancel(ctx, chg, h.By(), "enough")
	case "pause":
		return c.Pause(ctx, chg, h.By(), "wait")
	case "resume":
		return c.Resume(ctx, chg, h.By())
	case "redo":
		_, err = c.Redo(ctx, chg, h.By(), nil)
		return err
	case "confirm":
		return c.Confirm(ctx, chg, h.By(), "")
	case "rollback":
		row, err := c.Rollback(ctx, chg, h.By(), "", []request.Approve{request.Later, request.Yes}[d.Arg%2])
		if err == nil {
			w.add(d.Of, row.ID)
		}
		return err
	case "restore":
		if n := len(seen.Checkpoints); n > 0 {
			_, err = c.RestoreTo(ctx, seen.Checkpoints[d.Arg%n].ID, h.By())
		}
		return err
	}
	return fmt.Errorf("nobody knows how to %s", d.Verb)
}

// happens does what befalls a repository, a daemon or a machine.
func (w *world) happens(d act) {
	at := d.Of % 2
	h := w.repos[at]
	set := func(what string) func() { w.Fault.Store(&what); return func() { w.Fault.Store(nil) } }
	switch d.Verb {
	case "commit":
		if w.mends[at] == nil {
			path := []string{"page.txt", "other.txt", "theirs.txt"}[d.Arg%3]
			h.Spoil(path, fmt.Sprintf("theirs %d\n", d.Arg))
			h.Git("add", "-A")
			h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "theirs", "--allow-empty")
		}
	case "fault":
		if w.mends[at] != nil {
			return
		}
		w.mends[at] = []func() func(){
			func() func() { return set("rules") }, func() func() { return set("home") }, func() func() { return set("target") }, func() func() { return set("keeper") },
			func() func() { w.broken.Store(true); return func() { w.broken.Store(false) } },
			func() func() { return h.Aside("") }, func() func() { return h.Aside(".git/objects") },
			func() func() { return h.Spoil(".git/config", "[core\n") }, func() func() { return h.Spoil(".git/objects/stray", "x") },
			func() func() { return h.Spoil(".git/index", "none\n") },
		}[d.Arg%10]()
	case "mend":
		w.mend(at)
	case "restart":
		w.end()
		w.c, w.end = h.Daemon()
	case "pass":
		time.Sleep([]time.Duration{time.Second, 20 * time.Second, 3 * time.Minute, 11 * time.Minute}[d.Arg%4])
	case "jump": // the wall clock is set, forth or back; the machine goes on
		w.Service.Set(func(s *drivetest.Service) {
			s.Moved += []time.Duration{time.Hour, -time.Hour, 40 * 24 * time.Hour, -40 * 24 * time.Hour}[d.Arg%4]
		})
	}
}

func (w *world) mend(at int) {
	if mend := w.mends[at]; mend != nil {
		mend()
		delete(w.mends, at)
	}
}

// does does one act, and holds its answer against the rule: what is refused names a way on. What is the machine's fault gets
// one at the door.
func (w *world) does(d act) {
	switch d.Verb {
	case "commit", "fault", "mend", "restart", "pass", "jump":
		w.happens(d)
		return
	}
	ctx, cancel := context.WithTimeout(w.repos[0].T.Context(), time.Hour)
	defer cancel()
	err := w.person(ctx, d)
	if ctx.Err() != nil {
		w.fail("%v was never answered", d)
	}
	if p := problem.KindOf(err); err != nil && p != problem.Internal && p != problem.Unavailable && problem.Of(err).Next == "" {
		w.fail("%v is refused without a way on: %v", d, err)
	}
}

// rows are all changes there are.
func (w *world) rows() []change.Row {
	synctest.Wait()
	rows, err := w.c.List(w.repos[0].T.Context(), change.Filter{Limit: 1000})
	if err != nil {
		w.fail("list: %v", err)
	}
	return rows
}

// rests waits until all that moves by itself has had its time, and fails for whatever is not at its end or a person's turn.
func (w *world) rests(when string) (open []change.Row) {
	time.Sleep(30 * time.Minute)
	for _, row := range w.rows() {
		switch state := row.State; {
		case state.Final():
		case state == change.RollbackFailed && strings.Contains(row.Reason, "sallyport change cancel"), state == change.AwaitingApproval, state == change.Paused, state == change.Blocked:
			open = append(open, row)
			if row.Next == "" {
				w.fail("%s %s is %s (%s), and no way on is named", when, row.ID, row.State, row.Reason)
			}
		default:
			w.fail("%s %s is %s after half an hour (%s, %d attempts)", when, row.ID, row.State, row.Reason, row.Attempts)
		}
	}
	return open
}

// quiet brings everything to its end by what a person can do, and proves that each repository takes a change again.
func (w *world) quiet(approves bool) {
	h := w.repos[0]
	open := w.rests("at the end")
	if approves {
		w.mend(0)
		w.mend(1)
		for _, row := range open {
			if d, err := w.c.Show(h.T.Context(), row.ID); err == nil && row.State == change.AwaitingApproval {
				if err := w.c.Approve(h.T.Context(), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: ""}); err != nil && problem.KindOf(err) != problem.Conflict {
					w.fail("approve %s: %v", row.ID, err)
				}
			}
		}
		open = w.rests("once approved")
	}
	for _, row := range open {
		if err := w.c.Cancel(h.T.Context(), row.ID, h.By(), "enough"); err != nil {
			w.fail("%s is %s (%s) and cannot be cancelled: %v", row.ID, row.State, row.Reason, err)
		}
	}
	for _, row := range w.rows() {
		if !row.State.Final() {
			w.fail("%s is %s (%s) after everything was cancelled", row.ID, row.State, row.Reason)
		}
	}
	w.mend(0)
	w.mend(1)
	w.fresh.Store(true)
	for _, row := range w.rows() { // as gc does
		if d, err := w.c.Show(h.T.Context(), row.ID); err == nil && d.Landing != nil && d.Landing.State == landing.Stranded {
			_, err := h.Parts.Lander.Clear(h.T.Context(), *d.Landing)
			if err != nil {
				w.fail("clear up after %s: %v", row.ID, err)
			}
		}
	}
	for of := range w.repos {
		if err := w.request(of, request.Yes, nil); err != nil {
			w.fail("the repository takes no change any more: %v", err)
			continue
		}
		time.Sleep(time.Minute)
		last := w.ids[of][len(w.ids[of])-1]
		if d, err := w.c.Show(h.T.Context(), last); err != nil || d.Change.State != change.Finalized {
			w.fail("nothing lands any more: %s is %s (%s), %v", last, d.Change.State, d.Change.Reason, err)
		}
	}
}

// Whatever two clients do, and whatever goes wrong: nothing waits for ever, each wait has a way out that works, and nothing is
// refused without one. SALLYPORT_LONG runs many more sequences; -rapid.seed runs one of them again.
func TestNoSequenceOfVerbsAndFaultsEndsInADeadEnd(t *testing.T) {
	sequences := 3
	if os.Getenv("SALLYPORT_LONG") != "" {
		sequences = 100 // as many as rapid runs
	}
	one := rapid.Custom(func(r *rapid.T) act {
		return act{rapid.SampledFrom(acts).Draw(r, "verb"), rapid.IntRange(0, 2).Draw(r, "change"), rapid.IntRange(0, 19).Draw(r, "which"), rapid.Bool().Draw(r, "beside")}
	})
	ran := 0
	check := func(r *rapid.T) {
		if ran >= sequences {
			return
		}
		ran++
		sequence, approves := rapid.SliceOfN(one, 5, 14).Draw(r, "sequence"), rapid.Bool().Draw(r, "approves")
		var wrong []string
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			w := newWorld(h)
			var client sync.WaitGroup
			for i, d := range sequence {
				if d.Beside && i+1 < len(sequence) && slices.Contains(beside, d.Verb) && slices.Contains(beside, sequence[i+1].Verb) {
					client.Go(func() { w.does(d) })
					continue
				}
				w.does(d)
				client.Wait()
				synctest.Wait()
			}
			w.quiet(approves)
			w.end()
			wrong = w.wrong
		})
		if len(wrong) > 0 {
			r.Fatalf("%s", strings.Join(wrong, "\n"))
		}
	}
	rapidtest.Check(t, check)
	t.Logf("%d sequences ran", ran)
}

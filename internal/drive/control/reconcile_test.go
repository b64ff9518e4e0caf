package control_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

func TestAChangeWalksToItsEndByItself(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.AwaitingApproval)
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err != nil {
			t.Fatal(err)
		}
		d = h.Is(c, chg, change.Finalized)
		if raw, err := os.ReadFile(filepath.Join(h.Repo, "page.txt")); err != nil || string(raw) != "two\n" {
			t.Errorf("the page is %q, %v", raw, err)
		}
		if h.HasWorkspace(chg) {
			t.Error("its workspace is left")
		}
		if armed, disarmed := h.Keeper.Told(); armed != 1 || disarmed != 1 {
			t.Errorf("the keeper was armed %d times and disarmed %d times", armed, disarmed)
		}
		want := []string{"requested", "accepted", "prepared", "started", "ended", "checkpointed: valid", "checked", "proposed", "approved", "began landing", "landed"}
		if got := h.Verbs(c, chg); !slices.Equal(got, want) {
			t.Errorf("the audit log says %q, want %q", got, want)
		}
		if d.Change.Attempts != 0 || !d.Change.Due.IsZero() || d.Change.Holder != "" {
			t.Errorf("it is still due: %+v", d.Change)
		}
	})
}

func TestAWorkerThatLostItsLeaseStopsAndWritesNothing(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Hangs("half\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.Working)
		before := h.Verbs(c, chg)
		var stolen change.Row
		h.Tx(func(ctx context.Context, tx store.Tx) error {
			err := tx.ReleaseClaims(ctx, "another")
			if err != nil {
				return err
			}
			row, ok, err := tx.ClaimDue(ctx, "another", time.Now(), time.Hour)
			if err != nil || !ok || row.ID != chg {
				return fmt.Errorf("claimed %v %v, %w", row.ID, ok, err)
			}
			stolen = row
			return nil
		})
		if h.Cage.Alive() != 1 {
			t.Fatal("it stopped before it could know")
		}
		time.Sleep(10 * time.Second) // a third of the lease: when it is renewed
		if h.Cage.Alive() != 0 {
			t.Error("its agent still runs")
		}
		d := h.Is(c, chg, change.Working)
		if d.Change.Holder != "another" || d.Change.Fence != stolen.Fence || d.Change.Attempts != stolen.Attempts || !d.Change.Until.Equal(stolen.Until) {
			t.Errorf("the row is %+v, the new holder has %+v", d.Change, stolen)
		}
		if got := h.Verbs(c, chg); !slices.Equal(got, before) {
			t.Errorf("it still wrote %q", got[len(before):])
		}
	})
}

func TestALeaseIsRenewedForAsLongAsAnAgentWorks(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = func(n int, tree string, killed <-chan struct{}) int {
			select {
			case <-killed:
			case <-time.After(10 * time.Minute):
			}
			return drivetest.Writes("late\n")(n, tree, killed)
		}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		for range 19 {
			time.Sleep(30 * time.Second)
			if d := h.Is(c, chg, change.Working); !d.Change.Until.After(time.Now()) {
				t.Fatalf("its lease ran out at %s", d.Change.Until)
			}
		}
		time.Sleep(31 * time.Second)
		h.Is(c, chg, change.AwaitingApproval)
		if n := len(h.Cage.Starts()); n != 1 {
			t.Errorf("the agent was started %d times", n)
		}
	})
}

func TestACancelledAgentIsStoppedAndItsWorkKept(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Hangs("half\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.Working)
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "enough"); err != nil {
			t.Fatal(err)
		}
		d := h.Is(c, chg, change.Cancelled)
		if h.Cage.Alive() != 0 {
			t.Error("its agent still runs")
		}
		if got := h.Kept(c, len(d.Checkpoints), chg, "page.txt"); got != "half\n" {
			t.Errorf("kept is %q", got)
		}
		if h.HasWorkspace(chg) {
			t.Error("its workspace is left")
		}
		if v := h.Verbs(c, chg); drivetest.Count(v, "asked to cancel") != 1 || drivetest.Count(v, "cancelled") != 1 {
			t.Errorf("the audit log says %q", v)
		}
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "again"); problem.KindOf(err) != problem.Conflict {
			t.Errorf("cancelled twice: %v", err)
		}
	})
}

// slow is a database that takes its time with whatever is written for a person whose context says so.
type slow struct{ store.DB }

type tarrying struct{}

func (s slow) InTx(ctx context.Context, do func(store.Tx) error) error {
	if ctx.Value(tarrying{}) != nil {
		time.Sleep(time.Second)
	}
	return s.DB.InTx(ctx, do)
}

// TestAChangeThatEndsBetweenTwoTriesToCancelItIsCancelled begins the cancel with the change, so that it hears of moves from before its
// first try: then it tries once more, and by then the change has ended as it was asked to.
func TestAChangeThatEndsBetweenTwoTriesToCancelItIsCancelled(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.DB = slow{h.Parts.DB}
		h.Cage.Play = drivetest.Hangs("half\n")
		c, _ := h.Daemon()
		r, err := c.TakeRequest(gittest.Context(t), request.Request{By: h.By(), Text: "Change the page", Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Cancel(context.WithValue(t.Context(), tarrying{}, true), r.Change.ID, h.By(), "enough"); err != nil {
			t.Error(err)
		}
		h.Is(c, r.Change.ID, change.Cancelled)
	})
}

func TestAChangeCancelledAfterItsDaemonDiedKeepsWhatTheAgentDid(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Hangs("half\n")
		c, end := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.Working)
		end()
		waiting := control.New(h.Parts) // it answers before it has taken over
		if err := waiting.Cancel(t.Context(), chg, h.By(), "enough"); err != nil {
			t.Fatal(err)
		}
		c, _ = h.Daemon()
		d := h.Is(c, chg, change.Cancelled)
		if n := len(h.Cage.Starts()); n != 1 {
			t.Errorf("the agent was started %d times", n)
		}
		if got := h.Kept(c, len(d.Checkpoints), chg, "page.txt"); got != "half\n" {
			t.Errorf("kept is %q", got)
		}
		if h.HasWorkspace(chg) {
			t.Error("its workspace is left")
		}
	})
}

func TestASessionThatDiedWithItsDaemonHasAnEndAndAReason(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Hangs("half\n")
		c, end := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.Working)
		end()
		c, _ = h.Daemon()
		d := h.Is(c, chg, change.Working)
		if len(d.Sessions) != 2 || d.Sessions[1].Ended != nil {
			t.Fatalf("the sessions are %+v", d.Sessions)
		}
		if s := d.Sessions[0]; s.Ended == nil || s.Exit != nil || !strings.HasPrefix(s.Reason, "interrupted") {
			t.Errorf("the first session is %+v", s)
		}
		if !strings.Contains(d.Change.Reason, string(d.Sessions[0].ID)+" was interrupted") {
			t.Errorf("the change does not say so: %q", d.Change.Reason)
		}
		if v := h.Verbs(c, chg); drivetest.Count(v, "interrupted") != 1 {
			t.Errorf("the audit log says %q", v)
		}
	})
}

func TestWhyAChangeIsPausedIsNotWhyItsCheckpointIsTaken(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Hangs("half\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.Working)
		if err := c.Pause(gittest.Context(t), chg, h.By(), "let me look"); err != nil {
			t.Fatal(err)
		}
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "enough"); err != nil {
			t.Fatal(err)
		}
		d := h.Is(c, chg, change.Cancelled)
		if p := problem.Of(c.Resume(gittest.Context(t), chg, h.By())); p.Next != "sallyport resume "+string(d.Sessions[0].ID) {
			t.Errorf("it is resumed with %q", p.Next)
		}
		all, err := c.Audit(gittest.Context(t), "", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		taken := 0
		for _, e := range all {
			if strings.HasPrefix(e.Verb, "checkpointed") {
				taken++
				if e.Reason != "" {
					t.Errorf("%s: %q", e.Verb, e.Reason)
				}
			}
		}
		if taken == 0 {
			t.Error("nothing was recorded")
		}
	})
}

func TestAPausedSessionThatDiedWithItsDaemonIsNotSaidToWork(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Hangs("half\n")
		c, end := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.Working)
		if err := c.Pause(gittest.Context(t), chg, h.By(), "let me look"); err != nil {
			t.Fatal(err)
		}
		end()
		c, _ = h.Daemon()
		d := h.Is(c, chg, change.Paused)
		if s := d.Sessions[0]; s.Ended == nil || s.Reason == "" || d.Change.Reason != "let me look" {
			t.Errorf("the session is %+v, the change says %q", s, d.Change.Reason)
		}
	})
}

func TestWhatTheMachineIsToBlameForIsTriedAgainWithLongerAndLongerWaits(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Refuse = func(int) error {
			return problem.Errorf(problem.Unavailable, "sallyport doctor", "no sandbox can be had")
		}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		for attempt := 1; attempt < 3; attempt++ {
			d := h.Is(c, chg, change.Working)
			if d.Change.Attempts != attempt || d.Change.Reason == "" {
				t.Errorf("after attempt %d the row says %d: %q", attempt, d.Change.Attempts, d.Change.Reason)
			}
			if wait := time.Second << (attempt - 1); !d.Change.Due.Equal(time.Now().Add(wait).Truncate(time.Millisecond)) {
				t.Errorf("after attempt %d it is due in %s, want %s", attempt, time.Until(d.Change.Due), wait)
			}
			time.Sleep(time.Until(d.Change.Due))
		}
		d := h.Is(c, chg, change.Failed)
		if d.Change.Problem != string(problem.Unavailable) || d.Change.Next != "sallyport doctor" {
			t.Errorf("it says %q: %q, next %q", d.Change.Problem, d.Change.Reason, d.Change.Next)
		}
		time.Sleep(time.Hour)
		if synctest.Wait(); len(h.Cage.Starts()) != 3 {
			t.Errorf("started %d times, want 3", len(h.Cage.Starts()))
		}
		if h.HasWorkspace(chg) {
			t.Error("its workspace is left")
		}
	})
}

func TestAfterAPassingFaultTheAgentWorksOnACleanCopy(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Fault = func(n int) error {
			if n == 1 {
				return problem.Errorf(problem.Unavailable, "sallyport doctor", "its end could not be shown")
			}
			return nil
		}
		h.Cage.Play = func(n int, tree string, killed <-chan struct{}) int {
			if raw, err := os.ReadFile(filepath.Join(tree, "page.txt")); err != nil || string(raw) != "one\n" {
				t.Errorf("start %d finds %q, %v", n, raw, err)
			}
			return drivetest.Writes(fmt.Sprintf("start %d\n", n))(n, tree, killed)
		}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(2 * time.Second)
		if d := h.Is(c, chg, change.AwaitingApproval); d.Change.Attempts != 0 || d.Change.Reason != "" || len(d.Checkpoints) != 2 {
			t.Errorf("it says %q after %d attempts, with %d checkpoints", d.Change.Reason, d.Change.Attempts, len(d.Checkpoints))
		}
		for n := 1; n <= 2; n++ {
			if got, want := h.Kept(c, n, chg, "page.txt"), fmt.Sprintf("start %d\n", n); got != want {
				t.Errorf("checkpoint %d keeps %q, want %q", n, got, want)
			}
		}
	})
}

func TestARefusalIsAnAnswerAndNotTriedAgain(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = func(int, string, <-chan struct{}) int { return 7 }
		c, _ := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.Failed)
		if d.Change.Problem != string(problem.AgentFailed) || len(h.Cage.Starts()) != 1 {
			t.Errorf("it says %q after %d starts", d.Change.Problem, len(h.Cage.Starts()))
		}
	})
}

func TestAnAgentThatIsInterruptedThreeTimesIsNotStartedAgain(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = func(n int, tree string, killed <-chan struct{}) int {
			if _, err := os.Stat(filepath.Join(tree, "half.txt")); err == nil {
				t.Errorf("start %d finds what an earlier one left", n)
			}
			if err := os.WriteFile(filepath.Join(tree, "half.txt"), []byte(fmt.Sprintf("start %d\n", n)), 0o644); err != nil {
				t.Error(err)
			}
			<-killed
			return 0
		}
		c, end := h.Daemon()
		chg := h.Ask(c)
		for range 3 {
			if d := h.Is(c, chg, change.Working); d.Change.Attempts != 0 {
				t.Errorf("a daemon's end counts as a failed attempt: %d, %q", d.Change.Attempts, d.Change.Reason)
			}
			end()
			c, end = h.Daemon()
			synctest.Wait()
		}
		d := h.Is(c, chg, change.Failed)
		if n := len(h.Cage.Starts()); n != 3 {
			t.Errorf("the agent was started %d times, want 3", n)
		}
		if d.Change.Problem != string(problem.AgentFailed) {
			t.Errorf("it says %q: %q", d.Change.Problem, d.Change.Reason)
		}
		if len(d.Sessions) != 3 || len(d.Checkpoints) != 3 {
			t.Fatalf("%d sessions and %d checkpoints, want 3 of each", len(d.Sessions), len(d.Checkpoints))
		}
		for i := range d.Sessions {
			if got, want := h.Kept(c, i+1, chg, "half.txt"), fmt.Sprintf("start %d\n", i+1); got != want || d.Checkpoints[i].Session != d.Sessions[i].ID {
				t.Errorf("checkpoint %d of %s keeps %q, want %q", i+1, d.Checkpoints[i].Session, got, want)
			}
		}
		if h.HasWorkspace(chg) {
			t.Error("its workspace is left")
		}
	})
}

func TestNoMoreAgentsWorkAtOnceThanTheHomeSays(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = func(n int, tree string, killed <-chan struct{}) int {
			select {
			case <-killed:
			case <-time.After(time.Minute):
			}
			return drivetest.Writes(fmt.Sprint(n, "\n"))(n, tree, killed)
		}
		c, _ := h.Daemon()
		for range 5 {
			h.Ask(c)
		}
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		rows, err := c.List(gittest.Context(t), change.Filter{States: []change.State{change.AwaitingApproval}})
		if err != nil || len(rows) != 5 {
			t.Errorf("%d of 5 changes wait for a person, %v", len(rows), err)
		}
		if _, most := h.Cage.Now(); most != 2 {
			t.Errorf("%d agents worked at once, want 2", most)
		}
	})
}

func TestADeadDaemonsLeaseOnTheRepositoryIsNotWaitedFor(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		first := h.Ask(c)
		if err := c.Cancel(gittest.Context(t), first, h.By(), ""); err != nil {
			t.Fatal(err)
		}
		d := h.Is(c, first, change.Cancelled)
		h.Tx(func(ctx context.Context, tx store.Tx) error { // as if it had died before it gave it back
			_, _, err := tx.TakeLease(ctx, "repo:"+d.Change.Request.Project.CommonDir, string(first), time.Now(), time.Hour)
			return err
		})
		r, err := c.TakeRequest(gittest.Context(t), request.Request{By: h.By(), Text: "Change the page", Project: d.Change.Request.Project, Agent: "played", Argv: []string{"true"}, Approve: request.Yes}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Is(c, r.Change.ID, change.Finalized)
	})
}

func TestALockThatSomebodyElseHoldsBringsTheChangeBackWithTheirName(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.AwaitingApproval)
		folder, err := os.Open(filepath.Join(h.Repo, ".git"))
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if err := unix.Flock(int(folder.Fd()), unix.LOCK_SH); err != nil {
			t.Fatal(err)
		}
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d = h.Is(c, chg, change.AwaitingApproval)
		if want := fmt.Sprintf("process %d (", os.Getpid()); !strings.Contains(d.Change.Reason, want) || d.Change.Next == "" {
			t.Errorf("it says %q, next %q", d.Change.Reason, d.Change.Next)
		}
		folder.Close()
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err != nil {
			t.Fatal(err)
		}
		h.Is(c, chg, change.Finalized)
	})
}

// A command that is slow to come back and watch what it asked for sees the checkpoint, and all before it.
func TestWhoAskedForAChangeMissesNothingOfItHoweverLateTheyWatch(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.AwaitingApproval)
		told := func() (words []string) {
			notices, err := c.Watch(gittest.Context(t), chg)
			if err != nil {
				t.Fatal(err)
			}
			for n := range notices {
				if n.Kind == "state" {
					words = append(words, string(n.State))
				} else if n.Kind == "checkpoint" {
					words = append(words, n.Kind)
				}
			}
			return words
		}
		if got, want := told(), []string{"requested", "preparing", "working", "checkpoint", "submitted", "awaiting_approval"}; !slices.Equal(got, want) {
			t.Errorf("the first was told %q, want %q", got, want)
		}
		if got, want := told(), []string{"awaiting_approval"}; !slices.Equal(got, want) {
			t.Errorf("the second was told %q, want %q", got, want)
		}
		// What went on from where it rested is told from where it is.
		chg = h.Ask(c)
		d := h.Is(c, chg, change.AwaitingApproval)
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err != nil {
			t.Fatal(err)
		}
		h.Is(c, chg, change.Finalized)
		if got, want := told(), []string{"finalized"}; !slices.Equal(got, want) {
			t.Errorf("after a rest: %q, want %q", got, want)
		}
	})
}

package control_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
)

// checkedBy has programs that are no check run agent, and every check look at the tree; it counts the checks.
func (h *home) checkedBy(agent func(tree string) int, check func(tree string) int) *atomic.Int32 {
	ran := &atomic.Int32{}
	h.cage.program = func(spec sandbox.Spec, killed <-chan struct{}) int {
		if len(spec.Argv) == 3 && spec.Argv[1] == "-c" {
			ran.Add(1)
			return check(spec.Tree.Dir)
		}
		return agent(spec.Tree.Dir)
	}
	return ran
}

// askWithCheck requests a change with one check, and waits as ask does.
func (h *home) askWithCheck(c *control.Controller, approve request.Approve) id.Change {
	h.t.Helper()
	r, err := c.Request(h.t.Context(), request.Request{
		By: h.by(), Text: "Change the page", Project: git.Project{Top: h.repo}, Agent: "played", Argv: []string{"true"},
		Approve: approve, Checks: []string{"make test"},
	}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

// commits is a person's own commit of one file.
func (h *home) commits(name, text, subject string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.repo, name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
	h.git("add", "--", name)
	h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", subject)
}

// put writes a file of a tree.
func put(tree, name, text string) int {
	if os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644) != nil {
		return 1
	}
	return 0
}

// together fails where both files are there: each alone is green.
func both(names ...string) func(tree string) int {
	return func(tree string) int {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(tree, name)); err != nil {
				return 0
			}
		}
		return 1
	}
}

func TestTwoGreenChangesDoNotMakeARedBranch(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		next := "a"
		h.checkedBy(func(tree string) int { return put(tree, next, "x\n") }, both("a", "b"))
		c, _ := h.daemon()
		first := h.askWithCheck(c, request.Later)
		next = "b"
		second := h.askWithCheck(c, request.Later)
		h.yes(c, first)
		h.is(c, first, change.Finalized)
		before := h.git("rev-parse", "main")
		h.yes(c, second)
		d := h.is(c, second, change.AwaitingApproval)
		if h.git("rev-parse", "main") != before {
			t.Fatal("it landed, and the branch is red")
		}
		card := d.Proposal.Card
		if len(card.Checks) != 1 || card.Checks[0].OK || card.ChecksOn == nil || string(card.ChecksOn.Head) != before {
			t.Errorf("the card has the checks %+v on %+v", card.Checks, card.ChecksOn)
		}
		for _, want := range []string{"main has moved", `the check "make test" failed`} {
			if !strings.Contains(d.Change.Reason, want) {
				t.Errorf("the reason %q does not say %q", d.Change.Reason, want)
			}
		}
		if m := card.Moved; m == nil || m.Commits != 1 || len(m.Subjects) != 1 || !slices.Equal(m.Paths, []string{"a"}) || m.PathsTotal != 1 || m.Rewritten {
			t.Errorf("by what it moved: %+v", m)
		}
	})
}

func TestWhatWasApprovedBeforehandIsCheckedOnWhatLands(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.checkedBy(func(tree string) int {
			h.commits("a", "x\n", "meanwhile")
			return put(tree, "b", "x\n")
		}, both("a", "b"))
		c, _ := h.daemon()
		chg := h.askWithCheck(c, request.Yes)
		d := h.is(c, chg, change.AwaitingApproval)
		if !strings.Contains(d.Change.Reason, "main has moved") || d.Landing != nil {
			t.Errorf("it is %q, with the landing %+v", d.Change.Reason, d.Landing)
		}
	})
}

func TestChecksRunOnceForATreeThatWouldLand(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		ran := h.checkedBy(func(tree string) int { return put(tree, "b", "x\n") }, both("a", "b"))
		c, _ := h.daemon()
		chg := h.askWithCheck(c, request.Later)
		h.commits("a", "x\n", "in the way")
		h.yes(c, chg)
		h.is(c, chg, change.AwaitingApproval)
		h.yes(c, chg) // the same tree again
		h.is(c, chg, change.AwaitingApproval)
		if ran.Load() != 2 {
			t.Errorf("checks ran %d times: on the proposed tree and on what results makes 2", ran.Load())
		}
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "rm", "-q", "a")
		h.commits("c", "x\n", "out of the way")
		h.yes(c, chg)
		d := h.is(c, chg, change.Finalized)
		if ran.Load() != 3 {
			t.Errorf("checks ran %d times, want 3", ran.Load())
		}
		tree := h.git("rev-parse", "main^{tree}")
		if string(d.Landing.Checked) != tree || string(d.Landing.NewTree) != tree || tree == string(d.Proposal.Tree) {
			t.Errorf("checked is %s, landed is %s, proposed was %s", d.Landing.Checked, tree, d.Proposal.Tree)
		}
		if verbs := h.verbs(c, chg); count(verbs, "passed a check on what lands") != 1 {
			t.Errorf("the audit log says %q", verbs)
		}
	})
}

func TestABranchThatNeverRestsIsNotLandedOn(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		n := 0
		ran := h.checkedBy(func(tree string) int { return put(tree, "b", "x\n") }, func(string) int {
			if n++; n > 1 {
				h.commits("a", fmt.Sprint(n), "again")
			}
			return 0
		})
		c, _ := h.daemon()
		chg := h.askWithCheck(c, request.Later)
		h.commits("a", "x\n", "first")
		h.yes(c, chg)
		d := h.is(c, chg, change.AwaitingApproval)
		if ran.Load() != 6 || !strings.Contains(d.Change.Reason, "moves faster") || d.Landing != nil {
			t.Errorf("after %d checks it is %q", ran.Load(), d.Change.Reason)
		}
	})
}

func TestChecksOfWhatLandsHoldUpNobodyAndEndWithTheDaemonOrByAPerson(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		next := "b"
		agent := h.checkedBy(func(tree string) int { return put(tree, next, "x\n") }, func(string) int { return 0 })
		plain := h.cage.program
		h.cage.program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if agent.Load() > 0 && slices.Contains(spec.Argv, "make test") {
				<-killed
			}
			return plain(spec, killed)
		}
		c, end := h.daemon()
		chg := h.askWithCheck(c, request.Later)
		h.commits("a", "x\n", "meanwhile")
		h.yes(c, chg)
		if d := h.is(c, chg, change.Landing); !strings.Contains(d.Change.Reason, "the checks run on the tree that would land") {
			t.Errorf("it waits and says %q", d.Change.Reason)
		}
		next = "c"
		other := h.ask(c) // without a check
		h.yes(c, other)
		h.is(c, other, change.Finalized)
		end()
		c, _ = h.daemon()
		h.is(c, chg, change.Landing)
		if err := c.Cancel(t.Context(), chg, h.by(), "too slow"); err != nil {
			t.Fatal(err)
		}
		h.is(c, chg, change.Cancelled)
	})
}

func TestWithoutChecksOrWithoutAMoveNothingRunsBeforeALanding(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		next := "b"
		ran := h.checkedBy(func(tree string) int { return put(tree, next, "x\n") }, func(string) int { return 0 })
		c, _ := h.daemon()
		chg := h.ask(c)
		h.commits("a", "x\n", "meanwhile")
		h.yes(c, chg)
		if d := h.is(c, chg, change.Finalized); ran.Load() != 0 || d.Landing.Checked != "" {
			t.Errorf("%d checks ran, on %q", ran.Load(), d.Landing.Checked)
		}
		next = "c"
		chg = h.askWithCheck(c, request.Later)
		if m := h.show(c, chg).Proposal.Card.Moved; m != nil {
			t.Errorf("the branch stands still, and the card says %+v", m)
		}
		h.yes(c, chg)
		if d := h.is(c, chg, change.Finalized); ran.Load() != 1 || d.Landing.Checked != d.Proposal.Tree {
			t.Errorf("%d checks ran, on %q", ran.Load(), d.Landing.Checked)
		}
	})
}

func TestACardSaysByWhatTheBranchHasMoved(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = writes("two\n")
		c, _ := h.daemon()
		chg := h.ask(c)
		for i := range 7 {
			h.commits(fmt.Sprintf("f%d", i), "x\n", fmt.Sprintf("Commit %d", i))
		}
		h.commits("page.txt", "three\n", "Mine")
		_, p, err := c.Approval(t.Context(), string(chg))
		if err != nil {
			t.Fatal(err)
		}
		m := p.Card.Moved
		if m == nil || m.Commits != 8 || !slices.Equal(m.Subjects, []string{"Mine", "Commit 6", "Commit 5", "Commit 4", "Commit 3"}) || m.PathsTotal != 8 {
			t.Errorf("moved: %+v", m)
		}
		if len(p.Card.Drift) != 1 || !strings.Contains(p.Card.Drift[0], "page.txt changed on main") {
			t.Errorf("drift: %q", p.Card.Drift)
		}
		if d := h.show(c, chg); d.Proposal.Digest != p.Digest || d.Approval.Digest != p.Digest {
			t.Error("what is approved is another digest because the branch moved")
		}
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--amend", "--allow-empty", "-m", "amended")
		h.git("reset", "-q", "--hard", "HEAD~8")
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--amend", "-m", "Another first")
		if m := h.show(c, chg).Proposal.Card.Moved; m == nil || !m.Rewritten || m.Commits != 1 {
			t.Errorf("of a branch that was rewritten it says %+v", m)
		}
	})
}

// A landing refuses to be another tree than the one that the checks ran on, whoever computed it.
func TestALandingOfAnotherTreeThanTheCheckedOneIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = writes("two\n")
		c, _ := h.daemon()
		d := h.is(c, h.ask(c), change.AwaitingApproval)
		order := landing.Order{
			Landing: "lnd-00000001", Change: d.Change.ID, Project: d.Change.Request.Project, Branch: "main", WorkTree: true,
			Base: d.Proposal.Base, Edits: d.Proposal.Edits, Source: d.Proposal.Commit, Message: "m\n", Author: h.parts.Settings.Author, Committer: h.parts.Settings.Author,
		}
		l, err := h.parts.Lander.Compute(t.Context(), order)
		if err != nil {
			t.Fatal(err)
		}
		l.Checked = git.OID(strings.Repeat("1", 40))
		journaled := false
		_, err = h.parts.Lander.Land(t.Context(), l, landing.Steps{Journal: func(landing.Landing) error { journaled = true; return nil }})
		if err == nil || journaled || !strings.Contains(err.Error(), "the checks ran on") {
			t.Errorf("journaled %v, %v", journaled, err)
		}
	})
}

// laws are rules that change.
type laws struct{ rules atomic.Pointer[rules] }

func (l *laws) At(ctx context.Context, project git.Project, dir git.Dir, commit git.OID) (grounds.Judging, error) {
	return l.rules.Load().At(ctx, project, dir, commit)
}

func (l *laws) Load(ctx context.Context, dir git.Dir, commit git.OID, edits []git.Edit) ([]policy.Violation, error) {
	return l.rules.Load().Load(ctx, dir, commit, edits)
}

func TestChecksByOtherRulesHoldUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		next, slow := "b", atomic.Bool{}
		h.checkedBy(func(tree string) int { return put(tree, next, "x\n") }, func(string) int { return 0 })
		plain := h.cage.program
		h.cage.program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if slow.Load() && slices.Contains(spec.Argv, "make test") {
				<-killed
			}
			return plain(spec, killed)
		}
		now := &laws{}
		now.rules.Store(&rules{})
		h.parts.Rules = now
		c, _ := h.daemon()
		chg := h.askWithCheck(c, request.Later)
		now.rules.Store(&rules{judging: grounds.Judging{Rules: policy.Rules{PathsMax: 7}}})
		slow.Store(true)
		h.yes(c, chg)
		if d := h.is(c, chg, change.Landing); !strings.Contains(d.Change.Reason, "the rules have changed since this was approved: the checks run") {
			t.Errorf("it waits and says %q", d.Change.Reason)
		}
		next = "c"
		other := h.ask(c) // without a check
		h.yes(c, other)
		h.is(c, other, change.Finalized)
		if err := c.Cancel(t.Context(), chg, h.by(), "too slow"); err != nil {
			t.Fatal(err)
		}
		h.is(c, chg, change.Cancelled)
	})
}

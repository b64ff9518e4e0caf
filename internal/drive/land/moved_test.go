package land_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
)

func TestTwoGreenChangesDoNotMakeARedBranch(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		next := "a"
		h.CheckedBy(func(tree string) int { return drivetest.Put(tree, next, "x\n") }, drivetest.Both("a", "b"))
		c, _ := h.Daemon()
		first := h.AskWithCheck(c, request.Later)
		next = "b"
		second := h.AskWithCheck(c, request.Later)
		h.Yes(c, first)
		h.Is(c, first, change.Finalized)
		before := h.Git("rev-parse", "main")
		h.Yes(c, second)
		d := h.Is(c, second, change.AwaitingApproval)
		if h.Git("rev-parse", "main") != before {
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
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.CheckedBy(func(tree string) int {
			h.Commits("a", "x\n", "meanwhile")
			return drivetest.Put(tree, "b", "x\n")
		}, drivetest.Both("a", "b"))
		c, _ := h.Daemon()
		chg := h.AskWithCheck(c, request.Yes)
		d := h.Is(c, chg, change.AwaitingApproval)
		if !strings.Contains(d.Change.Reason, "main has moved") || d.Landing != nil {
			t.Errorf("it is %q, with the landing %+v", d.Change.Reason, d.Landing)
		}
	})
}

func TestChecksRunOnceForATreeThatWouldLand(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		ran := h.CheckedBy(func(tree string) int { return drivetest.Put(tree, "b", "x\n") }, drivetest.Both("a", "b"))
		c, _ := h.Daemon()
		chg := h.AskWithCheck(c, request.Later)
		h.Commits("a", "x\n", "in the way")
		h.Yes(c, chg)
		h.Is(c, chg, change.AwaitingApproval)
		h.Yes(c, chg) // the same tree again
		h.Is(c, chg, change.AwaitingApproval)
		if ran.Load() != 2 {
			t.Errorf("checks ran %d times: on the proposed tree and on what results makes 2", ran.Load())
		}
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "rm", "-q", "a")
		h.Commits("c", "x\n", "out of the way")
		h.Yes(c, chg)
		d := h.Is(c, chg, change.Finalized)
		if ran.Load() != 3 {
			t.Errorf("checks ran %d times, want 3", ran.Load())
		}
		tree := h.Git("rev-parse", "main^{tree}")
		if string(d.Landing.Checked) != tree || string(d.Landing.NewTree) != tree || tree == string(d.Proposal.Tree) {
			t.Errorf("checked is %s, landed is %s, proposed was %s", d.Landing.Checked, tree, d.Proposal.Tree)
		}
		if verbs := h.Verbs(c, chg); drivetest.Count(verbs, "passed a check on what lands") != 1 {
			t.Errorf("the audit log says %q", verbs)
		}
	})
}

func TestABranchThatNeverRestsIsNotLandedOn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		n := 0
		ran := h.CheckedBy(func(tree string) int { return drivetest.Put(tree, "b", "x\n") }, func(string) int {
			if n++; n > 1 {
				h.Commits("a", fmt.Sprint(n), "again")
			}
			return 0
		})
		c, _ := h.Daemon()
		chg := h.AskWithCheck(c, request.Later)
		h.Commits("a", "x\n", "first")
		h.Yes(c, chg)
		d := h.Is(c, chg, change.AwaitingApproval)
		if ran.Load() != 6 || !strings.Contains(d.Change.Reason, "moves faster") || d.Landing != nil {
			t.Errorf("after %d checks it is %q", ran.Load(), d.Change.Reason)
		}
	})
}

func TestChecksOfWhatLandsHoldUpNobodyAndEndWithTheDaemonOrByAPerson(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		next := "b"
		agent := h.CheckedBy(func(tree string) int { return drivetest.Put(tree, next, "x\n") }, func(string) int { return 0 })
		plain := h.Cage.Program
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if agent.Load() > 0 && slices.Contains(spec.Argv, "make test") {
				<-killed
			}
			return plain(spec, killed)
		}
		c, end := h.Daemon()
		chg := h.AskWithCheck(c, request.Later)
		h.Commits("a", "x\n", "meanwhile")
		h.Yes(c, chg)
		if d := h.Is(c, chg, change.Landing); !strings.Contains(d.Change.Reason, "the checks run on the tree that would land") {
			t.Errorf("it waits and says %q", d.Change.Reason)
		}
		next = "c"
		other := h.Ask(c) // without a check
		h.Yes(c, other)
		h.Is(c, other, change.Finalized)
		end()
		c, _ = h.Daemon()
		h.Is(c, chg, change.Landing)
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "too slow"); err != nil {
			t.Fatal(err)
		}
		h.Is(c, chg, change.Cancelled)
	})
}

func TestWithoutChecksOrWithoutAMoveNothingRunsBeforeALanding(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		next := "b"
		ran := h.CheckedBy(func(tree string) int { return drivetest.Put(tree, next, "x\n") }, func(string) int { return 0 })
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Commits("a", "x\n", "meanwhile")
		h.Yes(c, chg)
		if d := h.Is(c, chg, change.Finalized); ran.Load() != 0 || d.Landing.Checked != "" {
			t.Errorf("%d checks ran, on %q", ran.Load(), d.Landing.Checked)
		}
		next = "c"
		chg = h.AskWithCheck(c, request.Later)
		if m := h.Show(c, chg).Proposal.Card.Moved; m != nil {
			t.Errorf("the branch stands still, and the card says %+v", m)
		}
		h.Yes(c, chg)
		if d := h.Is(c, chg, change.Finalized); ran.Load() != 1 || d.Landing.Checked != d.Proposal.Tree {
			t.Errorf("%d checks ran, on %q", ran.Load(), d.Landing.Checked)
		}
	})
}

func TestACardSaysByWhatTheBranchHasMoved(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		for i := range 7 {
			h.Commits(fmt.Sprintf("f%d", i), "x\n", fmt.Sprintf("Commit %d", i))
		}
		h.Commits("page.txt", "three\n", "Use ghp_"+"9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi")
		_, p, err := c.Approval(gittest.Context(t), string(chg))
		if err != nil {
			t.Fatal(err)
		}
		m := p.Card.Moved
		if m == nil || m.Commits != 8 || !slices.Equal(m.Subjects, []string{"Use [secret: github-token]", "Commit 6", "Commit 5", "Commit 4", "Commit 3"}) || m.PathsTotal != 8 {
			t.Errorf("moved: %+v", m)
		}
		if len(p.Card.Drift) != 1 || !strings.Contains(p.Card.Drift[0], "page.txt changed on main") {
			t.Errorf("drift: %q", p.Card.Drift)
		}
		if d := h.Show(c, chg); d.Proposal.Digest != p.Digest || d.Approval.Digest != p.Digest {
			t.Error("what is approved is another digest because the branch moved")
		}
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--amend", "--allow-empty", "-m", "amended")
		h.Git("reset", "-q", "--hard", "HEAD~8")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--amend", "-m", "Another first")
		if m := h.Show(c, chg).Proposal.Card.Moved; m == nil || !m.Rewritten || m.Commits != 1 {
			t.Errorf("of a branch that was rewritten it says %+v", m)
		}
	})
}

// A landing refuses to be another tree than the one that the checks ran on, whoever computed it.
func TestALandingOfAnotherTreeThanTheCheckedOneIsRefused(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		d := h.Is(c, h.Ask(c), change.AwaitingApproval)
		order := landing.Order{
			Landing: "lnd-00000001", Change: d.Change.ID, Project: d.Change.Request.Project, Branch: "main", WorkTree: true,
			Base: d.Proposal.Base, Edits: d.Proposal.Edits, Source: d.Proposal.Commit, Message: "m\n", Author: h.Parts.Settings.Author, Committer: h.Parts.Settings.Author,
		}
		l, err := h.Parts.Lander.Compute(t.Context(), order)
		if err != nil {
			t.Fatal(err)
		}
		l.Checked = git.OID(strings.Repeat("1", 40))
		journaled := false
		_, err = h.Parts.Lander.Land(t.Context(), l, landing.Steps{Journal: func(landing.Landing) error { journaled = true; return nil }})
		if err == nil || journaled || !strings.Contains(err.Error(), "the checks ran on") {
			t.Errorf("journaled %v, %v", journaled, err)
		}
	})
}

func TestChecksByOtherRulesHoldUpNobody(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		next, slow := "b", atomic.Bool{}
		h.CheckedBy(func(tree string) int { return drivetest.Put(tree, next, "x\n") }, func(string) int { return 0 })
		plain := h.Cage.Program
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if slow.Load() && slices.Contains(spec.Argv, "make test") {
				<-killed
			}
			return plain(spec, killed)
		}
		now := &drivetest.Laws{}
		now.Rules.Store(&drivetest.Rules{})
		h.Parts.Rules = now
		c, _ := h.Daemon()
		chg := h.AskWithCheck(c, request.Later)
		now.Rules.Store(&drivetest.Rules{Judging: grounds.Judging{Rules: policy.Rules{PathsMax: 7}}})
		slow.Store(true)
		h.Yes(c, chg)
		if d := h.Is(c, chg, change.Landing); !strings.Contains(d.Change.Reason, "the rules have changed since this was approved: the checks run") {
			t.Errorf("it waits and says %q", d.Change.Reason)
		}
		next = "c"
		other := h.Ask(c) // without a check
		h.Yes(c, other)
		h.Is(c, other, change.Finalized)
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "too slow"); err != nil {
			t.Fatal(err)
		}
		h.Is(c, chg, change.Cancelled)
	})
}

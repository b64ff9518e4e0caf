package redo_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

func read(t *testing.T, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestEditsThatStillFitAreOfferedAgainWithoutTheirAgent(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Commits("page.txt", drivetest.Pages(), "nine lines")
		h.Cage.Play = func(_ int, tree string, _ <-chan struct{}) int {
			return drivetest.Put(tree, "page.txt", drivetest.Pages("1", "agent")) + drivetest.Put(tree, "new", "agent\n")
		}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Commits("page.txt", drivetest.Pages("9", "ann"), "Mine")
		h.Yes(c, chg)
		before := h.Is(c, chg, change.AwaitingApproval)
		if before.Change.Next != "sallyport change redo "+string(chg) || !strings.Contains(before.Change.Reason, "page.txt") {
			t.Errorf("after drift it says %q, next: %q", before.Change.Reason, before.Change.Next)
		}
		h.Redo(c, chg)
		d := h.Is(c, chg, change.AwaitingApproval)
		if n := len(h.Cage.Starts()); n != 1 {
			t.Errorf("its agent ran %d times", n)
		}
		if d.Proposal.Number <= before.Proposal.Number || string(d.Proposal.Base) != h.Git("rev-parse", "main") || d.Proposal.Card.Moved != nil || len(d.Proposal.Card.Drift) != 0 {
			t.Errorf("the new card is %+v", d.Proposal)
		}
		if err := c.Approve(gittest.Context(t), before.Approval.ID, before.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err == nil {
			t.Error("the old card can still be approved")
		}
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		if got := read(t, h.Repo, "page.txt"); got != drivetest.Pages("1", "agent", "9", "ann") {
			t.Errorf("what landed is\n%s", got)
		}
		if out := h.Git("status", "--porcelain"); out != "" {
			t.Errorf("git status says %q", out)
		}
	})
}

func TestAnAgentIsToldWhatDidNotApplyAndGoesOnAsWhoItWas(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Commits("page.txt", drivetest.Pages(), "nine lines")
		heard := make(chan string, 10)
		h.Parts.Agents["played"] = drivetest.Played{Messages: true}
		h.Cage.Hear = func(line string, _ io.Writer) { heard <- line }
		runs := 0
		h.CheckedBy(func(tree string) int {
			if runs++; runs == 1 {
				return drivetest.Put(tree, "page.txt", drivetest.Pages("1", "agent", "5", "agent")) + drivetest.Put(tree, "new", "agent\n")
			}
			if got := read(t, tree, "page.txt"); got != drivetest.Pages("5", "ann") {
				t.Errorf("it goes on with\n%s", got)
			}
			if got := read(t, tree, "new"); got != "agent\n" {
				t.Errorf("what applied is %q", got)
			}
			line := <-heard
			for _, want := range []string{"main has moved since you began", "page.txt: both sides changed the same lines", `<<<<<<< main\nann`, `agent\n>>>>>>> your edit`} {
				if !strings.Contains(line, want) && !strings.Contains(line, strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(want)) {
					t.Errorf("it was not told %q: %s", want, line)
				}
			}
			return drivetest.Put(tree, "page.txt", drivetest.Pages("1", "agent", "5", "ann and agent"))
		}, func(string) int { return 0 })
		c, _ := h.Daemon()
		chg := h.Collides(c)
		first := h.Show(c, chg)
		h.Redo(c, chg)
		d := h.Is(c, chg, change.AwaitingApproval)
		if len(d.Sessions) != 1 || d.Sessions[0].ID != first.Sessions[0].ID || d.Sessions[0].Attempt != 2 {
			t.Errorf("its sessions are %+v", d.Sessions)
		}
		if all, err := c.Approvals(gittest.Context(t), false, 0); err != nil || !slices.ContainsFunc(all, func(a approval.Approval) bool {
			return a.ID == first.Approval.ID && a.Decision == approval.Void
		}) {
			t.Errorf("the approvals are %+v, %v", all, err)
		}
		_, err := c.RestoreTo(gittest.Context(t), first.Checkpoints[0].ID, h.By())
		if problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "earlier commit") {
			t.Errorf("going back to a checkpoint of the old base: %v", err)
		}
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		if got := read(t, h.Repo, "page.txt"); got != drivetest.Pages("1", "agent", "5", "ann and agent") {
			t.Errorf("what landed is\n%s", got)
		}
	})
}

// A branch that is still to be made stands where the one stands that the change was begun on.
func TestWhatIsToLandOnANewBranchIsDoneAgainWhereItWasBegun(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		r, err := c.TakeRequest(gittest.Context(t), request.Request{By: h.By(), Text: "x", Project: git.Project{Top: h.Repo}, Onto: "new", Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Is(c, r.Change.ID, change.AwaitingApproval)
		h.Commits("theirs", "x\n", "Theirs")
		h.Redo(c, r.Change.ID)
		d := h.Is(c, r.Change.ID, change.AwaitingApproval)
		if main := h.Git("rev-parse", "main"); d.Change.Base != main {
			t.Errorf("it stands on %s, and main is %s", d.Change.Base, main)
		}
	})
}

func TestAProgramThatCannotBeToldBeginsAnewOnTheBranchAsItIs(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Commits("page.txt", drivetest.Pages(), "nine lines")
		h.CheckedBy(func(tree string) int {
			if _, err := os.Stat(filepath.Join(tree, "new")); err == nil {
				t.Error("it finds what it did before, and would do it twice")
			}
			return drivetest.Put(tree, "new", "agent\n") + drivetest.Put(tree, "page.txt", strings.Replace(read(t, tree, "page.txt"), "5", "five", 1)+"agent\n")
		}, func(string) int { return 0 })
		c, _ := h.Daemon()
		chg := h.AskWithCheck(c, request.Later)
		h.Is(c, chg, change.AwaitingApproval)
		h.Commits("page.txt", drivetest.Pages("5", "15"), "Mine")
		h.Redo(c, chg)
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		if got := read(t, h.Repo, "page.txt"); got != drivetest.Pages("5", "1five")+"agent\n" {
			t.Errorf("what landed is\n%s", got)
		}
	})
}

// What was valid on the old base would take back what the branch has got since.
func TestAProgramThatBeginsAnewGoesBackToItsNewBaseAndNotToItsOldWork(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Commits("page.txt", drivetest.Pages(), "nine lines")
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{Strategy: session.Shadow})
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", drivetest.Pages("5", "agent"))
		}, func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("docs/new.md", "forbidden\n")
			after(40 * time.Second)
			if got := s.Read("page.txt"); got != drivetest.Pages("5", "ann") {
				t.Errorf("it goes back to\n%s", got)
			}
			s.Write("new", "agent\n")
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.AwaitingApproval)
		h.Commits("page.txt", drivetest.Pages("5", "ann"), "Mine")
		h.Redo(c, chg)
		time.Sleep(3 * time.Minute)
		if d := h.Is(c, chg, change.AwaitingApproval); !slices.Contains(drivetest.Statuses(d), "interval invalid") {
			t.Errorf("its checkpoints are %q", drivetest.Statuses(d))
		}
	})
}

func TestAnAgentIsToldWhichCheckFailedOnWhatWouldLand(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		heard := make(chan string, 10)
		h.Parts.Agents["played"] = drivetest.Played{Messages: true}
		h.Cage.Hear = func(line string, _ io.Writer) { heard <- line }
		runs := 0
		h.CheckedBy(func(tree string) int {
			if runs++; runs == 1 {
				return drivetest.Put(tree, "b", "x\n")
			}
			if line := <-heard; !strings.Contains(line, "make test") || !strings.Contains(line, "failed there") {
				t.Errorf("it was told %s", line)
			}
			if err := os.Rename(filepath.Join(tree, "b"), filepath.Join(tree, "c")); err != nil {
				t.Error(err)
			}
			return 0
		}, drivetest.Both("a", "b"))
		c, _ := h.Daemon()
		chg := h.AskWithCheck(c, request.Later)
		h.Commits("a", "x\n", "Mine")
		h.Yes(c, chg)
		h.Is(c, chg, change.AwaitingApproval)
		h.Redo(c, chg)
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		if files := h.Git("ls-files"); files != "a\nc\npage.txt" {
			t.Errorf("the branch has %q", files)
		}
	})
}

// keeping is an agent with a home of its own; it notes how it is told to go on.
type keeping struct {
	drivetest.Played
	told *agent.Resumed
}

func (k *keeping) Program(task agent.Task) (agent.Program, error) {
	if task.Resumed != nil {
		k.told = task.Resumed
	}
	return agent.Program{Name: "played", Argv: []string{"true"}, Keeps: true}, nil
}

func TestAnAgentThatKeepsWhatItKnowsIsToldWithItsTask(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Commits("page.txt", drivetest.Pages(), "nine lines")
		k := &keeping{}
		h.Parts.Agents["played"] = k
		h.CheckedBy(func(tree string) int {
			return drivetest.Put(tree, "page.txt", drivetest.Pages("5", "agent"))
		}, func(string) int { return 0 })
		c, _ := h.Daemon()
		chg := h.Collides(c)
		h.Redo(c, chg)
		h.Is(c, chg, change.AwaitingApproval)
		if k.told == nil || !strings.Contains(k.told.Files, "page.txt") || !strings.Contains(k.told.Why, "has moved") {
			t.Errorf("it was told %+v", k.told)
		}
	})
}

func TestWhatNeedNotOrCannotBeDoneAgainIsRefusedWithAWayOn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		refused := func(chg id.Change, words, next string) {
			t.Helper()
			_, err := c.Redo(gittest.Context(t), chg, h.By(), nil)
			if problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), words) || !strings.HasPrefix(problem.Of(err).Next, next) {
				t.Errorf("redo: %v, next %q", err, problem.Of(err).Next)
			}
		}
		chg := h.Ask(c)
		refused(chg, "has not moved", "sallyport approve "+string(chg))
		h.Commits("page.txt", "two\n", "The same")
		refused(chg, "has all edits of", "sallyport approve "+string(chg))
		h.Cage.Play = drivetest.Writes("three\n")
		landed := h.Ask(c)
		h.Yes(c, landed)
		refused(landed, "has landed", "sallyport change show")
		undo := h.Undo(c, landed, request.Later)
		refused(undo, "is a rollback", "sallyport change cancel")
		h.Cage.Play = drivetest.Hangs("four\n")
		working := h.Ask(c)
		refused(working, "is working", "sallyport change show")
		if err := c.Cancel(gittest.Context(t), working, h.By(), ""); err != nil {
			t.Fatal(err)
		}
		refused(working, "has no proposal that could be redone", "sallyport resume")
	})
}

// Whatever ends a change that is being done again, its session goes on upon the new base, not on the tree of the old one.
func TestASessionThatIsResumedAfterARedoKeepsWhatTheBranchHasGot(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Commits("page.txt", drivetest.Pages(), "nine lines")
		runs := 0
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			switch runs++; runs {
			case 1:
				return drivetest.Put(spec.Tree.Dir, "page.txt", drivetest.Pages("1", "agent", "5", "agent"))
			case 2:
				<-killed
				return 1
			}
			if _, err := os.Stat(filepath.Join(spec.Tree.Dir, "theirs")); err != nil {
				t.Error(err)
			}
			return drivetest.Put(spec.Tree.Dir, "new", "x\n")
		}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.AwaitingApproval)
		h.Commits("theirs", "x\n", "Theirs")
		h.Commits("page.txt", drivetest.Pages("5", "ann"), "Mine")
		h.Redo(c, chg)
		d := h.Is(c, chg, change.Working)
		if all, err := c.Approvals(gittest.Context(t), true, 0); err != nil || len(all) > 0 {
			t.Errorf("what was asked before is still asked: %+v, %v", all, err)
		}
		if err := c.Cancel(gittest.Context(t), chg, h.By(), ""); err != nil {
			t.Fatal(err)
		}
		h.Is(c, chg, change.Cancelled)
		if _, err := c.ResumeSession(gittest.Context(t), d.Sessions[0].ID, h.By(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		if got := read(t, h.Repo, "page.txt"); got != drivetest.Pages("5", "ann") {
			t.Errorf("what landed is\n%s", got)
		}
		h.Git("cat-file", "-e", "main:theirs")
	})
}

func TestEachKindOfEditAppliesOrIsNamed(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		for name, text := range map[string]string{"same": "a\n", "gone": "a\n", "deleted": "a\n", "bin": "a\x00b", "file": "a\n", "mode": "a\n", "big": strings.Repeat("line\n", 300_000)} {
			h.Commits(name, text, "Base")
		}
		edit := func(dir, who string) int {
			err := os.Remove(filepath.Join(dir, "file"))
			if err == nil && who == "agent" {
				err = os.Mkdir(filepath.Join(dir, "file"), 0o755)
			}
			if err != nil {
				t.Error(err)
			}
			n := drivetest.Put(dir, "both", who+"\n") + drivetest.Put(dir, "alike", "alike\n") + drivetest.Put(dir, "bin", who+"\x00") + drivetest.Put(dir, "big", who+"\n"+strings.Repeat("line\n", 300_000))
			if who == "agent" {
				n += drivetest.Put(dir, "file/inner", "x\n") + drivetest.Put(dir, "gone", "agent\n") + drivetest.Put(dir, "mode", "agent\n")
				if err := os.Remove(filepath.Join(dir, "deleted")); err != nil {
					t.Error(err)
				}
				return n
			}
			if err := os.Chmod(filepath.Join(dir, "mode"), 0o755); err != nil {
				t.Error(err)
			}
			return n + drivetest.Put(dir, "file", "ann\n") + drivetest.Put(dir, "deleted", "ann\n")
		}
		runs := 0
		heard, told := make(chan string, 10), make(chan string, 1)
		h.Cage.Play = func(_ int, tree string, _ <-chan struct{}) int {
			if runs++; runs > 1 {
				told <- <-heard // one that ended before would never hear it
				return 0
			}
			return edit(tree, "agent")
		}
		h.Parts.Agents["played"] = drivetest.Played{Messages: true}
		h.Cage.Hear = func(line string, _ io.Writer) { heard <- line }
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.AwaitingApproval)
		edit(h.Repo, "ann")
		h.Git("rm", "-q", "gone")
		h.Git("add", "-A")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "All of it")
		h.Redo(c, chg)
		d := h.Is(c, chg, change.AwaitingApproval)
		line := <-told
		for _, want := range []string{"both: both sides changed the same lines", "bin: both sides changed it, and it cannot be merged", "big: both sides changed it, and it is too large",
			"gone: you changed it, and it was deleted", "deleted: you deleted it, and it was changed", "file/inner: a file is there"} {
			if !strings.Contains(line, want) {
				t.Errorf("it was not told %q", want)
			}
		}
		if strings.Contains(line, "alike") || strings.Contains(line, "- mode") {
			t.Errorf("what applies is told: %s", line)
		}
		edits := map[string]git.Mode{}
		for _, e := range d.Proposal.Edits {
			edits[e.Path] = e.New.Mode
		}
		if len(edits) != 1 || edits["mode"] != git.Executable {
			t.Errorf("what applied is %v", edits)
		}
		if last := d.Checkpoints[len(d.Checkpoints)-1]; last.Status != checkpoint.Valid || last.Base != d.Proposal.Base {
			t.Errorf("the last checkpoint is %+v", last)
		}
	})
}

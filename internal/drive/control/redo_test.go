package control_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// pages is a file of nine lines with some of them said otherwise.
func pages(other ...string) string {
	var b strings.Builder
	for n := 1; n <= 9; n++ {
		line := fmt.Sprint(n)
		for i := 0; i+1 < len(other); i += 2 {
			if other[i] == line {
				line = other[i+1]
				break
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (h *home) redo(c *control.Controller, chg id.Change) {
	h.t.Helper()
	if _, err := c.Redo(h.t.Context(), chg, h.by(), nil); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
}

func TestEditsThatStillFitAreOfferedAgainWithoutTheirAgent(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.commits("page.txt", pages(), "nine lines")
		h.cage.play = func(_ int, tree string, _ <-chan struct{}) int {
			return put(tree, "page.txt", pages("1", "agent")) + put(tree, "new", "agent\n")
		}
		c, _ := h.daemon()
		chg := h.ask(c)
		h.commits("page.txt", pages("9", "ann"), "Mine")
		h.yes(c, chg)
		before := h.is(c, chg, change.AwaitingApproval)
		if before.Change.Next != "sallyport change redo "+string(chg) || !strings.Contains(before.Change.Reason, "page.txt") {
			t.Errorf("after drift it says %q, next: %q", before.Change.Reason, before.Change.Next)
		}
		h.redo(c, chg)
		d := h.is(c, chg, change.AwaitingApproval)
		if n := len(h.cage.starts()); n != 1 {
			t.Errorf("its agent ran %d times", n)
		}
		if d.Proposal.Number <= before.Proposal.Number || string(d.Proposal.Base) != h.git("rev-parse", "main") || d.Proposal.Card.Moved != nil || len(d.Proposal.Card.Drift) != 0 {
			t.Errorf("the new card is %+v", d.Proposal)
		}
		if err := c.Approve(t.Context(), before.Approval.ID, before.Proposal.Digest, h.by(), approve.Words{Via: "command line"}); err == nil {
			t.Error("the old card can still be approved")
		}
		h.yes(c, chg)
		h.is(c, chg, change.Finalized)
		if got := read(t, h.repo, "page.txt"); got != pages("1", "agent", "9", "ann") {
			t.Errorf("what landed is\n%s", got)
		}
		if out := h.git("status", "--porcelain"); out != "" {
			t.Errorf("git status says %q", out)
		}
	})
}

// collides brings a change and its branch to differ in line 5, and returns the change as it waits.
func (h *home) collides(c *control.Controller) id.Change {
	h.t.Helper()
	chg := h.askWithCheck(c, request.Later)
	h.is(c, chg, change.AwaitingApproval)
	h.commits("page.txt", pages("5", "ann"), "Mine")
	return chg
}

func TestAnAgentIsToldWhatDidNotApplyAndGoesOnAsWhoItWas(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.commits("page.txt", pages(), "nine lines")
		heard := make(chan string, 10)
		h.parts.Agents["played"] = played{messages: true}
		h.cage.hear = func(line string, _ io.Writer) { heard <- line }
		runs := 0
		h.checkedBy(func(tree string) int {
			if runs++; runs == 1 {
				return put(tree, "page.txt", pages("1", "agent", "5", "agent")) + put(tree, "new", "agent\n")
			}
			if got := read(t, tree, "page.txt"); got != pages("5", "ann") {
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
			return put(tree, "page.txt", pages("1", "agent", "5", "ann and agent"))
		}, func(string) int { return 0 })
		c, _ := h.daemon()
		chg := h.collides(c)
		first := h.show(c, chg)
		h.redo(c, chg)
		d := h.is(c, chg, change.AwaitingApproval)
		if len(d.Sessions) != 1 || d.Sessions[0].ID != first.Sessions[0].ID || d.Sessions[0].Attempt != 2 {
			t.Errorf("its sessions are %+v", d.Sessions)
		}
		if all, err := c.Approvals(t.Context(), false); err != nil || !slices.ContainsFunc(all, func(a approval.Approval) bool {
			return a.ID == first.Approval.ID && a.Decision == approval.Void
		}) {
			t.Errorf("the approvals are %+v, %v", all, err)
		}
		_, err := c.RestoreTo(t.Context(), first.Checkpoints[0].ID, h.by())
		if problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "earlier commit") {
			t.Errorf("going back to a checkpoint of the old base: %v", err)
		}
		h.yes(c, chg)
		h.is(c, chg, change.Finalized)
		if got := read(t, h.repo, "page.txt"); got != pages("1", "agent", "5", "ann and agent") {
			t.Errorf("what landed is\n%s", got)
		}
	})
}

// A branch that is still to be made stands where the one stands that the change was begun on.
func TestWhatIsToLandOnANewBranchIsDoneAgainWhereItWasBegun(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = writes("two\n")
		c, _ := h.daemon()
		r, err := c.Request(t.Context(), request.Request{By: h.by(), Text: "x", Project: git.Project{Top: h.repo}, Onto: "new", Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.is(c, r.Change.ID, change.AwaitingApproval)
		h.commits("theirs", "x\n", "Theirs")
		h.redo(c, r.Change.ID)
		d := h.is(c, r.Change.ID, change.AwaitingApproval)
		if main := h.git("rev-parse", "main"); d.Change.Base != main {
			t.Errorf("it stands on %s, and main is %s", d.Change.Base, main)
		}
	})
}

func TestAProgramThatCannotBeToldBeginsAnewOnTheBranchAsItIs(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.commits("page.txt", pages(), "nine lines")
		h.checkedBy(func(tree string) int {
			if _, err := os.Stat(filepath.Join(tree, "new")); err == nil {
				t.Error("it finds what it did before, and would do it twice")
			}
			return put(tree, "new", "agent\n") + put(tree, "page.txt", strings.Replace(read(t, tree, "page.txt"), "5", "five", 1)+"agent\n")
		}, func(string) int { return 0 })
		c, _ := h.daemon()
		chg := h.askWithCheck(c, request.Later)
		h.is(c, chg, change.AwaitingApproval)
		h.commits("page.txt", pages("5", "15"), "Mine")
		h.redo(c, chg)
		h.yes(c, chg)
		h.is(c, chg, change.Finalized)
		if got := read(t, h.repo, "page.txt"); got != pages("5", "1five")+"agent\n" {
			t.Errorf("what landed is\n%s", got)
		}
	})
}

// What was valid on the old base would take back what the branch has got since.
func TestAProgramThatBeginsAnewGoesBackToItsNewBaseAndNotToItsOldWork(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.commits("page.txt", pages(), "nine lines")
		h.parts.Rules = forbidding(session.Supervision{Strategy: session.Shadow})
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", pages("5", "agent"))
		}, func(s *scene, after func(time.Duration) bool) {
			s.write("docs/new.md", "forbidden\n")
			after(40 * time.Second)
			if got := s.read("page.txt"); got != pages("5", "ann") {
				t.Errorf("it goes back to\n%s", got)
			}
			s.write("new", "agent\n")
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		h.is(c, chg, change.AwaitingApproval)
		h.commits("page.txt", pages("5", "ann"), "Mine")
		h.redo(c, chg)
		time.Sleep(3 * time.Minute)
		if d := h.is(c, chg, change.AwaitingApproval); !slices.Contains(statuses(d), "interval invalid") {
			t.Errorf("its checkpoints are %q", statuses(d))
		}
	})
}

func TestAnAgentIsToldWhichCheckFailedOnWhatWouldLand(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		heard := make(chan string, 10)
		h.parts.Agents["played"] = played{messages: true}
		h.cage.hear = func(line string, _ io.Writer) { heard <- line }
		runs := 0
		h.checkedBy(func(tree string) int {
			if runs++; runs == 1 {
				return put(tree, "b", "x\n")
			}
			if line := <-heard; !strings.Contains(line, "make test") || !strings.Contains(line, "failed there") {
				t.Errorf("it was told %s", line)
			}
			if err := os.Rename(filepath.Join(tree, "b"), filepath.Join(tree, "c")); err != nil {
				t.Error(err)
			}
			return 0
		}, both("a", "b"))
		c, _ := h.daemon()
		chg := h.askWithCheck(c, request.Later)
		h.commits("a", "x\n", "Mine")
		h.yes(c, chg)
		h.is(c, chg, change.AwaitingApproval)
		h.redo(c, chg)
		h.yes(c, chg)
		h.is(c, chg, change.Finalized)
		if files := h.git("ls-files"); files != "a\nc\npage.txt" {
			t.Errorf("the branch has %q", files)
		}
	})
}

// keeping is an agent with a home of its own; it notes how it is told to go on.
type keeping struct {
	played
	told *agent.Resumed
}

func (k *keeping) Program(task agent.Task) (agent.Program, error) {
	if task.Resumed != nil {
		k.told = task.Resumed
	}
	return agent.Program{Name: "played", Argv: []string{"true"}, Keeps: true}, nil
}

func TestAnAgentThatKeepsWhatItKnowsIsToldWithItsTask(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.commits("page.txt", pages(), "nine lines")
		k := &keeping{}
		h.parts.Agents["played"] = k
		h.checkedBy(func(tree string) int {
			return put(tree, "page.txt", pages("5", "agent"))
		}, func(string) int { return 0 })
		c, _ := h.daemon()
		chg := h.collides(c)
		h.redo(c, chg)
		h.is(c, chg, change.AwaitingApproval)
		if k.told == nil || !strings.Contains(k.told.Files, "page.txt") || !strings.Contains(k.told.Why, "has moved") {
			t.Errorf("it was told %+v", k.told)
		}
	})
}

func TestWhatNeedNotOrCannotBeDoneAgainIsRefusedWithAWayOn(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = writes("two\n")
		c, _ := h.daemon()
		refused := func(chg id.Change, words, next string) {
			t.Helper()
			_, err := c.Redo(t.Context(), chg, h.by(), nil)
			if problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), words) || !strings.HasPrefix(problem.Of(err).Next, next) {
				t.Errorf("redo: %v, next %q", err, problem.Of(err).Next)
			}
		}
		chg := h.ask(c)
		refused(chg, "has not moved", "sallyport approve "+string(chg))
		h.commits("page.txt", "two\n", "The same")
		refused(chg, "has all edits of", "sallyport approve "+string(chg))
		h.cage.play = writes("three\n")
		landed := h.ask(c)
		h.yes(c, landed)
		refused(landed, "has landed", "sallyport change show")
		undo := h.undo(c, landed, request.Later)
		refused(undo, "is a rollback", "sallyport change cancel")
		h.cage.play = hangs("four\n")
		working := h.ask(c)
		refused(working, "is working", "sallyport change show")
		if err := c.Cancel(t.Context(), working, h.by(), ""); err != nil {
			t.Fatal(err)
		}
		refused(working, "has no proposal that could be redone", "sallyport resume")
	})
}

// Whatever ends a change that is being done again, its session goes on upon the new base, not on the tree of the old one.
func TestASessionThatIsResumedAfterARedoKeepsWhatTheBranchHasGot(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.commits("page.txt", pages(), "nine lines")
		runs := 0
		h.cage.program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			switch runs++; runs {
			case 1:
				return put(spec.Tree.Dir, "page.txt", pages("1", "agent", "5", "agent"))
			case 2:
				<-killed
				return 1
			}
			if _, err := os.Stat(filepath.Join(spec.Tree.Dir, "theirs")); err != nil {
				t.Error(err)
			}
			return put(spec.Tree.Dir, "new", "x\n")
		}
		c, _ := h.daemon()
		chg := h.ask(c)
		h.is(c, chg, change.AwaitingApproval)
		h.commits("theirs", "x\n", "Theirs")
		h.commits("page.txt", pages("5", "ann"), "Mine")
		h.redo(c, chg)
		d := h.is(c, chg, change.Working)
		if all, err := c.Approvals(t.Context(), true); err != nil || len(all) > 0 {
			t.Errorf("what was asked before is still asked: %+v, %v", all, err)
		}
		if err := c.Cancel(t.Context(), chg, h.by(), ""); err != nil {
			t.Fatal(err)
		}
		h.is(c, chg, change.Cancelled)
		if _, err := c.ResumeSession(t.Context(), d.Sessions[0].ID, h.by(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.yes(c, chg)
		h.is(c, chg, change.Finalized)
		if got := read(t, h.repo, "page.txt"); got != pages("5", "ann") {
			t.Errorf("what landed is\n%s", got)
		}
		h.git("cat-file", "-e", "main:theirs")
	})
}

func TestEachKindOfEditAppliesOrIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		for name, text := range map[string]string{"same": "a\n", "gone": "a\n", "deleted": "a\n", "bin": "a\x00b", "file": "a\n", "mode": "a\n", "big": strings.Repeat("line\n", 300_000)} {
			h.commits(name, text, "Base")
		}
		edit := func(dir, who string) int {
			err := os.Remove(filepath.Join(dir, "file"))
			if err == nil && who == "agent" {
				err = os.Mkdir(filepath.Join(dir, "file"), 0o755)
			}
			if err != nil {
				t.Error(err)
			}
			n := put(dir, "both", who+"\n") + put(dir, "alike", "alike\n") + put(dir, "bin", who+"\x00") + put(dir, "big", who+"\n"+strings.Repeat("line\n", 300_000))
			if who == "agent" {
				n += put(dir, "file/inner", "x\n") + put(dir, "gone", "agent\n") + put(dir, "mode", "agent\n")
				if err := os.Remove(filepath.Join(dir, "deleted")); err != nil {
					t.Error(err)
				}
				return n
			}
			if err := os.Chmod(filepath.Join(dir, "mode"), 0o755); err != nil {
				t.Error(err)
			}
			return n + put(dir, "file", "ann\n") + put(dir, "deleted", "ann\n")
		}
		runs := 0
		heard, told := make(chan string, 10), make(chan string, 1)
		h.cage.play = func(_ int, tree string, _ <-chan struct{}) int {
			if runs++; runs > 1 {
				told <- <-heard // one that ended before would never hear it
				return 0
			}
			return edit(tree, "agent")
		}
		h.parts.Agents["played"] = played{messages: true}
		h.cage.hear = func(line string, _ io.Writer) { heard <- line }
		c, _ := h.daemon()
		chg := h.ask(c)
		h.is(c, chg, change.AwaitingApproval)
		edit(h.repo, "ann")
		h.git("rm", "-q", "gone")
		h.git("add", "-A")
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "All of it")
		h.redo(c, chg)
		d := h.is(c, chg, change.AwaitingApproval)
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

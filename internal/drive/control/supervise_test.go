package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
)

// forbidding are rules under which docs may not change, watched as mode says.
func forbidding(mode session.Supervision) rules {
	return rules{judging: grounds.Judging{Rules: policy.Rules{ForbiddenAreas: []string{"docs"}}, Supervision: mode}}
}

// scene is what a played agent does: at times after its start it writes files, and it ends when told.
type scene struct {
	t    *testing.T
	tree string
}

func (s *scene) write(path, text string) {
	path = filepath.Join(s.tree, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		s.t.Error(err)
	}
}

func (s *scene) read(path string) string {
	raw, err := os.ReadFile(filepath.Join(s.tree, path))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// acts is a program that does a scene and ends with status 0; it stops where it stands when it is killed.
func (h *home) acts(scenes ...func(s *scene, after func(time.Duration) bool)) {
	h.cage.play = func(n int, tree string, killed <-chan struct{}) int {
		after := func(d time.Duration) bool {
			select {
			case <-killed:
				return false
			case <-time.After(d):
				return true
			}
		}
		scenes[min(n, len(scenes))-1](&scene{t: h.t, tree: tree}, after)
		return 0
	}
}

// statuses are the verdicts of a change's checkpoints with their triggers, in order.
func statuses(d view.Detail) (out []string) {
	for _, cp := range d.Checkpoints {
		out = append(out, string(cp.Trigger)+" "+string(cp.Status))
	}
	return out
}

func TestACheckpointIsDueAfterHalfAMinuteOrFiftyChanges(t *testing.T) {
	for _, c := range []struct {
		name  string
		files int
		wait  time.Duration
		want  []string
	}{
		{"few, and not long", 49, 29 * time.Second, []string{"end valid"}},
		{"few, and long", 1, 33 * time.Second, []string{"interval valid", "end valid"}},
		{"many, and not long", 50, 10 * time.Second, []string{"changes valid", "end valid"}},
		{"many, and hardly begun", 50, 4 * time.Second, []string{"end valid"}},
		{"nothing", 0, 90 * time.Second, []string{"end valid"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.acts(func(s *scene, after func(time.Duration) bool) {
					for i := range c.files {
						s.write(filepath.Join("new", strings.Repeat("x", i+1)), "new\n")
					}
					after(c.wait)
				})
				d, _ := h.daemon()
				chg := h.ask(d)
				time.Sleep(c.wait + time.Minute)
				if got := statuses(h.show(d, chg)); !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestAFileThatBreaksARuleIsPutBackUnderTheAgentsFeet(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{RevertOnViolated: true})
		saw := make(chan string, 2)
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", "good\n")
			s.write("docs/new.md", "bad\n")
			if after(40 * time.Second) {
				saw <- s.read("docs/new.md")
				saw <- s.read("page.txt")
				s.write("page.txt", "good, and more\n")
				after(40 * time.Second)
			}
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(3 * time.Minute)
		d := h.is(c, chg, change.AwaitingApproval)
		if got := <-saw; !strings.Contains(got, "no such file") {
			t.Errorf("the agent still reads %q in the forbidden file", got)
		}
		if got := <-saw; got != "good\n" {
			t.Errorf("its good work is %q", got)
		}
		want := []string{"interval invalid", "restored valid", "interval valid", "end valid"}
		if got := statuses(d); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		if got := h.kept(c, 3, chg, "page.txt"); got != "good, and more\n" {
			t.Errorf("what it wrote after that is %q in the next checkpoint", got)
		}
		if n := len(h.cage.starts()); n != 1 {
			t.Errorf("it was started %d times", n)
		}
	})
}

func TestALinkIsRemovedWhateverElseIsAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{})
		saw := make(chan string, 2)
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("docs/new.md", "bad\n")
			if err := os.Symlink("/etc/hostname", filepath.Join(s.tree, "link")); err != nil {
				s.t.Error(err)
			}
			after(40 * time.Second)
			_, err := os.Lstat(filepath.Join(s.tree, "link"))
			saw <- fmt.Sprint(err)
			saw <- s.read("docs/new.md")
		})
		c, _ := h.daemon()
		h.ask(c)
		time.Sleep(3 * time.Minute)
		if link, doc := <-saw, <-saw; !strings.Contains(link, "no such file") || doc != "bad\n" {
			t.Errorf("after the checkpoint the link is %q and the other file %q", link, doc)
		}
	})
}

func TestAnInvalidShadowGoesBackAsAWholeAndOnlyValidWorkIsOffered(t *testing.T) {
	for _, c := range []struct {
		promotion session.Promotion
		other     string // what else the agent wrote beside the forbidden file
		said      string // to who watches
	}{{session.Atomic, "no such file", "sallyport restored all files"}, {session.Incremental, "harmless\n", "what broke a rule in ckpt-"}} {
		t.Run(string(c.promotion), func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.parts.Rules = forbidding(session.Supervision{Strategy: session.Shadow, Promotion: c.promotion})
				saw := make(chan string, 2)
				h.acts(func(s *scene, after func(time.Duration) bool) {
					s.write("page.txt", "first\n")
					after(35 * time.Second)
					s.write("docs/new.md", "bad\n")
					s.write("other.txt", "harmless\n")
					after(35 * time.Second)
					saw <- s.read("page.txt")
					saw <- s.read("other.txt")
					s.write("docs/new.md", "bad to the end\n")
				})
				d, _ := h.daemon()
				chg := h.ask(d)
				notices, err := d.Watch(t.Context(), chg)
				if err != nil {
					t.Fatal(err)
				}
				var said []string
				var listening sync.WaitGroup
				listening.Go(func() {
					for n := range notices {
						if n.Kind == "event" {
							said = append(said, n.Text)
						}
						if n.State == change.AwaitingApproval {
							return
						}
					}
				})
				time.Sleep(3 * time.Minute)
				detail := h.is(d, chg, change.AwaitingApproval)
				if page, other := <-saw, <-saw; page != "first\n" || !strings.Contains(other, c.other) {
					t.Errorf("after it went back the agent reads %q and %q", page, other)
				}
				listening.Wait()
				if len(said) != 1 || !strings.Contains(said[0], c.said) {
					t.Errorf("who watches was told %q, want %q", said, c.said)
				}
				last := detail.Checkpoints[len(detail.Checkpoints)-1]
				if last.Status != checkpoint.Invalid || last.Trigger != checkpoint.AtEnd {
					t.Errorf("the last checkpoint is %s, %s", last.Trigger, last.Status)
				}
				p := detail.Proposal
				if p.Card.Note == "" || slices.ContainsFunc(p.Card.Files, func(f proposal.FileLine) bool { return strings.HasPrefix(f.Path, "docs") }) {
					t.Errorf("offered: %+v", p.Card)
				}
			})
		})
	}
}

func TestWhatOthersRelyOnIsAlwaysAShadow(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{})
		saw := make(chan string, 1)
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("api/openapi.yaml", "openapi: 3.1.0\n")
			s.write("docs/new.md", "bad\n")
			after(35 * time.Second)
			saw <- s.read("api/openapi.yaml")
		})
		c, _ := h.daemon()
		h.ask(c)
		time.Sleep(2 * time.Minute)
		if got := <-saw; !strings.Contains(got, "no such file") {
			t.Errorf("the contract still reads %q", got)
		}
	})
}

func TestAnAgentThatGoesOnBreakingRulesIsStoppedAndAPersonIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{})
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", "good\n")
			for i := 1; after(20*time.Second) && i < 30; i++ {
				s.write("docs/new.md", strings.Repeat("bad\n", i))
			}
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(3 * time.Minute)
		d := h.is(c, chg, change.Blocked)
		if !strings.Contains(d.Change.Reason, "Interactive mode failure: "+string(chg)) || len(d.Checkpoints) != 3 {
			t.Errorf("%d checkpoints, %q", len(d.Checkpoints), d.Change.Reason)
		}
		if h.cage.frozen() != 1 {
			t.Error("its agent is not stopped")
		}
		done, err := c.PutBack(t.Context(), chg, h.by(), nil, true)
		if err != nil || !slices.Equal(done.Reverted, []string{"docs/new.md"}) || done.Kept != 1 || done.Checkpoint.Status != checkpoint.Valid {
			t.Errorf("put back: %+v, %v", done, err)
		}
		if err := c.Resume(t.Context(), chg, h.by()); err != nil {
			t.Fatal(err)
		}
		if h.cage.frozen() != 0 {
			t.Error("its agent still stands")
		}
		h.is(c, chg, change.Working)
	})
}

func TestANamedFileGoesBackAlsoWhenAllThatStandsIsValid(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{})
		saw := make(chan string, 1)
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", "good\n")
			after(45 * time.Second)
			s.write("page.txt", "not what was asked for\n")
			s.write("other.txt", "stays\n")
			after(10 * time.Second)
			saw <- s.read("page.txt")
			after(time.Hour)
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(50 * time.Second)
		notices, err := c.Watch(t.Context(), chg)
		if err != nil {
			t.Fatal(err)
		}
		done, err := c.PutBack(t.Context(), chg, h.by(), []string{"page.txt"}, false)
		told := ""
		for n := range notices {
			if n.Kind == "event" {
				told = n.Text
				break
			}
		}
		if !strings.Contains(told, "restored 1 of ") {
			t.Errorf("who watches was told %q", told)
		}
		if err != nil || !slices.Equal(done.Reverted, []string{"page.txt"}) || done.Kept != 1 || done.Checkpoint.Status != checkpoint.Valid {
			t.Errorf("put back: %+v, %v", done, err)
		}
		if got := <-saw; got != "good\n" {
			t.Errorf("its agent reads %q", got)
		}
	})
}

func TestACheckpointThatCannotBeTakenCountsAsFailed(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.stubborn = errors.New("it does not stand still")
		h.acts(func(s *scene, after func(time.Duration) bool) {
			for i := 1; after(10*time.Second) && i < 60; i++ {
				s.write("page.txt", strings.Repeat("x", i))
			}
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(5 * time.Minute)
		d := h.is(c, chg, change.Failed) // it cannot even be stopped, so it is ended
		if len(d.Checkpoints) != 1 || d.Checkpoints[0].Trigger != checkpoint.AtEnd {
			t.Errorf("checkpoints: %q", statuses(d))
		}
	})
}

func TestWhenATreeCannotBePutBackTheAgentStartsAgainOnAValidCopy(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{RevertOnViolated: true})
		h.cage.blind = errors.New("no view")
		saw := make(chan string, 2)
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", "first\n")
			after(35 * time.Second)
			s.write("docs/new.md", "bad\n")
			after(time.Hour)
		}, func(s *scene, after func(time.Duration) bool) {
			saw <- s.read("page.txt")
			saw <- s.read("docs/new.md")
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(3 * time.Minute)
		d := h.is(c, chg, change.AwaitingApproval)
		if page, doc := <-saw, <-saw; page != "first\n" || !strings.Contains(doc, "no such file") {
			t.Errorf("the second run began with %q and %q", page, doc)
		}
		if len(d.Sessions) != 2 || d.Sessions[0].Reason == "" || d.Sessions[0].Exit != nil {
			t.Errorf("the sessions are %+v", d.Sessions)
		}
		if got := statuses(d); !slices.Contains(got, "interrupted invalid") {
			t.Errorf("what the first run left is not kept: %q", got)
		}
	})
}

func TestAWorkspaceThatGrowsBeyondItsLimitEndsItsAgentByName(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{UpperBytesMax: 1 << 20})
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("big", strings.Repeat("x", 2<<20))
			after(time.Hour)
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(time.Minute)
		d := h.is(c, chg, change.Failed)
		if !strings.Contains(d.Change.Reason, "its limit of disk: 1 MiB (observed: 2 MiB)") {
			t.Errorf("it says %q", d.Change.Reason)
		}
	})
}

func TestARunningChangeGoesBackToAnyOfItsCheckpoints(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", "one\n")
			after(40 * time.Second)
			s.write("page.txt", "two\n")
			s.write("more.txt", "two\n")
			after(time.Hour)
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(time.Minute)
		first := h.show(c, chg).Checkpoints[0]
		taken, err := c.RestoreTo(t.Context(), first.ID, h.by())
		if err != nil || taken.Tree != first.Tree || taken.Trigger != checkpoint.Restored {
			t.Fatalf("%+v, %v", taken, err)
		}
		d := h.is(c, chg, change.Working)
		if d.Change.Rollbacks != 1 || d.Change.Chosen != first.ID {
			t.Errorf("the row counts %d rollbacks, to %q", d.Change.Rollbacks, d.Change.Chosen)
		}
		if got := h.kept(c, len(d.Checkpoints)-1, chg, "more.txt"); got != "two\n" {
			t.Errorf("what stood there is not kept: %q", got)
		}
		if n := count(h.verbs(c, chg), "restored"); n != 1 {
			t.Errorf("the audit log says so %d times", n)
		}
	})
}

func TestAnIgnoredFileThatIsPartOfAChangeGoesBackWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		if err := os.WriteFile(filepath.Join(h.repo, ".gitignore"), []byte("*.log\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		h.git("add", "-A")
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "ignore")
		h.parts.Rules = rules{judging: grounds.Judging{IncludeIgnored: []string{"kept.log"}}}
		saw := make(chan string, 2)
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("kept.log", "one\n")
			s.write("other.log", "one\n")
			after(40 * time.Second)
			s.write("kept.log", "two\n")
			s.write("other.log", "two\n")
			after(40 * time.Second)
			saw <- s.read("kept.log")
			saw <- s.read("other.log")
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(time.Minute)
		if _, err := c.RestoreTo(t.Context(), h.show(c, chg).Checkpoints[0].ID, h.by()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if kept, other := <-saw, <-saw; kept != "one\n" || other != "two\n" {
			t.Errorf("after it went back the agent reads %q and %q", kept, other)
		}
	})
}

func TestGoingBackWhileAPersonIsAskedVoidsWhatTheyWereAsked(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", "half\n")
			after(40 * time.Second)
			s.write("page.txt", "two\n")
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(2 * time.Minute)
		before := h.is(c, chg, change.AwaitingApproval)
		if cp, err := c.RestoreTo(t.Context(), before.Checkpoints[0].ID, h.by()); err != nil || cp.Tree != before.Checkpoints[0].Tree {
			t.Fatal(cp, err)
		}
		after := h.is(c, chg, change.AwaitingApproval)
		if after.Proposal.Digest == before.Proposal.Digest || after.Proposal.Tree != before.Checkpoints[0].Tree {
			t.Errorf("still offered: %.12s of tree %.12s; %q", after.Proposal.Digest, after.Proposal.Tree, statuses(after))
		}
		if err := c.Approve(t.Context(), before.Approval.ID, before.Proposal.Digest, h.by(), approve.Words{Via: "command line"}); err == nil {
			t.Error("the old proposal can still be approved")
		}
		if err := c.Approve(t.Context(), after.Approval.ID, after.Proposal.Digest, h.by(), approve.Words{Via: "command line"}); err != nil {
			t.Fatal(err)
		}
		h.is(c, chg, change.Finalized)
		if raw, err := os.ReadFile(filepath.Join(h.repo, "page.txt")); err != nil || string(raw) != "half\n" {
			t.Errorf("landed %q, %v", raw, err)
		}
	})
}

func TestASessionGoesOnWithItsNameAndItsTree(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		saw := make(chan string, 1)
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("page.txt", "half\n")
			after(time.Hour)
		}, func(s *scene, _ func(time.Duration) bool) {
			saw <- s.read("page.txt")
			s.write("page.txt", "whole\n")
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(time.Second)
		if err := c.Cancel(t.Context(), chg, h.by(), "lunch"); err != nil {
			t.Fatal(err)
		}
		identity := h.is(c, chg, change.Cancelled).Sessions[0].ID
		if _, err := c.ResumeSession(t.Context(), "sh-nobod", h.by(), nil); problem.KindOf(err) != problem.NotFound {
			t.Errorf("a session that never was: %v", err)
		}
		if _, err := c.ResumeSession(t.Context(), identity, h.by(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		d := h.is(c, chg, change.AwaitingApproval)
		if got := <-saw; got != "half\n" {
			t.Errorf("it went on with %q", got)
		}
		if len(d.Sessions) != 1 || d.Sessions[0].ID != identity {
			t.Errorf("the sessions are %+v", d.Sessions)
		}
		if _, err := c.ResumeSession(t.Context(), identity, h.by(), nil); problem.KindOf(err) != problem.Conflict {
			t.Errorf("resumed while a person is asked: %v", err)
		}
	})
}

func TestAnAgentThatWantsToBeAskedIsAskedAndStoppedWhateverItSays(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprintf("it answers: %v", answers), func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.parts.Agents["played"] = played{messages: true}
				h.parts.Rules = forbidding(session.Supervision{Pause: agent.PauseMessage})
				heard := make(chan string, 10)
				h.cage.hear = func(line string, stdout io.Writer) {
					heard <- line
					if answers && strings.Contains(line, "pause_request") {
						fmt.Fprintln(stdout, `{"type":"pause_ack","checkpoint_id":"ckpt-001","status":"paused","pending_operations":[]}`)
					}
				}
				h.cage.play = hangs("half\n")
				c, _ := h.daemon()
				chg := h.ask(c)
				notices, err := c.Watch(t.Context(), chg)
				if err != nil {
					t.Fatal(err)
				}
				warned := make(chan struct{})
				go func() { // ends with the test
					for n := range notices {
						if strings.Contains(n.Text, "did not answer the request to pause") {
							close(warned)
						}
					}
				}()
				began := time.Now()
				cp, err := c.CheckpointNow(t.Context(), chg, h.by())
				if err != nil || cp.Status != checkpoint.Valid {
					t.Fatalf("%+v, %v", cp, err)
				}
				if took := time.Since(began); (took >= 10*time.Second) == answers {
					t.Errorf("it was waited for %s", took)
				}
				synctest.Wait()
				select {
				case <-warned:
					if answers {
						t.Error("it answered, and people are warned")
					}
				default:
					if !answers {
						t.Error("it did not answer, and nobody is warned")
					}
				}
				if first := <-heard; !strings.Contains(first, `"type":"pause_request","checkpoint_id":"ckpt-001","reason":"checkpoint_validation","timeout_ms":10000`) {
					t.Errorf("it heard %s", first)
				}
				if next := <-heard; next != `{"type":"resume","checkpoint_id":"ckpt-001"}` {
					t.Errorf("then it heard %s", next)
				}
			})
		})
	}
}

func TestAnAgentWhoseTimeIsOverLeavesACheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = writes("half\n")
		h.cage.limit = &sandbox.Limit{Name: "time", Value: "1h", Observed: "1h"}
		c, _ := h.daemon()
		chg := h.ask(c)
		d := h.is(c, chg, change.Failed)
		if got := statuses(d); !slices.Equal(got, []string{"end valid"}) || h.kept(c, 1, chg, "page.txt") != "half\n" {
			t.Errorf("%q", got)
		}
		if !strings.Contains(d.Change.Reason, "its limit of time: 1h") {
			t.Errorf("it says %q", d.Change.Reason)
		}
	})
}

func TestACheckpointThatNobodyJudgedIsSkippedAndTheLastOneIsJudged(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.parts.Rules = forbidding(session.Supervision{Unvalidated: true})
		h.acts(func(s *scene, after func(time.Duration) bool) {
			s.write("docs/new.md", "bad\n")
			after(40 * time.Second)
		})
		c, _ := h.daemon()
		chg := h.ask(c)
		time.Sleep(2 * time.Minute)
		d := h.is(c, chg, change.Failed)
		if got := statuses(d); !slices.Equal(got, []string{"interval skipped", "end invalid"}) {
			t.Errorf("%q", got)
		}
		if out := h.refs(c, chg); strings.Contains(out, "/valid") {
			t.Errorf("something counts as valid: %s", out)
		}
	})
}

// A row that a supervisor has read is as old as its session.
func TestAnAgentThatIsResumedGoesOnHoweverOldItsSessionIs(t *testing.T) {
	for _, old := range []time.Duration{5 * time.Second, 45 * time.Second, 10 * time.Minute} {
		t.Run(old.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.acts(func(s *scene, after func(time.Duration) bool) {
					s.write("page.txt", "begun\n")
					after(old + 5*time.Minute)
					s.write("page.txt", "ended\n")
				})
				c, _ := h.daemon()
				chg := h.ask(c)
				time.Sleep(old)
				if err := c.Pause(t.Context(), chg, h.by(), "a look"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				h.is(c, chg, change.Paused)
				if err := c.Resume(t.Context(), chg, h.by()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				d := h.is(c, chg, change.AwaitingApproval)
				if len(d.Sessions) != 1 || h.kept(c, len(d.Checkpoints), chg, "page.txt") != "ended\n" {
					t.Errorf("%d sessions: %+v", len(d.Sessions), statuses(d))
				}
			})
		})
	}
}

func TestTheTreeOfAFailedShadowIsRemovedUnlessItIsToStay(t *testing.T) {
	for _, stays := range []bool{true, false} {
		t.Run(fmt.Sprintf("it is to stay: %v", stays), func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.parts.Rules = forbidding(session.Supervision{Strategy: session.Shadow, KeepOnFailure: stays})
				h.cage.play = func(int, string, <-chan struct{}) int { return 3 }
				c, end := h.daemon()
				chg := h.ask(c)
				h.is(c, chg, change.Failed)
				end()
				c, _ = h.daemon() // the sweep of the next one leaves it too
				h.is(c, chg, change.Failed)
				if h.hasWorkspace(chg) != stays {
					t.Errorf("it is there: %v", !stays)
				}
			})
		})
	}
}

func TestACheckpointWaitsUntilTheTreeIsStableButNotForEver(t *testing.T) {
	for _, c := range []struct {
		name             string
		writes           int // 40 ms apart
		earliest, latest time.Duration
	}{
		{"it comes to rest", 5, 260 * time.Millisecond, 400 * time.Millisecond},
		{"it never does", 1000, 950 * time.Millisecond, 1200 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.acts(func(s *scene, after func(time.Duration) bool) {
					s.write("begun", "x")
					for i := 1; i <= c.writes && after(40*time.Millisecond); i++ {
						s.write("page.txt", strings.Repeat("x", i))
					}
					after(time.Hour)
				})
				d, _ := h.daemon()
				chg := h.ask(d)
				began := time.Now()
				cp, err := d.CheckpointNow(t.Context(), chg, h.by())
				if took := cp.At.Sub(began); err != nil || took < c.earliest || took > c.latest {
					t.Errorf("taken after %s, %v", took, err)
				}
			})
		})
	}
}

func TestOnlyTheOwnerStopsMovesAndResumes(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = hangs("half\n")
		c, _ := h.daemon()
		chg := h.ask(c)
		h.is(c, chg, change.Working)
		stranger := h.by()
		stranger.UID++
		taken, err := c.CheckpointNow(t.Context(), chg, h.by())
		if err != nil {
			t.Fatal(err)
		}
		identity := h.show(c, chg).Sessions[0].ID
		for name, try := range map[string]func(ctx context.Context) error{
			"pause":      func(ctx context.Context) error { return c.Pause(ctx, chg, stranger, "") },
			"resume":     func(ctx context.Context) error { return c.Resume(ctx, chg, stranger) },
			"tell":       func(ctx context.Context) error { _, err := c.Tell(ctx, chg, stranger, "x"); return err },
			"checkpoint": func(ctx context.Context) error { _, err := c.CheckpointNow(ctx, chg, stranger); return err },
			"restore":    func(ctx context.Context) error { _, err := c.RestoreTo(ctx, taken.ID, stranger); return err },
			"put back":   func(ctx context.Context) error { _, err := c.PutBack(ctx, chg, stranger, nil, true); return err },
			"redo":       func(ctx context.Context) error { _, err := c.Redo(ctx, chg, stranger, nil); return err },
			"go on":      func(ctx context.Context) error { _, err := c.ResumeSession(ctx, identity, stranger, nil); return err },
		} {
			if err := try(t.Context()); problem.KindOf(err) != problem.Denied {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

package supervise_test

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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

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
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
					for i := range c.files {
						s.Write(filepath.Join("new", strings.Repeat("x", i+1)), "new\n")
					}
					after(c.wait)
				})
				d, _ := h.Daemon()
				chg := h.Ask(d)
				time.Sleep(c.wait + time.Minute)
				if got := drivetest.Statuses(h.Show(d, chg)); !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestAFileThatBreaksARuleIsPutBackUnderTheAgentsFeet(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{RevertOnViolated: true})
		saw := make(chan string, 2)
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", "good\n")
			s.Write("docs/new.md", "bad\n")
			if after(40 * time.Second) {
				saw <- s.Read("docs/new.md")
				saw <- s.Read("page.txt")
				s.Write("page.txt", "good, and more\n")
				after(40 * time.Second)
			}
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(3 * time.Minute)
		d := h.Is(c, chg, change.AwaitingApproval)
		if got := <-saw; !strings.Contains(got, "no such file") {
			t.Errorf("the agent still reads %q in the forbidden file", got)
		}
		if got := <-saw; got != "good\n" {
			t.Errorf("its good work is %q", got)
		}
		want := []string{"interval invalid", "restored valid", "interval valid", "end valid"}
		if got := drivetest.Statuses(d); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		if got := h.Kept(c, 3, chg, "page.txt"); got != "good, and more\n" {
			t.Errorf("what it wrote after that is %q in the next checkpoint", got)
		}
		if n := len(h.Cage.Starts()); n != 1 {
			t.Errorf("it was started %d times", n)
		}
	})
}

func TestALinkIsRemovedWhateverElseIsAskedFor(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{})
		saw := make(chan string, 2)
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("docs/new.md", "bad\n")
			if err := os.Symlink("/etc/hostname", filepath.Join(s.Tree, "link")); err != nil {
				s.T.Error(err)
			}
			after(40 * time.Second)
			_, err := os.Lstat(filepath.Join(s.Tree, "link"))
			saw <- fmt.Sprint(err)
			saw <- s.Read("docs/new.md")
		})
		c, _ := h.Daemon()
		h.Ask(c)
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
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Parts.Rules = drivetest.Forbidding(session.Supervision{Strategy: session.Shadow, Promotion: c.promotion})
				saw := make(chan string, 2)
				h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
					s.Write("page.txt", "first\n")
					after(35 * time.Second)
					s.Write("docs/new.md", "bad\n")
					s.Write("other.txt", "harmless\n")
					after(35 * time.Second)
					saw <- s.Read("page.txt")
					saw <- s.Read("other.txt")
					s.Write("docs/new.md", "bad to the end\n")
				})
				d, _ := h.Daemon()
				chg := h.Ask(d)
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
				detail := h.Is(d, chg, change.AwaitingApproval)
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
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{})
		saw := make(chan string, 1)
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("api/openapi.yaml", "openapi: 3.1.0\n")
			s.Write("docs/new.md", "bad\n")
			after(35 * time.Second)
			saw <- s.Read("api/openapi.yaml")
		})
		c, _ := h.Daemon()
		h.Ask(c)
		time.Sleep(2 * time.Minute)
		if got := <-saw; !strings.Contains(got, "no such file") {
			t.Errorf("the contract still reads %q", got)
		}
	})
}

func TestAnAgentThatGoesOnBreakingRulesIsStoppedAndAPersonIsAsked(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{})
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", "good\n")
			for i := 1; after(20*time.Second) && i < 30; i++ {
				s.Write("docs/new.md", strings.Repeat("bad\n", i))
			}
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(3 * time.Minute)
		d := h.Is(c, chg, change.Blocked)
		if !strings.Contains(d.Change.Reason, "Interactive mode failure: "+string(chg)) || len(d.Checkpoints) != 3 {
			t.Errorf("%d checkpoints, %q", len(d.Checkpoints), d.Change.Reason)
		}
		if h.Cage.Frozen() != 1 {
			t.Error("its agent is not stopped")
		}
		done, err := c.PutBack(gittest.Context(t), chg, h.By(), nil, true)
		if err != nil || !slices.Equal(done.Reverted, []string{"docs/new.md"}) || done.Kept != 1 || done.Checkpoint.Status != checkpoint.Valid {
			t.Errorf("put back: %+v, %v", done, err)
		}
		if err := c.Resume(gittest.Context(t), chg, h.By()); err != nil {
			t.Fatal(err)
		}
		if h.Cage.Frozen() != 0 {
			t.Error("its agent still stands")
		}
		h.Is(c, chg, change.Working)
	})
}

func TestANamedFileGoesBackAlsoWhenAllThatStandsIsValid(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{})
		saw := make(chan string, 1)
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", "good\n")
			after(45 * time.Second)
			s.Write("page.txt", "not what was asked for\n")
			s.Write("other.txt", "stays\n")
			after(10 * time.Second)
			saw <- s.Read("page.txt")
			after(time.Hour)
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(50 * time.Second)
		notices, err := c.Watch(gittest.Context(t), chg)
		if err != nil {
			t.Fatal(err)
		}
		done, err := c.PutBack(gittest.Context(t), chg, h.By(), []string{"page.txt"}, false)
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
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Stubborn = errors.New("it does not stand still")
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			for i := 1; after(10*time.Second) && i < 60; i++ {
				s.Write("page.txt", strings.Repeat("x", i))
			}
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(5 * time.Minute)
		d := h.Is(c, chg, change.Failed) // it cannot even be stopped, so it is ended
		if len(d.Checkpoints) != 1 || d.Checkpoints[0].Trigger != checkpoint.AtEnd {
			t.Errorf("checkpoints: %q", drivetest.Statuses(d))
		}
	})
}

func TestWhenATreeCannotBePutBackTheAgentStartsAgainOnAValidCopy(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{RevertOnViolated: true})
		h.Cage.Blind = errors.New("no view")
		saw := make(chan string, 2)
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", "first\n")
			after(35 * time.Second)
			s.Write("docs/new.md", "bad\n")
			after(time.Hour)
		}, func(s *drivetest.Scene, after func(time.Duration) bool) {
			saw <- s.Read("page.txt")
			saw <- s.Read("docs/new.md")
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(3 * time.Minute)
		d := h.Is(c, chg, change.AwaitingApproval)
		if page, doc := <-saw, <-saw; page != "first\n" || !strings.Contains(doc, "no such file") {
			t.Errorf("the second run began with %q and %q", page, doc)
		}
		if len(d.Sessions) != 2 || d.Sessions[0].Reason == "" || d.Sessions[0].Exit != nil {
			t.Errorf("the sessions are %+v", d.Sessions)
		}
		if got := drivetest.Statuses(d); !slices.Contains(got, "interrupted invalid") {
			t.Errorf("what the first run left is not kept: %q", got)
		}
	})
}

func TestAWorkspaceThatGrowsBeyondItsLimitEndsItsAgentByName(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{UpperBytesMax: 1 << 20})
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("big", strings.Repeat("x", 2<<20))
			after(time.Hour)
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(time.Minute)
		d := h.Is(c, chg, change.Failed)
		if !strings.Contains(d.Change.Reason, "its limit of disk: 1 MiB (observed: 2 MiB)") {
			t.Errorf("it says %q", d.Change.Reason)
		}
	})
}

func TestARunningChangeGoesBackToAnyOfItsCheckpoints(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", "one\n")
			after(40 * time.Second)
			s.Write("page.txt", "two\n")
			s.Write("more.txt", "two\n")
			after(time.Hour)
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(time.Minute)
		first := h.Show(c, chg).Checkpoints[0]
		taken, err := c.RestoreTo(gittest.Context(t), first.ID, h.By())
		if err != nil || taken.Tree != first.Tree || taken.Trigger != checkpoint.Restored {
			t.Fatalf("%+v, %v", taken, err)
		}
		d := h.Is(c, chg, change.Working)
		if d.Change.Rollbacks != 1 || d.Change.Chosen != first.ID {
			t.Errorf("the row counts %d rollbacks, to %q", d.Change.Rollbacks, d.Change.Chosen)
		}
		if got := h.Kept(c, len(d.Checkpoints)-1, chg, "more.txt"); got != "two\n" {
			t.Errorf("what stood there is not kept: %q", got)
		}
		if n := drivetest.Count(h.Verbs(c, chg), "restored"); n != 1 {
			t.Errorf("the audit log says so %d times", n)
		}
	})
}

func TestAnIgnoredFileThatIsPartOfAChangeGoesBackWithIt(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		disktest.Put(t, filepath.Join(h.Repo, ".gitignore"), "*.log\n", 0o644)
		h.Git("add", "-A")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "ignore")
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{IncludeIgnored: []string{"kept.log"}}}
		saw := make(chan string, 2)
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("kept.log", "one\n")
			s.Write("other.log", "one\n")
			after(40 * time.Second)
			s.Write("kept.log", "two\n")
			s.Write("other.log", "two\n")
			after(40 * time.Second)
			saw <- s.Read("kept.log")
			saw <- s.Read("other.log")
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(time.Minute)
		if _, err := c.RestoreTo(gittest.Context(t), h.Show(c, chg).Checkpoints[0].ID, h.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if kept, other := <-saw, <-saw; kept != "one\n" || other != "two\n" {
			t.Errorf("after it went back the agent reads %q and %q", kept, other)
		}
	})
}

func TestGoingBackWhileAPersonIsAskedVoidsWhatTheyWereAsked(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", "half\n")
			after(40 * time.Second)
			s.Write("page.txt", "two\n")
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(2 * time.Minute)
		before := h.Is(c, chg, change.AwaitingApproval)
		if cp, err := c.RestoreTo(gittest.Context(t), before.Checkpoints[0].ID, h.By()); err != nil || cp.Tree != before.Checkpoints[0].Tree {
			t.Fatal(cp, err)
		}
		after := h.Is(c, chg, change.AwaitingApproval)
		if after.Proposal.Digest == before.Proposal.Digest || after.Proposal.Tree != before.Checkpoints[0].Tree {
			t.Errorf("still offered: %.12s of tree %.12s; %q", after.Proposal.Digest, after.Proposal.Tree, drivetest.Statuses(after))
		}
		if err := c.Approve(gittest.Context(t), before.Approval.ID, before.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err == nil {
			t.Error("the old proposal can still be approved")
		}
		if err := c.Approve(gittest.Context(t), after.Approval.ID, after.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err != nil {
			t.Fatal(err)
		}
		h.Is(c, chg, change.Finalized)
		if raw, err := os.ReadFile(filepath.Join(h.Repo, "page.txt")); err != nil || string(raw) != "half\n" {
			t.Errorf("landed %q, %v", raw, err)
		}
	})
}

func TestASessionGoesOnWithItsNameAndItsTree(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		saw := make(chan string, 1)
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("page.txt", "half\n")
			after(time.Hour)
		}, func(s *drivetest.Scene, _ func(time.Duration) bool) {
			saw <- s.Read("page.txt")
			s.Write("page.txt", "whole\n")
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(time.Second)
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "lunch"); err != nil {
			t.Fatal(err)
		}
		identity := h.Is(c, chg, change.Cancelled).Sessions[0].ID
		if _, err := c.ResumeSession(gittest.Context(t), "sh-nobod", h.By(), nil); problem.KindOf(err) != problem.NotFound {
			t.Errorf("a session that never was: %v", err)
		}
		if _, err := c.ResumeSession(gittest.Context(t), identity, h.By(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		d := h.Is(c, chg, change.AwaitingApproval)
		if got := <-saw; got != "half\n" {
			t.Errorf("it went on with %q", got)
		}
		if len(d.Sessions) != 1 || d.Sessions[0].ID != identity {
			t.Errorf("the sessions are %+v", d.Sessions)
		}
		if _, err := c.ResumeSession(gittest.Context(t), identity, h.By(), nil); problem.KindOf(err) != problem.Conflict {
			t.Errorf("resumed while a person is asked: %v", err)
		}
	})
}

func TestAnAgentThatWantsToBeAskedIsAskedAndStoppedWhateverItSays(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprintf("it answers: %v", answers), func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Parts.Agents["played"] = drivetest.Played{Messages: true}
				h.Parts.Rules = drivetest.Forbidding(session.Supervision{Pause: agent.PauseMessage})
				heard := make(chan string, 10)
				h.Cage.Hear = func(line string, stdout io.Writer) {
					heard <- line
					if answers && strings.Contains(line, "pause_request") {
						fmt.Fprintln(stdout, `{"type":"pause_ack","checkpoint_id":"ckpt-001","status":"paused","pending_operations":[]}`)
					}
				}
				h.Cage.Play = drivetest.Hangs("half\n")
				c, _ := h.Daemon()
				chg := h.Ask(c)
				notices, err := c.Watch(gittest.Context(t), chg)
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
				cp, err := c.CheckpointNow(gittest.Context(t), chg, h.By())
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
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("half\n")
		h.Cage.Limit = &sandbox.Limit{Name: "time", Value: "1h", Observed: "1h"}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.Failed)
		if got := drivetest.Statuses(d); !slices.Equal(got, []string{"end valid"}) || h.Kept(c, 1, chg, "page.txt") != "half\n" {
			t.Errorf("%q", got)
		}
		if !strings.Contains(d.Change.Reason, "its limit of time: 1h") {
			t.Errorf("it says %q", d.Change.Reason)
		}
	})
}

func TestACheckpointThatNobodyJudgedIsSkippedAndTheLastOneIsJudged(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{Unvalidated: true})
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("docs/new.md", "bad\n")
			after(40 * time.Second)
		})
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(2 * time.Minute)
		d := h.Is(c, chg, change.Failed)
		if got := drivetest.Statuses(d); !slices.Equal(got, []string{"interval skipped", "end invalid"}) {
			t.Errorf("%q", got)
		}
		if out := h.Refs(c, chg); strings.Contains(out, "/valid") {
			t.Errorf("something counts as valid: %s", out)
		}
	})
}

// A row that a supervisor has read is as old as its session.
func TestAnAgentThatIsResumedGoesOnHoweverOldItsSessionIs(t *testing.T) {
	for _, old := range []time.Duration{5 * time.Second, 45 * time.Second, 10 * time.Minute} {
		t.Run(old.String(), func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
					s.Write("page.txt", "begun\n")
					after(old + 5*time.Minute)
					s.Write("page.txt", "ended\n")
				})
				c, _ := h.Daemon()
				chg := h.Ask(c)
				time.Sleep(old)
				if err := c.Pause(gittest.Context(t), chg, h.By(), "a look"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				h.Is(c, chg, change.Paused)
				if err := c.Resume(gittest.Context(t), chg, h.By()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				d := h.Is(c, chg, change.AwaitingApproval)
				if len(d.Sessions) != 1 || h.Kept(c, len(d.Checkpoints), chg, "page.txt") != "ended\n" {
					t.Errorf("%d sessions: %+v", len(d.Sessions), drivetest.Statuses(d))
				}
			})
		})
	}
}

func TestTheTreeOfAFailedShadowIsRemovedUnlessItIsToStay(t *testing.T) {
	for _, stays := range []bool{true, false} {
		t.Run(fmt.Sprintf("it is to stay: %v", stays), func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Parts.Rules = drivetest.Forbidding(session.Supervision{Strategy: session.Shadow, KeepOnFailure: stays})
				h.Cage.Play = func(int, string, <-chan struct{}) int { return 3 }
				c, end := h.Daemon()
				chg := h.Ask(c)
				h.Is(c, chg, change.Failed)
				end()
				c, _ = h.Daemon() // the sweep of the next one leaves it too
				h.Is(c, chg, change.Failed)
				if h.HasWorkspace(chg) != stays {
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
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
					s.Write("begun", "x")
					for i := 1; i <= c.writes && after(40*time.Millisecond); i++ {
						s.Write("page.txt", strings.Repeat("x", i))
					}
					after(time.Hour)
				})
				d, _ := h.Daemon()
				chg := h.Ask(d)
				began := time.Now()
				cp, err := d.CheckpointNow(t.Context(), chg, h.By())
				if took := cp.At.Sub(began); err != nil || took < c.earliest || took > c.latest {
					t.Errorf("taken after %s, %v", took, err)
				}
			})
		})
	}
}

func TestOnlyTheOwnerStopsMovesAndResumes(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Hangs("half\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.Working)
		stranger := h.By()
		stranger.Person = "psn-stranger"
		taken, err := c.CheckpointNow(gittest.Context(t), chg, h.By())
		if err != nil {
			t.Fatal(err)
		}
		identity := h.Show(c, chg).Sessions[0].ID
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

// laws give every repository a limit that may change.
type laws struct {
	drivetest.Rules
	bytes atomic.Int64
}

func (l *laws) At(context.Context, git.Project, git.Dir, git.OID) (grounds.Judging, error) {
	return grounds.Judging{Supervision: session.Supervision{UpperBytesMax: l.bytes.Load()}}, nil
}

func TestASessionThatWaitedForItsPlaceBeginsByTheRulesAsTheyAreThen(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Settings.WorkersMax = 1
		law := &laws{}
		law.bytes.Store(1 << 30)
		h.Parts.Rules = law
		seen := make(chan int64, 2) // each session runs in a goroutine of its own
		h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			seen <- spec.Limits.DiskBytes
			select {
			case <-time.After(time.Hour):
			case <-killed:
			}
			return 0
		}
		c, _ := h.Daemon()
		h.Ask(c)
		time.Sleep(time.Minute)
		h.Ask(c)
		time.Sleep(time.Minute)
		law.bytes.Store(1 << 20)
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if first, second := <-seen, <-seen; first != 1<<30 || second != 1<<20 {
			t.Errorf("limits of the sessions: %d, %d", first, second)
		}
		time.Sleep(2 * time.Hour)
	})
}

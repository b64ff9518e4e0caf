package standing_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
)

const (
	prompt = "runner/prompts/system.md"
	top    = "Each of your turns begins with the messages"
	end    = "`schedule_task`."
)

// refreshing is a home whose template moves, and its group, too.
type refreshing struct {
	*drivetest.Assistants
	t *testing.T
	c *control.Controller
}

// refreshes runs a test in a home with the group echo.
func refreshes(t *testing.T, text string, test func(t *testing.T, r refreshing)) {
	t.Helper()
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _, s := h.Swapping(text)
		s.Words.Restart, s.Words.Trial = "", 0 // the home has no target of its own
		c, _ := a.Begin()
		test(t, refreshing{a, t, c})
	})
}

// edits replaces words in a file of the home, in its repository, by a person's own git.
func (r refreshing) edits(file, from, to string) {
	r.t.Helper()
	text := r.Git("show", "HEAD:"+file) + "\n"
	if !strings.Contains(text, from) {
		r.t.Fatalf("%s has no %q: %s", file, from, text)
	}
	write(r.t, r.Home, file, strings.Replace(text, from, to, 1))
	r.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qam", "edit "+file)
}

// adds commits a new file by a person's own git.
func (r refreshing) adds(file, text string) {
	r.t.Helper()
	write(r.t, r.Home, file, text)
	r.Git("add", "--", file)
	r.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "add "+file)
}

func (r refreshing) asks(keep ...string) (change.Row, error) {
	return r.c.Groups.Refresh(r.t.Context(), standing.Refresh{By: r.By(), Name: "echo", Keep: keep, Approve: request.Later, Account: "1000"})
}

// refreshed asks for a refresh, and brings it to its end.
func (r refreshing) refreshed(keep ...string) id.Change {
	r.t.Helper()
	row, err := r.asks(keep...)
	if err != nil || row.ID == "" {
		r.t.Fatalf("it asks for %q: %v", row.ID, err)
	}
	time.Sleep(time.Minute)
	r.Yes(r.c, row.ID)
	r.Asked(r.c, row.ID)
	r.keeps(row.ID)
	return row.ID
}

func (r refreshing) keeps(chg id.Change) {
	r.t.Helper()
	if err := r.c.Confirm(r.t.Context(), chg, r.By(), ""); err != nil {
		r.t.Fatal(err)
	}
	r.Is(r.c, chg, change.Finalized)
}

// has fails unless a file of the group is as the branch and the work tree should have it.
func (r refreshing) has(file string, want ...string) {
	r.t.Helper()
	text := r.Git("show", "HEAD:groups/echo/"+file)
	for _, w := range want {
		if !strings.Contains(text, w) {
			r.t.Errorf("%s lacks %q: %s", file, w, text)
		}
	}
	if out := r.Git("status", "--porcelain", "--untracked-files=all"); out != "" {
		r.t.Errorf("git says: %s", out)
	}
}

// nothing fails if something is to be brought.
func (r refreshing) nothing() {
	r.t.Helper()
	if row, err := r.asks(); err != nil || row.ID != "" {
		r.t.Errorf("it asks for %q %s: %v", row.ID, row.Request.Text, err)
	}
}

// drift is what differs from the template.
func (r refreshing) drift() (paths []string) {
	r.t.Helper()
	s, err := r.c.Groups.Show(r.t.Context(), "echo", "")
	if err != nil || s.Broken != nil {
		r.t.Fatal(err, s.Broken)
	}
	for _, d := range s.Drift {
		paths = append(paths, string(d.Kind)+" "+d.Path)
	}
	return paths
}

// TestARefreshMergesWhatMovedInTheTemplateAsAChangeOnTrial is SM-918: what both sides have changed in a file stays, with a card, a trial
// and a way back, and nobody is asked whether the template is to have what it has.
func TestARefreshMergesWhatMovedInTheTemplateAsAChangeOnTrial(t *testing.T) {
	refreshes(t, "unused", func(t *testing.T, r refreshing) {
		r.nothing()
		r.edits("groups/echo/"+prompt, top, "Mine. "+top)
		r.adds("groups/echo/skills/mine/SKILL.md", "Mine.\n")
		r.nothing() // nothing has moved in the template
		r.edits("template/"+prompt, end, end+"\n\nTheirs.")
		r.edits("template/AGENTS.md", "# How you work", "# Your work")
		r.adds("template/skills/sing/SKILL.md", "Sing.\n")
		r.adds("template/notes.md", "no group has a copy of this\n")
		before := r.Git("rev-parse", "HEAD:groups/echo")

		row, err := r.asks()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.asks(); problem.KindOf(err) != problem.Conflict || problem.Of(err).Next != "sallyport change show "+string(row.ID) {
			t.Errorf("asked for twice: %v", err)
		}
		time.Sleep(time.Minute)
		d := r.Is(r.c, row.ID, change.AwaitingApproval)
		card := d.Proposal.Card
		if card.Class != "group" || card.Typed != "" || card.Made != "" || card.AgentSays != "" || !slices.Contains(card.Reach, "the group echo gains the skill sing") || len(card.Then) != 2 {
			t.Errorf("the card is %+v", card)
		}
		if want := "\n- AGENTS.md\n- runner/prompts/system.md, merged with what the group has changed in it\n- skills/sing/SKILL.md"; !strings.HasSuffix(row.Request.Text, want) {
			t.Errorf("it says %q", row.Request.Text)
		}
		r.Yes(r.c, row.ID)
		r.Asked(r.c, row.ID)
		r.has(prompt, "Mine. "+top, "Theirs.")
		if _, err := r.c.Rollback(gittest.Context(t), row.ID, r.By(), "no", request.Later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.Is(r.c, row.ID, change.RolledBack)
		if after := r.Git("rev-parse", "HEAD:groups/echo"); after != before {
			t.Errorf("rolled back it is %s, and was %s", after, before)
		}

		chg := r.refreshed() // what went back is brought again
		if subject := r.Git("log", "-1", "--format=%s%n%b", "groups/echo/runner"); !strings.HasPrefix(subject, "swap "+string(chg)+": Refresh echo from the template\n") || strings.Contains(subject, "Co-authored") {
			t.Errorf("the commit says %q", subject)
		}
		r.has(prompt, "Mine. "+top, "Theirs.")
		if said := r.Said(); said[len(said)-2] != "talk trial: "+trial.Message1 || !strings.HasSuffix(said[len(said)-1], " is landed and kept: confirmed by ann") {
			t.Errorf("it is said %q", said[len(said)-2:])
		}
		if d := r.drift(); !slices.Equal(d, []string{"changed " + prompt, "added skills/mine/SKILL.md"}) {
			t.Errorf("it differs in %q", d)
		}
		r.nothing()
		if _, err := r.c.Groups.LastSwap(t.Context(), "echo"); problem.KindOf(err) != problem.NotFound {
			t.Errorf("it has a dev agent: %v", err)
		}
		if _, err := r.c.Redo(gittest.Context(t), chg, r.By(), nil); problem.KindOf(err) != problem.Conflict {
			t.Errorf("redone: %v", err)
		}
	})
}

// What does not fit together is told by name, each file of it, and nothing of all is brought. What a person leaves is not asked for again.
func TestARefreshThatDoesNotFitBringsNothingAndNamesEachFile(t *testing.T) {
	refreshes(t, "unused", func(t *testing.T, r refreshing) {
		r.edits("groups/echo/"+prompt, top, "Mine. "+top)
		r.Git("rm", "-q", "groups/echo/skills/keep-notes/SKILL.md")
		r.edits("groups/echo/AGENTS.md", "# Who you are", "# Who I am")
		r.edits("template/"+prompt, top, "Theirs. "+top)
		r.edits("template/skills/keep-notes/SKILL.md", "\n", "\n\n")
		r.edits("template/AGENTS.md", "anybody to hurry.", "anyone to hurry.")
		head := r.Git("rev-parse", "HEAD")
		row, err := r.asks()
		p := problem.Of(err)
		if p.Kind != problem.Conflict || row.ID != "" || p.Next != "sallyport group refresh echo --keep runner/prompts/system.md --keep skills/keep-notes/SKILL.md" {
			t.Errorf("%q: %v; %s", row.ID, err, p.Next)
		}
		for _, want := range []string{prompt + " (both changed the same lines)", "skills/keep-notes/SKILL.md (the template changed it, and the group removed it)"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("it lacks %q: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "AGENTS.md") {
			t.Errorf("it names what fits: %v", err)
		}
		if now := r.Git("rev-parse", "HEAD"); now != head || r.Git("status", "--porcelain") != "" {
			t.Errorf("HEAD is %s, git says %s", now, r.Git("status", "--porcelain"))
		}

		if _, err := r.asks("runner/other.md"); problem.KindOf(err) != problem.Usage {
			t.Errorf("a file that has not moved: %v", err)
		}
		r.refreshed(prompt, "skills/keep-notes/SKILL.md")
		r.has(prompt, "Mine. "+top)
		r.has("AGENTS.md", "# Who I am", "anyone to hurry.")
		r.nothing()
		r.edits("template/"+prompt, end, end+"\nLater.")
		r.refreshed()
		r.has(prompt, "Mine. "+top, "\nLater.")
	})
}

// TestWhatTheTemplateHasOfAGroupIsNoConflictLater holds SM-152 to SM-155 with SM-918: a promotion brings both together, and what a group
// keeps local stays its own.
func TestWhatTheTemplateHasOfAGroupIsNoConflictLater(t *testing.T) {
	for name, promotes := range map[string]bool{"applied to the template": true, "kept local": false} {
		t.Run(name, func(t *testing.T) {
			refreshes(t, "Greet people.\n", func(t *testing.T, r refreshing) {
				chg := r.Swap(r.c)
				r.Asked(r.c, chg)
				r.keeps(chg)
				if promotes {
					if err := r.c.Promote(gittest.Context(t), chg, r.By()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					if d := r.drift(); len(d) != 0 {
						t.Errorf("it differs in %q", d)
					}
				} else if d := r.drift(); !slices.Equal(d, []string{"changed " + prompt}) {
					t.Errorf("it differs in %q", d)
				}
				r.edits("groups/echo/"+prompt, "Greet people.", "Greet everybody.") // of its own again
				r.nothing()
				r.edits("template/AGENTS.md", "# How you work", "# Your work")
				r.refreshed()
				r.has("AGENTS.md", "# Your work")
				r.has(prompt, "Greet everybody.")
			})
		})
	}
}

// A daemon that dies once it has asked for a promotion asks again: the first one goes on, and there is no other. Nor is there if two ask at once.
func TestAPromotionThatIsUnderWayIsNotAskedForAgain(t *testing.T) {
	for name, atOnce := range map[string]bool{"one after the other": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			refreshes(t, "Greet people.\n", func(t *testing.T, r refreshing) {
				chg := r.Swap(r.c)
				r.Asked(r.c, chg)
				r.keeps(chg)
				asked := make(chan error, 2)
				for range cap(asked) {
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						asked <- r.c.Promote(gittest.Context(t), chg, r.By())
					}()
					if !atOnce {
						<-ended
					}
				}
				for range cap(asked) {
					if err := <-asked; err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				promotions := 0
				r.Tx(func(ctx context.Context, tx store.Tx) error {
					rows, err := tx.Changes(ctx, change.Filter{})
					for _, row := range rows {
						if row.Request.Promotes == chg {
							promotions++
						}
					}
					return err
				})
				if promotions != 1 {
					t.Errorf("it was promoted by %d changes", promotions)
				}
			})
		})
	}
}

// A group that is made anew is a copy of the template of that moment, whatever was brought to the one before it.
func TestARefreshKnowsWhenItsGroupWasMadeLast(t *testing.T) {
	refreshes(t, "unused", func(t *testing.T, r refreshing) {
		r.edits("template/AGENTS.md", "# How you work", "# Your work")
		r.refreshed()
		r.Git("rm", "-rq", "groups/echo")
		r.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "away")
		if _, err := r.asks(); problem.KindOf(err) != problem.NotFound {
			t.Errorf("of a group that is not there: %v", err)
		}
		r.edits("template/"+prompt, end, end+"\nTheirs.")
		r.Git("checkout", "-q", "HEAD~2", "--", "groups/echo")
		r.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "again")
		r.nothing()
		r.edits("template/AGENTS.md", "# Your work", "# The work")
		r.refreshed()
		r.has("AGENTS.md", "# The work")
		if text := r.Git("show", "HEAD:groups/echo/"+prompt); strings.Contains(text, "Theirs.") {
			t.Error("what the template had before the group was made is brought")
		}
	})
}

// Who asks for a refresh is a person, and the policy may keep them from approving what they asked for.
func TestWhoAsksForARefreshDoesNotApproveItWhereThePolicySaysSo(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _, _ := h.Swapping("unused")
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Approvals: right.Rules{NoSelf: true}}}
		c, _ := a.Begin()
		r := refreshing{a, t, c}
		r.edits("template/AGENTS.md", "# How you work", "# Your work")
		if row, err := r.asks(); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "the owner of the home asked for this") {
			t.Errorf("%q: %v", row.ID, err)
		}
	})
}

// A merge that no group could run is refused with the place, and only the owner asks for one.
func TestARefreshThatCouldNotRunIsRefused(t *testing.T) {
	refreshes(t, "unused", func(t *testing.T, r refreshing) {
		r.adds("groups/echo/runner/hooks/on-start.md", "words\n")
		r.adds("template/runner/hooks/on-fire", "#!/bin/sh\n")
		if _, err := r.asks(); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "groups/echo/runner/hooks/on-fire") {
			t.Errorf("%v", err)
		}
		for _, by := range []audit.Actor{{Kind: "agent", Name: "echo", UID: r.Owner.UID}, audit.Host} {
			if _, err := r.c.Groups.Refresh(t.Context(), standing.Refresh{By: by, Name: "echo", Approve: request.Later}); problem.KindOf(err) != problem.Denied {
				t.Errorf("by %s: %v", by.Name, err)
			}
		}
		if _, err := r.c.Groups.Refresh(t.Context(), standing.Refresh{By: r.By(), Name: "nobody", Approve: request.Later, Account: "1000"}); problem.KindOf(err) != problem.NotFound {
			t.Errorf("of no group: %v", err)
		}
		r.Tx(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Chats(ctx, "nobody")
			if len(all) > 0 {
				t.Errorf("a group that is not there has chats: %+v", all)
			}
			return err
		})
	})
}

// TestARefreshThatShowsAFolderIsSpokenAboutFirst holds CH-026.
func TestARefreshThatShowsAFolderIsSpokenAboutFirst(t *testing.T) {
	refreshes(t, "", func(t *testing.T, r refreshing) {
		r.edits("template/runner/runner.yaml", "#mounts: []", "mounts: [{path: /srv/a, readonly: false}]")
		asks := standing.Refresh{By: r.By(), Name: "echo", Approve: request.Later, Account: "1000"}
		if row, err := r.c.Groups.Refresh(t.Context(), asks); problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport group refresh echo --yes" {
			t.Errorf("nobody was asked: %q, %v", row.ID, err)
		}
		asks.Shown.Ask = true
		if unsaid, ok := errors.AsType[*standing.UnsaidError](second(r.c.Groups.Refresh(t.Context(), asks))); !ok || len(unsaid.Folders) != 1 {
			t.Errorf("nothing is said: %+v", unsaid)
		}
		asks.Shown.Said = map[string]string{"/srv/a": "read-write"}
		if row, err := r.c.Groups.Refresh(t.Context(), asks); err != nil || row.ID == "" {
			t.Errorf("%q, %v", row.ID, err)
		}
	})
}

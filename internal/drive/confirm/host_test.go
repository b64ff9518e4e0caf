package confirm_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
)

const hostFile = "docs/more.md"

// hosting runs a test in a home whose group asks for a change of the host, which a keeper judges. approved returns that change once a person
// has approved it, and the daemon that has seen to it.
func hosting(t *testing.T, test func(t *testing.T, a *drivetest.Assistants, k *drivetest.Kept, approved func() (id.Change, *control.Controller, func()))) {
	t.Helper()
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, words string) (string, error) {
			if _, path, ok := strings.Cut(words, "Write by hand: "); ok {
				s.Write(strings.Fields(path)[0], "by hand\n")
				return "done", nil
			}
			s.Write(hostFile, "more\n")
			return "", nil
		})
		a.Converse(drivetest.SwapChat)
		k := drivetest.Keep(h)
		test(t, a, k, func() (id.Change, *control.Controller, func()) {
			c, end := a.Begin()
			chg := a.Offer(c)
			d := a.Is(c, chg, change.AwaitingApproval)
			time.Sleep(time.Minute)
			if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Marked: true, Typed: "CONFIRM HOST"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			return chg, c, end
		})
	})
}

// begun is the new host, once its keeper has started it twice.
func begun(a *drivetest.Assistants, k *drivetest.Kept) (*control.Controller, func()) {
	k.Moves(keeper.ReadyOnce, nil)
	c, end := a.Begin()
	time.Sleep(10 * time.Second)
	k.Moves(keeper.Ready, nil)
	time.Sleep(10 * time.Second)
	return c, end
}

// TestTheHostIsKeptOnceSomebodyConfirmsItWithTheCode holds SM-107, SM-122 and SM-923: the old host arms its keeper before anything moves and
// hands over, the new one asks once it was started twice, and nothing keeps it but the code.
func TestTheHostIsKeptOnceSomebodyConfirmsItWithTheCode(t *testing.T) {
	hosting(t, func(t *testing.T, a *drivetest.Assistants, k *drivetest.Kept, approved func() (id.Change, *control.Controller, func())) {
		chg, c, end := approved()
		if d := a.Is(c, chg, change.InTrial); d.Trial.Handshake != trial.PendingRestart || !d.Trial.Target.Host {
			t.Errorf("its trial is %+v", d.Trial)
		}
		lines(t, "the keeper has heard", k.Heard(), "arm", "hand over")
		if armed, _ := a.Keeper.Still(); len(armed) != 0 {
			t.Errorf("a keeper of landings watches as well: %v", armed)
		}
		if err := c.Confirm(gittest.Context(t), chg, a.By(), drivetest.RightCode); problem.KindOf(err) != problem.Conflict {
			t.Errorf("before the new host is there: %v", err)
		}
		end()

		c, end = begun(a, k)
		if d := a.Is(c, chg, change.InTrial); d.Trial.Handshake != trial.Message1Sent || d.Trial.Restarts != 2 {
			t.Errorf("its trial is %+v", d.Trial)
		}
		if said := a.Said(); !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "talk trial: "+trial.Message1) }) {
			t.Errorf("it is said %q", said)
		}
		c.RecordDelivery(chg)
		time.Sleep(time.Second)
		for code, kind := range map[string]problem.Kind{"": problem.Usage, "WRON-GWRO-NGWR": problem.Internal} {
			if err := c.Confirm(gittest.Context(t), chg, a.By(), code); err == nil || code != "" && !errors.Is(err, keeper.ErrCode) || code == "" && problem.KindOf(err) != kind {
				t.Errorf("with %q: %v", code, err)
			}
		}
		a.Is(c, chg, change.InTrial)
		if err := c.Confirm(gittest.Context(t), chg, a.By(), drivetest.RightCode); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		a.Is(c, chg, change.Finalized)
		lines(t, "the keeper has heard", slices.Compact(k.Heard()), "arm", "hand over", "asked", "confirm WRON-GWRO-NGWR", "confirm "+drivetest.RightCode, "finalized")
		if a.Git("show", "HEAD:"+hostFile) != "more" {
			t.Error("it has not landed")
		}

		// Undone later, it takes a yes but no code and no keeper, and the files are gone.
		end()
		a.Parts.Host = drivetest.NoHost{}
		c, _ = a.Begin()
		back := a.Undo(c, chg, request.Ask)
		d := a.Is(c, back, change.AwaitingApproval)
		if title := d.Proposal.Card.Title; title != "Roll back "+string(chg)+": Change the host" {
			t.Errorf("it is called %q", title)
		}
		if says := "the host does not restart for " + hostFile + ", and no trial follows: what sallyport brings back has been there before"; d.Proposal.Card.Typed != "" || !slices.Contains(d.Proposal.Card.Then, says) {
			t.Errorf("its card wants %q typed, and says %q", d.Proposal.Card.Typed, d.Proposal.Card.Then)
		}
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, a.By(), approve.Words{Marked: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		a.Is(c, back, change.Finalized)
		if strings.Contains(a.Git("ls-files"), hostFile) {
			t.Error("it is still there")
		}
	})
}

// TestWhatTheKeeperHasWrittenDownDecides holds SM-902: a host that died right after the code was right is kept by the next one.
func TestWhatTheKeeperHasWrittenDownDecides(t *testing.T) {
	hosting(t, func(t *testing.T, a *drivetest.Assistants, k *drivetest.Kept, approved func() (id.Change, *control.Controller, func())) {
		chg, _, end := approved()
		end()
		k.Moves(keeper.Confirmed, func(r *keeper.Record) { r.By = []byte(`{"kind":"person","name":"ann","uid":1000}`) })
		c, _ := a.Begin()
		time.Sleep(10 * time.Second)
		if d := a.Is(c, chg, change.Finalized); d.Trial.By.Name != "ann" {
			t.Errorf("confirmed by %+v", d.Trial.By)
		}
		if heard := k.Heard(); heard[len(heard)-1] != "finalized" {
			t.Errorf("the keeper has heard %q", heard)
		}
	})
}

// TestTheOldHostBringsTheFilesBackBeforeItServes holds SM-123, SM-137, SM-138 and SM-905: a word, or the keeper by itself, has the host go back.
func TestTheOldHostBringsTheFilesBackBeforeItServes(t *testing.T) {
	for name, byWord := range map[string]bool{"by word": true, "by the keeper": false} {
		t.Run(name, func(t *testing.T) {
			hosting(t, func(t *testing.T, a *drivetest.Assistants, k *drivetest.Kept, approved func() (id.Change, *control.Controller, func())) {
				before := a.Git("rev-parse", "HEAD^{tree}")
				chg, _, end := approved()
				end()
				c, end := begun(a, k)
				d := trial.TimeOut()
				if byWord {
					if err := c.RollBack(gittest.Context(t), chg, a.By(), "no"); err != nil {
						t.Fatal(err)
					}
					if heard := k.Heard(); heard[len(heard)-1] != "roll back: no" {
						t.Errorf("the keeper has heard %q", heard)
					}
					if err := c.Confirm(gittest.Context(t), chg, a.By(), drivetest.RightCode); problem.KindOf(err) != problem.Conflict {
						t.Errorf("after that: %v", err)
					}
					d = trial.Decision{To: trial.RolledBack, By: a.By(), Reason: "no"}
				} else {
					k.Moves(keeper.Back, nil)
				}
				a.Is(c, chg, change.InTrial) // the old host writes that it goes back, not the one on trial
				end()

				old := control.New(a.Parts)
				for range 2 { // it may have to do it again
					if err := old.TakeHostBack(t.Context(), chg, d); err != nil {
						t.Fatal(err)
					}
				}
				at := a.Is(old, chg, change.RolledBack)
				if at.Trial.By.Kind != d.By.Kind || a.Git("rev-parse", "HEAD^{tree}") != before || a.Git("status", "--porcelain") != "" {
					t.Errorf("decided by %+v; %s", at.Trial.By, a.Git("status", "--porcelain"))
				}
			})
		})
	}
}

// TestTheOldHostIsBackWhateverTheOneOnTrialHasSaid holds SM-902: the host on trial says who wants it back, and why. No row takes anything.
func TestTheOldHostIsBackWhateverTheOneOnTrialHasSaid(t *testing.T) {
	for name, r := range map[string]keeper.Record{
		"nobody":            {Why: "x", By: []byte(`{}`)},
		"no actor":          {Why: "x", By: []byte(`["person"]`)},
		"another kind":      {Why: "x", By: []byte(`{"kind":"root","name":"ann"}`)},
		"half a person":     {Why: "x", By: []byte(`{"kind":"person","name":"ann","uid":"0"}`)},
		"no why":            {By: []byte(`null`)},
		"why is no text":    {Why: "a\x00b\xff\x1b[2J\n\nSigned-off-by: ann", By: nil},
		"why is a long one": {Why: strings.Repeat("why ", 16000), By: nil},
	} {
		got := confirm.WentBack(r)
		if got.To != trial.RolledBack || got.By != audit.Host || len(got.Reason) > 600 || strings.ContainsAny(got.Reason, "\x00\x1b\n") || !utf8.ValidString(got.Reason) {
			t.Errorf("%s: by %+v: %.700q", name, got.By, got.Reason)
		}
	}
	ann := audit.Actor{Kind: "person", Name: "ann", UID: 1000, Person: "per-1", Identity: "terminal:1000"}
	raw, err := json.Marshal(ann)
	if got := confirm.WentBack(keeper.Record{Why: "no", By: raw}); err != nil || got.By != ann || got.Reason != "no" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestNoHostHandsOverWithoutAWayBack holds SM-906 and SM-923: what keeps a host from going on trial leaves everything as it was, and says why.
func TestNoHostHandsOverWithoutAWayBack(t *testing.T) {
	for name, c := range map[string]struct {
		bad   func(k *drivetest.Kept)
		state change.State
		says  string
		heard []string
	}{
		"nobody has the code": {func(k *drivetest.Kept) {
			k.Ungiven = problem.Errorf(problem.Refused, "sallyport approve", "nobody has the code")
		}, change.AwaitingApproval, "nobody has the code", nil},
		"there is no space for a way back": {func(k *drivetest.Kept) {
			k.Unarmed = problem.Errorf(problem.Refused, "sallyport gc", "there is no space")
		}, change.AwaitingApproval, "there is no space", []string{"arm", "disarm"}},
		"it cannot hand over": {func(k *drivetest.Kept) {
			k.Unhanded = errors.New("there is no room for the snapshot")
		}, change.RolledBack, "there is no room for the snapshot", []string{"arm", "disarm"}},
	} {
		t.Run(name, func(t *testing.T) {
			hosting(t, func(t *testing.T, a *drivetest.Assistants, k *drivetest.Kept, approved func() (id.Change, *control.Controller, func())) {
				before := a.Git("rev-parse", "HEAD^{tree}")
				c.bad(k)
				chg, ctl, _ := approved()
				d := a.Is(ctl, chg, c.state)
				if said := d.Change.Reason; !strings.Contains(said, c.says) && (d.Proposal == nil || !strings.Contains(d.Proposal.Card.Note, c.says)) {
					t.Errorf("it says %q", said)
				}
				lines(t, "the keeper has heard", k.Heard(), c.heard...)
				if a.Git("rev-parse", "HEAD^{tree}") != before || a.Git("status", "--porcelain") != "" {
					t.Errorf("it is not as it was: %s", a.Git("status", "--porcelain"))
				}
			})
		})
	}
}

// TestNothingLandsBesideTheHost holds SM-916.
func TestNothingLandsBesideTheHost(t *testing.T) {
	hosting(t, func(t *testing.T, a *drivetest.Assistants, k *drivetest.Kept, approved func() (id.Change, *control.Controller, func())) {
		chg, _, end := approved()
		end()
		c, _ := begun(a, k)
		beside := a.Write(c, "page.txt")
		a.Is(c, beside, change.Landing)
		if err := c.Confirm(gittest.Context(t), chg, a.By(), drivetest.RightCode); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		a.Is(c, beside, change.Finalized)
	})
}

// TestAHostThatIsQuietMovesNothingButItsTrial: what another schema wrote elsewhere could not be taken back.
func TestAHostThatIsQuietMovesNothingButItsTrial(t *testing.T) {
	hosting(t, func(t *testing.T, a *drivetest.Assistants, k *drivetest.Kept, approved func() (id.Change, *control.Controller, func())) {
		chg, _, end := approved()
		end()
		k.Moves(keeper.Ready, nil)
		c := control.New(a.Parts)
		c.Originator = a
		loud := c.Only(chg)
		a.Runs(c)
		other := a.Write(c, "page.txt")
		a.Is(c, other, change.Requested)
		if d := a.Is(c, chg, change.InTrial); d.Trial.Handshake != trial.Message1Sent {
			t.Errorf("its own trial is %+v", d.Trial)
		}
		loud()
		time.Sleep(time.Minute)
		if d := a.Show(c, other); d.Change.State == change.Requested {
			t.Error("nothing moves after it either")
		}
	})
}

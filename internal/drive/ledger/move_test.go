package ledger_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
)

func TestAMoveAndItsEntryAreOneAndHoldNoSecret(t *testing.T) {
	b := open(t)
	row := b.add(change.Requested, func(c *change.Row) {
		c.Attempts, c.Outcome, c.Blocked, c.Holder, c.Until = 2, "nothing_to_do", "budget_used_up", "d", ledger.Now().Add(time.Hour)
	})
	because := problem.Errorf(problem.Unavailable, "cat "+planted, "the file holds %s", planted)
	moved, err := b.InTx(t.Context(), row, func(tx store.Tx, row *change.Row) error {
		return b.Move(t.Context(), tx, row, ledger.Move{Event: change.Fail, By: alice, Because: because, Digests: map[string]string{"tree": "t1"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	at := b.row(row.ID)
	if at.State != change.Failed || at.Attempts != 0 || at.Problem != string(problem.Unavailable) || at.Outcome+at.Blocked+at.Holder != "" || !at.Until.IsZero() || !at.Due.IsZero() || moved.State != at.State {
		t.Errorf("it is %+v", at)
	}
	entries := b.entries()
	if want := []string{"alice|chg-00000001|chg-00000001|fail|" + at.Reason + "|t1"}; !slices.Equal(entries, want) {
		t.Errorf("the log has %q, want %q", entries, want)
	}
	for _, text := range append(entries, at.Reason, at.Next, (<-b.told).Text) {
		if text == "" || strings.Contains(text, planted) {
			t.Errorf("%q is empty, or holds what was planted", text)
		}
	}
	if !slices.Equal(b.ended, []id.Change{row.ID}) {
		t.Errorf("ended %v", b.ended)
	}

	_, err = b.InTx(t.Context(), at, func(tx store.Tx, row *change.Row) error {
		return b.Move(t.Context(), tx, row, ledger.Move{Event: change.Landed, By: alice})
	})
	if !errors.Is(err, change.ErrMoved) || len(b.entries()) != 1 {
		t.Errorf("what cannot follow: %v, the log has %q", err, b.entries())
	}
}

func TestAMoveSaysWhoWhatAndWhenTheNextStepIs(t *testing.T) {
	b := open(t)
	row := b.add(change.Working, func(c *change.Row) { c.Holder, c.Until = "d", ledger.Now().Add(time.Hour) })
	before := ledger.Now()
	b.do(func(tx store.Tx) error {
		return b.Move(t.Context(), tx, &row, ledger.Move{Event: change.Block, By: audit.Host, Subject: "ses-1", Verb: "stopped", Blocked: "budget_used_up", Reason: "it has used " + planted, Next: "sallyport change show", Keep: true})
	})
	at := b.row(row.ID)
	if at.Holder != "d" || at.Until.IsZero() || at.Blocked != "budget_used_up" || at.Next != "sallyport change show" || !at.Due.IsZero() {
		t.Errorf("it is %+v", at)
	}
	b.do(func(tx store.Tx) error {
		return b.Move(t.Context(), tx, &row, ledger.Move{Event: change.Resume, By: alice, Wait: time.Minute})
	})
	if at := b.row(row.ID); at.Holder != "" || at.Due.Before(before.Add(time.Minute)) || at.Blocked+at.Reason != "" || at.Moved.Before(before) {
		t.Errorf("it is %+v", at)
	}
	got := b.entries()
	if len(got) != 2 || !strings.HasPrefix(got[0], audit.Host.Name+"|"+string(row.ID)+"|ses-1|stopped: budget_used_up|it has used [secret") || got[1] != "alice|"+string(row.ID)+"|"+string(row.ID)+"|resumed||" {
		t.Errorf("the log has %q", got)
	}
}

func TestEveryCheckThatPassedIsInTheLogAndNoOther(t *testing.T) {
	b := open(t)
	row := b.add(change.Submitted)
	b.do(func(tx store.Tx) error {
		results := []proposal.CheckResult{{Command: "go vet", OK: true}, {Command: "go test"}, {Command: "curl -H " + planted, OK: true}}
		return b.RecordPassedChecks(t.Context(), tx, row, results, "check passed", map[string]string{"tree": "t1"}, ledger.Now())
	})
	got := b.entries()
	if len(got) != 2 || !strings.HasSuffix(got[0], "|check passed|go vet|t1") || !strings.Contains(got[1], "|check passed|curl -H [secret") {
		t.Errorf("the log has %q", got)
	}
}

func TestWhoIsToldOfAMoveAndWhoIsNot(t *testing.T) {
	for _, c := range []struct {
		row  change.Row
		kind ledger.NoteKind
		text string
		next string
	}{
		{change.Row{State: change.AwaitingApproval}, ledger.NoteWaiting, "It waits for your approval: mend it", "sallyport approve chg-1"},
		{change.Row{State: change.AwaitingApproval, Reason: "the branch moved", Next: "look"}, ledger.NoteWaiting, "the branch moved", "look"},
		{change.Row{State: change.Blocked, Reason: "three failed"}, ledger.NoteWaiting, "The agent is stopped and waits for you: three failed", ""},
		{change.Row{State: change.RolledBack, Reason: "no answer"}, ledger.NoteRolledBack, "no answer", ""},
		{change.Row{State: change.RolledBack, RevertedBy: "chg-2"}, "", "", ""},
		{change.Row{State: change.Failed, Reason: "it holds " + planted}, ledger.NoteFailed, "it holds [secret", ""},
		{change.Row{State: change.RollbackFailed, Reason: "no way back"}, ledger.NoteRollbackFailed, "no way back", ""},
		{change.Row{State: change.RollbackFailed, Attempts: 1}, "", "", ""},
		{change.Row{State: change.Working}, "", "", ""},
		{change.Row{State: change.Finalized}, "", "", ""},
	} {
		b := open(t)
		c.row.ID, c.row.Request.Text = "chg-1", "mend it\nand more"
		b.Moved(c.row)
		b.EndAsides()
		close(b.told)
		n, any := <-b.told
		if any != (c.kind != "") || n.Kind != c.kind || !strings.HasPrefix(n.Text, c.text) || n.Next != c.next || strings.Contains(n.Text, planted) {
			t.Errorf("%s, %q: told %+v", c.row.State, c.row.Reason, n)
		}
		if c.row.State.Final() != (len(b.ended) == 1) || b.said.Len() > 0 {
			t.Errorf("%s: ended %v, and the daemon's log has %q", c.row.State, b.ended, b.said.String())
		}
	}
}

func TestWhoWatchesHearsOfAMoveAndTheReconcilerWakes(t *testing.T) {
	b := open(t)
	row := b.add(change.Working)
	watch := b.Feed.Subscribe(row.ID)
	row.Reason = "it holds " + planted
	b.Moved(row)
	if got := b.Feed.Next(t.Context(), watch); len(got) != 1 || got[0].Kind != "state" || got[0].State != change.Working || !strings.HasPrefix(got[0].Text, "it holds [secret") {
		t.Errorf("heard %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.Sleep(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("nobody woke it: %v", err)
	}
}

func TestANoteCountsOnceItWasTakenAndNobodyToTellIsNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		deaf  error
		taken bool
		says  string
	}{"taken": {nil, true, ""}, "nobody": {ledger.ErrNobody, false, ""}, "broken": {errors.New("no network"), false, "no network"}} {
		b := open(t)
		b.deaf = c.deaf
		taken := false
		b.Notify(ledger.Note{Change: "chg-1", Kind: ledger.NoteTrial, Text: "it holds " + planted}, func() { taken = true })
		b.EndAsides()
		if n := <-b.told; !strings.HasPrefix(n.Text, "it holds [secret") {
			t.Errorf("%s: told %+v", name, n)
		}
		if taken != c.taken || !strings.Contains(b.said.String(), c.says) || c.says == "" && b.said.Len() > 0 {
			t.Errorf("%s: taken %v, the log says %q", name, taken, b.said.String())
		}
	}
}

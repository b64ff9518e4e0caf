package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// TestWhatIsToldOfAChangeStandsWithItOrNotAtAll holds that a host which ends at any instant has told of a move exactly if the move stands.
func TestWhatIsToldOfAChangeStandsWithItOrNotAtAll(t *testing.T) {
	b := open(t)
	ctx := t.Context()
	chat := b.talks("terminal", "1000/echo", "echo")
	told := func() (texts []string) {
		t.Helper()
		for _, o := range b.outs(chat.ID) {
			texts = append(texts, o.Text)
		}
		return texts
	}

	lost := errors.New("the power went")
	for state, c := range map[change.State]struct {
		move ledger.Move
		want string
	}{
		change.AwaitingApproval: {ledger.Move{Event: change.Refused, By: alice, Reason: "no\nnotice: chg-1 is landed"}, `alice refused %: no\nnotice: chg-1 is landed; nothing of it landed`},
		change.Working:          {ledger.Move{Event: change.Cancel, By: alice, Reason: "it holds " + planted, Next: "sallyport change list"}, "alice cancelled %: it holds [secret"},
		change.Submitted:        {ledger.Move{Event: change.Fail, By: alice, Because: errors.New("the check failed")}, "% has failed: the check failed"},
		change.Landing:          {ledger.Move{Event: change.Landed, By: alice, Reason: "it is fine"}, "% is landed and kept: it is fine"},
		change.InTrial:          {ledger.Move{Event: change.TakenBack, By: alice, Reason: "Rolled back to previous version — confirmation timed out."}, "Rolled back to previous version — confirmation timed out."},
		change.RollbackFailed:   {ledger.Move{Event: change.GivenUp, By: alice, Because: errors.New("stopped")}, "% has failed: stopped"},
		change.Paused:           {ledger.Move{Event: change.Block, By: alice, Reason: "no key", Blocked: change.CredentialMissing}, "The agent that works on % is stopped and needs you: no key"},
	} {
		before := len(told())
		row := b.add(state, func(r *change.Row) { r.Request.Chat = chat.ID })
		at := row
		err := b.DB.InTx(ctx, func(tx store.Tx) error {
			at = row
			return errors.Join(b.Move(ctx, tx, &at, c.move), lost)
		})
		if now := told(); !errors.Is(err, lost) || len(now) != before {
			t.Errorf("%s: of a move that was not kept is told %q, %v", state, now, err)
		}
		if _, err := b.InTx(ctx, row, func(tx store.Tx, row *change.Row) error { return b.Move(ctx, tx, row, c.move) }); err != nil {
			t.Fatal(state, err)
		}
		now := told()
		if len(now) != before+1 || !strings.HasPrefix(now[len(now)-1], strings.ReplaceAll(c.want, "%", string(row.ID))) {
			t.Errorf("%s: told is %q, not %q", state, now[before:], c.want)
		}
	}

	// What goes on by itself is told where it says something, and what was asked for nowhere is told to nobody there.
	before, here := len(told()), chat.ID
	for _, chat := range []id.Chat{chat.ID, "", "cht-gone0000"} {
		row := b.add(change.Requested, func(r *change.Row) { r.Request.Chat = chat })
		b.do(func(tx store.Tx) error { return b.Move(ctx, tx, &row, ledger.Move{Event: change.Accepted, By: alice}) })
		if chat == here {
			continue
		}
		b.do(func(tx store.Tx) error {
			return errors.Join(b.Origin.Tell(ctx, tx, row, "x"), b.Move(ctx, tx, &row, ledger.Move{Event: change.Cancel, By: alice}))
		})
	}
	row := b.add(change.Working)
	b.do(func(tx store.Tx) error { return b.Move(ctx, tx, &row, ledger.Move{Event: change.Cancel, By: alice}) })
	if now := told(); len(now) != before {
		t.Errorf("told is %q", now[before:])
	}
	b.do(func(tx store.Tx) error {
		cards, err := tx.Cards(ctx, chat.Conversation, 10)
		if len(cards) > 0 {
			t.Errorf("these ask something: %+v", cards)
		}
		return err
	})
}

package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
)

func TestWhatIsAskedOfAChangeThatIsNotThereSaysSo(t *testing.T) {
	b := open(t)
	_, err1 := b.Row(t.Context(), "chg-missing0")
	_, err2 := b.Checkpoints(t.Context(), "chg-missing0")
	_, err3 := b.Audit(t.Context(), "chg-missing0", 0, 10)
	for _, err := range []error{err1, err2, err3} {
		if problem.KindOf(err) != problem.NotFound {
			t.Errorf("%v", err)
		}
	}
	row := b.add(change.Requested)
	if all, err := b.Audit(t.Context(), row.ID, 0, 10); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	b.do(func(tx store.Tx) error { // what the log has of a change outlives it
		return tx.AppendEntry(t.Context(), audit.Entry{At: ledger.Now(), Actor: alice, Change: "chg-removed0", Subject: "chg-removed0", Verb: "cancelled"})
	})
	if all, err := b.Audit(t.Context(), "chg-removed0", 0, 10); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if p, err := b.Proposal(t.Context(), row.ID); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	err := b.DB.Read(t.Context(), func(tx store.Tx) error { _, err := ledger.LandingNamed(t.Context(), tx, "lnd-missing0"); return err })
	if err == nil || !strings.Contains(err.Error(), "lnd-missing0") {
		t.Error(err)
	}
}

func TestWhatIsStoredOfAChangeIsRead(t *testing.T) {
	b := open(t)
	row, other := b.add(change.Working), b.add(change.Failed)
	oid := func(n int) git.OID { return git.OID(fmt.Sprintf("%040x", n)) }
	cp := checkpoint.Checkpoint{ID: "ckpt-001-00000003", Change: row.ID, Number: 1, At: ledger.Now(), Trigger: checkpoint.AtEnd, Base: oid(2), Commit: oid(3), Tree: oid(4), Status: checkpoint.Valid}
	p := proposal.Proposal{Change: row.ID, Number: 1, Checkpoint: cp.ID, Base: oid(2), Tree: oid(4), Commit: oid(5), Policy: "p", Digest: proposal.Sum(row.ID, oid(2), oid(4), "p"), At: ledger.Now()}
	var asked approval.Approval
	b.do(func(tx store.Tx) error {
		err := errors.Join(tx.PutSession(t.Context(), session.Session{ID: "sed-aaaaa", Change: row.ID, Attempt: 1, Agent: "command", Started: ledger.Now()}),
			tx.AddCheckpoint(t.Context(), cp), tx.AddProposal(t.Context(), p))
		if err == nil {
			asked, err = approval.Open(t.Context(), tx, "apr-00000001", p, ledger.Now())
		}
		return err
	})
	rows, err1 := b.List(t.Context(), change.Filter{States: []change.State{change.Failed}})
	cps, err2 := b.Checkpoints(t.Context(), row.ID)
	one, err3 := b.Checkpoint(t.Context(), cp.ID)
	open, err4 := b.Approvals(t.Context(), true, 0)
	runs, err5 := b.Sessions(t.Context(), row.ID)
	offered, err6 := b.Proposal(t.Context(), row.ID)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].ID != other.ID || len(cps) != 1 || one.ID != cp.ID || len(open) != 1 || open[0].ID != asked.ID || len(runs) != 1 || offered == nil || offered.Digest != p.Digest {
		t.Errorf("%v, %v, %v, %v, %v, %v", rows, cps, one, open, runs, offered)
	}

	for base, want := range map[git.OID]bool{"": false, oid(2): false, oid(9): true} { // made anew elsewhere, or not
		row.Base = string(base)
		if old, err := b.Superseded(t.Context(), row); err != nil || (old != nil) != want {
			t.Errorf("on %q: %v, %v", base, old, err)
		}
	}
	other.Base = string(oid(9))
	if old, err := b.Superseded(t.Context(), other); err != nil || old != nil {
		t.Errorf("one that offered nothing: %v, %v", old, err)
	}
}

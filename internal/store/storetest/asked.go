package storetest

import (
	"context"
	"fmt"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
)

func testAsked(t *testing.T, s *suite) {
	c, other := s.addChange(), s.addChange()
	add := func(change id.Change, asked ...session.Asked) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddAsked(ctx, change.Subject(), asked) })
	}
	lines := func(change id.Change) (all []session.Asked) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) (err error) {
			all, err = tx.Asked(ctx, change.Subject())
			return err
		})
		return all
	}
	refused := session.Asked{Host: "example.org\x1b[31m", Port: 443, Method: "CONNECT", Verdict: "refused", Why: "no rule \"names\" it",
		Count: 1, First: at(5), Last: at(5)}
	routed := session.Asked{Host: "127.0.0.1", Port: 3128, Method: "POST", Route: "model", Verdict: "allowed", Count: 3, First: at(6), Last: at(9)}
	failed := refused
	failed.Verdict, failed.Port = "failed", 65535
	add(c.ID, refused, routed)
	add(c.ID, failed)
	add(other.ID, routed)
	again := refused
	again.Count, again.First, again.Last = 4, at(2), at(8)
	add(c.ID, again)
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(disk.Ops{})
	refused.Count, refused.First, refused.Last = 5, at(2), at(8)
	s.same(lines(c.ID), []session.Asked{refused, routed, failed})
	s.same(lines(other.ID), []session.Asked{routed})

	// Of more kinds than may be told apart the rest is counted together; those that there are go on.
	var many []session.Asked
	for n := range session.AskedMax + 7 {
		many = append(many, session.Asked{Host: fmt.Sprintf("h%d", n), Method: "GET", Verdict: "refused", Count: 2, First: at(n), Last: at(n)})
	}
	add(other.ID, many...)
	add(other.ID, many[0], session.Asked{Host: "last", Verdict: "failed", Count: 1, First: at(1), Last: at(1)})
	all := lines(other.ID)
	if len(all) != session.AskedMax+2 {
		t.Fatalf("%d lines", len(all))
	}
	s.same(all[1].Count, 4)
	n := session.AskedMax
	s.same(all[n:], []session.Asked{
		{Verdict: "refused", Count: 16, First: at(n - 1), Last: at(n + 6)}, {Verdict: "failed", Count: 1, First: at(1), Last: at(1)},
	})

	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		return tx.AddAsked(ctx, "chg-nowhere0", []session.Asked{routed})
	})
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error {
		return tx.AddAsked(ctx, c.ID.Subject(), []session.Asked{{Host: "a\xff", Verdict: "refused", Count: 1, First: at(1), Last: at(1)}})
	})
	for _, bad := range []session.Asked{{Host: "a", Verdict: "dreaming", Count: 1}, {Host: "a", Verdict: "refused"}} {
		if err := s.db.InTx(context.Background(), func(tx store.Tx) error {
			return tx.AddAsked(context.Background(), c.ID.Subject(), []session.Asked{bad})
		}); err == nil {
			t.Errorf("stored: %+v", bad)
		}
	}
}

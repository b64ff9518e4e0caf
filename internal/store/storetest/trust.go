package storetest

import (
	"context"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
)

// aTrust is the trust in words that a database may be tempted to change.
func aTrust(repository, restart string) trust.Trust {
	words := trust.Target{
		Restart: restart, Within: 90 * time.Second, Trial: time.Minute, Proposed: true,
		Probe: trust.Probe{HTTP: "http://localhost/?a=<&>", Healthy: time.Second, Within: 2 * time.Second, Every: 3 * time.Second, Timeout: 4 * time.Second},
	}
	return trust.Trust{Repository: repository, Digest: words.Digest(), Words: words, By: alice.Name, UID: alice.UID, At: at(3)}
}

func testTrust(t *testing.T, s *suite) {
	first, other := aTrust("/src/a/.git", "systemctl restart a\n\u202e#"), aTrust("/src/b/.git", "b")
	found := func(repository string) (tr trust.Trust, ok bool) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) (err error) {
			tr, ok, err = tx.Trust(ctx, repository)
			return err
		})
		return tr, ok
	}
	if tr, ok := found(first.Repository); ok {
		t.Errorf("a new home trusts %+v", tr)
	}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.PutTrust(ctx, first) })
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.PutTrust(ctx, other) })
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(disk.Ops{})
	if tr, ok := found(first.Repository); !ok || tr != first || tr.Words.Digest() != tr.Digest {
		t.Errorf("got %+v, %v", tr, ok)
	}
	if _, ok := found("/src/a"); ok {
		t.Error("another folder is trusted")
	}
	again := aTrust(first.Repository, "systemctl restart a")
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.PutTrust(ctx, again) })
	if tr, ok := found(first.Repository); !ok || tr != again {
		t.Errorf("there is one trust of a repository, the last: %+v, %v", tr, ok)
	}
	lie := again
	lie.Digest = other.Digest
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error { return tx.PutTrust(ctx, lie) })
	lost := aTrust(first.Repository, "a\xff")
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error { return tx.PutTrust(ctx, lost) })
	for _, want := range []bool{true, false} {
		s.do(func(ctx context.Context, tx store.Tx) error {
			if dropped, err := tx.DropTrust(ctx, first.Repository); err != nil || dropped != want {
				t.Errorf("dropped %v, %v; want %v", dropped, err, want)
			}
			return nil
		})
	}
	if _, ok := found(first.Repository); ok {
		t.Error("what was taken back is trusted")
	}
	if tr, ok := found(other.Repository); !ok || tr != other {
		t.Errorf("another repository's trust is %+v, %v", tr, ok)
	}
}

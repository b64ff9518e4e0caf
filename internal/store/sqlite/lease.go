package sqlite

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
)

// leases say who may do what only one may.
type leases struct{ *queries }

// TakeLease takes a free key, or renews what holder has. A lease that ran out is taken anew.
func (t leases) TakeLease(ctx context.Context, key, holder string, now time.Time, ttl time.Duration) (lock.Lease, bool, error) {
	if holder == "" {
		return lock.Lease{}, false, problem.Errorf(problem.Internal, "", "take lease %q: nobody is no holder", key)
	}
	n, err := t.write(ctx, "take-lease", `INSERT INTO lease (key, holder, fence, until_at) VALUES (?1, ?2, 1, ?3)
		ON CONFLICT (key) DO UPDATE SET
			fence = fence + CASE WHEN holder = excluded.holder AND until_at > ?4 THEN 0 ELSE 1 END,
			holder = excluded.holder, until_at = excluded.until_at
		WHERE holder = excluded.holder OR until_at <= ?4`, key, holder, now.Add(ttl).UnixMilli(), now.UnixMilli())
	if err != nil {
		return lock.Lease{}, false, fmt.Errorf("take lease %q: %w", key, err)
	}
	l := lock.Lease{Key: key}
	var until int64
	if _, err := t.one(ctx, `SELECT holder, fence, until_at FROM lease WHERE key = ?`, []any{key}, &l.Holder, &l.Fence, &until); err != nil {
		return lock.Lease{}, false, fmt.Errorf("take lease %q: %w", key, err)
	}
	l.Until = time.UnixMilli(until).UTC()
	return l, n == 1, nil
}

// DropLease gives a lease back. The row stays: its fence must go on growing.
func (t leases) DropLease(ctx context.Context, l lock.Lease) error {
	_, err := t.write(ctx, "drop-lease", `UPDATE lease SET holder = '', until_at = 0 WHERE key = ? AND holder = ? AND fence = ?`,
		l.Key, l.Holder, l.Fence)
	return doing(err, "drop lease %q", l.Key)
}

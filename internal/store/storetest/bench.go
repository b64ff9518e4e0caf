package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/store"
)

// Bench measures a durable transition: one move of a change and its audit entry, alone
// and with 256 callers that each wait for their own.
func Bench(b *testing.B, open Opener) {
	db, err := open(disk.Ops{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	s := &suite{t: b, db: db}
	for _, c := range []struct {
		name    string
		waiters int
	}{{"alone", 1}, {"256 waiters", 256}} {
		rows := make([]store.Change, c.waiters)
		for n := range rows {
			rows[n] = s.addChange(func(c *store.Change) { c.Due = time.Time{} })
		}
		b.Run(c.name, func(b *testing.B) { transitions(b, db, rows) })
	}
}

func transitions(b *testing.B, db store.DB, rows []store.Change) {
	ctx := context.Background()
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, len(rows))
	var wg sync.WaitGroup
	b.ResetTimer()
	for n := range rows {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				start := time.Now()
				err := db.InTx(ctx, func(tx store.Tx) error {
					c, err := tx.Change(ctx, rows[n].ID)
					if err != nil {
						return err
					}
					from := c.State
					if c.State = "working"; from == "working" {
						c.State = "submitted"
					}
					return errors.Join(tx.MoveChange(ctx, from, c), tx.AppendEntry(ctx, audit.Entry{
						At: start, Actor: audit.Host, Change: string(c.ID), Subject: string(c.ID), Verb: "moved",
						Digests: map[string]string{"base": c.Base}}))
				})
				if err != nil {
					b.Error(err)
					return
				}
				took[n] = append(took[n], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "transitions/s")
	}
}

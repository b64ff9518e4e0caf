package drivetest

import (
	"context"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/code"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/drive/guard"
)

// Kept plays the keeper of the host: it has the record, and a test moves it on as a keeper would that starts the host again.
type Kept struct {
	mu    sync.Mutex
	r     keeper.Record
	is    bool
	heard []string

	Ungiven  error // why nobody has the code; nil = it was given
	Unarmed  error // why there is no way back; nil = there is
	Unhanded error // why the host cannot hand over; nil = it can
}

var _ guard.Host = (*Kept)(nil)

// Keep has a keeper judge trials of the host of this home.
func Keep(h *Home) *Kept {
	k := &Kept{}
	h.Parts.Host = k
	return k
}

// Moves is what a keeper writes.
func (k *Kept) Moves(to keeper.Step, change func(*keeper.Record)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.r.Step = to
	if change != nil {
		change(&k.r)
	}
}

// Heard is what the host has said to its keeper, in order.
func (k *Kept) Heard() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.heard...)
}

func (k *Kept) hear(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard = append(k.heard, what)
}

func (k *Kept) Judges() error { return nil }

func (k *Kept) Record() (keeper.Record, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.r, k.is, nil
}

func (k *Kept) Code(context.Context, id.Change) (code.Hash, error) {
	return code.Hash{}, k.Ungiven
}

func (k *Kept) Arm(_ context.Context, c guard.HostChange) error {
	k.hear("arm")
	if k.Unarmed != nil {
		return k.Unarmed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now, err := deadman.Now()
	k.r, k.is = keeper.Record{Change: string(c.Change), Step: keeper.Armed, New: c.Release, Armed: now,
		Due: deadman.Deadline{Set: now, In: 10 * time.Minute}}, true
	return err
}

func (k *Kept) Disarm(id.Change) error {
	k.hear("disarm")
	k.mu.Lock()
	defer k.mu.Unlock()
	k.is = false
	return nil
}

func (k *Kept) HandOver(context.Context, id.Change) error {
	if k.Unhanded != nil {
		return k.Unhanded
	}
	k.hear("hand over")
	k.Moves(keeper.Handed, func(r *keeper.Record) {
		r.Handed, _ = deadman.Now()
		r.Due = deadman.Deadline{Set: r.Handed, In: 2 * time.Minute}
	})
	return nil
}

func (k *Kept) Asked(context.Context, id.Change) error {
	k.hear("asked")
	k.Moves(keeper.Asked, nil)
	return nil
}

// RightCode is what a trial of the host is confirmed with here.
const RightCode = "ABCD-EFGH-JKLM"

func (k *Kept) Confirm(_ context.Context, _ id.Change, code string, _ audit.Actor) error {
	k.hear("confirm " + code)
	if code != RightCode {
		return keeper.ErrCode
	}
	k.Moves(keeper.Confirmed, nil)
	return nil
}

func (k *Kept) RollBack(_ context.Context, _ id.Change, why string, _ audit.Actor) error {
	k.hear("roll back: " + why)
	k.Moves(keeper.Back, func(r *keeper.Record) { r.Why = why })
	return nil
}

func (k *Kept) Finalized(context.Context, id.Change) error {
	k.hear("finalized")
	k.mu.Lock()
	defer k.mu.Unlock()
	k.is = false
	return nil
}

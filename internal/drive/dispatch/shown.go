package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
)

// shown remembers when cards were told to somebody, until that is in their rows.
type shown struct {
	mu sync.Mutex
	by map[id.Out]telling
}

// telling is when one card was told, to each who is told it. One who could not be told takes nothing from the others.
type telling struct {
	at   []time.Time
	told bool // to the end, to one of them
}

// at is when one was, first; nil if it was not.
func (s *shown) at(card id.Out) *time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.by[card]; len(t.at) > 0 {
		at := slices.MinFunc(t.at, time.Time.Compare)
		return &at
	}
	return nil
}

// begin notes that somebody is being told a card; false if another has been told it.
func (s *shown) begin(card id.Out, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[card].told {
		return false
	}
	if s.by == nil {
		s.by = map[id.Out]telling{}
	}
	maps.DeleteFunc(s.by, func(_ id.Out, t telling) bool { return at.Sub(slices.MaxFunc(t.at, time.Time.Compare)) > shownFor })
	t := s.by[card]
	t.at = append(t.at, at)
	s.by[card] = t
	return true
}

// end notes that they were told it, or not; first says that nobody was before.
func (s *shown) end(card id.Out, at time.Time, told bool) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.by[card]
	switch n := slices.Index(t.at, at); {
	case !ok:
		return told
	case told:
		first, t.told = !t.told, true
	case n >= 0:
		t.at = slices.Delete(t.at, n, n+1)
	}
	if s.by[card] = t; len(t.at) == 0 {
		delete(s.by, card)
	}
	return first
}

// shownFor is how long a delivery is remembered beside its row.
const shownFor = time.Hour

// delivered notes that a card is told to who watches, before that is written down: who answers at once has seen it. What it returns
// writes it down, or forgets it if it could not be told.
func (d decider) delivered(ctx context.Context, o message.Out) func(told bool) {
	at := ledger.Now()
	if !o.Card.Host() || o.Delivered != nil || !d.shown.begin(o.ID, at) {
		return func(bool) {}
	}
	return func(told bool) {
		if first := d.shown.end(o.ID, at, told); !first {
			return
		}
		if o.Card == message.CardTrial && d.Changes != nil {
			d.Changes.RecordDelivery(o.Change)
		}
		err := d.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error { return tx.NoteDelivery(ctx, o.ID, at) })
		if err != nil {
			d.Log.Warn("that a card was shown could not be kept; after a restart it is shown again before it can be answered", "card", o.ID, "error", err)
		}
	}
}

package drivetest

import (
	"context"
	"sync"
	"time"

	"sallyport/internal/drive/live"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
)

// Ways are a network of doors that lead nowhere, and remember what they were opened for.
type Ways struct {
	Mu     sync.Mutex
	Opened []live.Outgoing
	closed int
	Refuse error
	None   bool // nothing may be reached
}

func (w *Ways) Open(_ context.Context, o live.Outgoing) (live.Way, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Opened = append(w.Opened, o)
	if w.Refuse != nil || w.None {
		return live.Way{}, w.Refuse
	}
	return session.Way{Socket: "/run/x/" + string(o.Session), End: func() {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		w.closed++
	}}, nil
}

func (w *Ways) Counts() (opened, closed int) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return len(w.Opened), w.closed
}

// Decide tells the way that was opened last what became of a request.
func (w *Ways) Decide(d egress.Decision) {
	w.Mu.Lock()
	decided := w.Opened[len(w.Opened)-1].Decided
	w.Mu.Unlock()
	d.At = time.Now()
	decided(d)
}

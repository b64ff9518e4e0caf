package channeltest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"sallyport/internal/port/channel"
)

// scriptedDriver speaks with it.
type scriptedDriver struct{ s *Scripted }

func (d *scriptedDriver) Can() channel.Can { return d.s.can }

func (d *scriptedDriver) Run(ctx context.Context, l channel.Listener) error {
	d.s.mu.Lock()
	if err := d.s.gone; err != nil {
		changed := d.s.changed
		d.s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			return err
		}
	}
	session, end := context.WithCancelCause(ctx)
	d.s.session = end
	at, _ := strconv.Atoi(l.Cursor)
	if !d.s.can.History {
		at = len(d.s.log)
	}
	d.s.mu.Unlock()
	defer end(nil)

	if !d.s.can.History {
		l.Lost(ctx, "")
	}
	l.Ready(channel.Self{Account: "B1", Names: []string{"port"}})
	h := &hands{l: l, places: map[string][]channel.Event{}, low: at, done: map[int]bool{}}
	defer h.all.Wait()
	for {
		d.s.mu.Lock()
		changed := d.s.changed
		there := len(d.s.log)
		if d.s.held {
			there = min(there, d.s.heldAt)
		}
		next := append([]channel.Event(nil), d.s.log[min(at, there):there]...)
		d.s.mu.Unlock()
		h.give(session, next, at)
		at = max(at, there)
		select {
		case <-session.Done():
			if ctx.Err() != nil {
				return nil
			}
			return context.Cause(session)
		case <-changed:
		}
	}
}

// refusedPause is how long what was not taken waits.
const refusedPause = 50 * time.Millisecond

// hands hands events over, those of a place one after the other and several places at once, each until it is taken. The cursor passes none
// that was not.
type hands struct {
	l   channel.Listener
	all sync.WaitGroup

	mu     sync.Mutex
	places map[string][]channel.Event // that wait, by their place; there while somebody hands them over
	low    int                        // all before it are taken
	done   map[int]bool               // after it
	open   int                        // neither taken nor given up
	moving bool
}

// give hands over what stands in the log from a number on, and waits for none of it.
func (h *hands) give(ctx context.Context, next []channel.Event, from int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, e := range next {
		e.Cursor = strconv.Itoa(from + n + 1)
		of := e.Place.Address
		mine, busy := h.places[of]
		h.places[of] = append(mine, e)
		h.open++
		if !busy {
			h.all.Go(func() { h.work(ctx, of) })
		}
	}
}

// work hands over what waits of a place.
func (h *hands) work(ctx context.Context, place string) {
	for {
		h.mu.Lock()
		if len(h.places[place]) == 0 {
			delete(h.places, place)
			h.mu.Unlock()
			return
		}
		e := h.places[place][0]
		h.places[place] = h.places[place][1:]
		at, _ := strconv.Atoi(e.Cursor)
		alone := h.open == 1 // then it carries the cursor itself
		h.mu.Unlock()
		if !alone {
			e.Cursor = ""
		}
		for h.l.Take(ctx, e) != nil {
			if !pause(ctx) {
				return
			}
		}
		h.took(ctx, at, alone)
	}
}

// took notes that an event was taken, and has the cursor follow.
func (h *hands) took(ctx context.Context, at int, carried bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	h.done[at] = true
	for h.done[h.low+1] {
		h.low++
		delete(h.done, h.low)
	}
	if !carried && !h.moving {
		h.moving = true
		h.all.Go(func() { h.move(ctx) })
	}
}

// move has the cursor follow until it stands behind all that was taken.
func (h *hands) move(ctx context.Context) {
	for moved := -1; ; {
		h.mu.Lock()
		low := h.low
		if h.moving = low != moved; !h.moving {
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		if h.l.Move(ctx, strconv.Itoa(low)) == nil {
			moved = low
		} else if !pause(ctx) {
			return
		}
	}
}

// pause waits, and reports whether there is a session to go on with.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(refusedPause):
		return true
	}
}

// may says why a place takes nothing now; mu is held.
func (d *scriptedDriver) may(place string) error {
	switch now := time.Now(); {
	case d.s.gone != nil:
		return fmt.Errorf("%w: %w", channel.ErrAway, d.s.gone)
	case d.s.dead[place]:
		return channel.ErrDead
	case d.s.limits[""].After(now):
		return &channel.Later{Until: d.s.limits[""], All: true}
	case d.s.limits[place].After(now):
		return &channel.Later{Until: d.s.limits[place]}
	}
	return nil
}

func (d *scriptedDriver) Deliver(_ context.Context, m channel.Message) (string, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if err := d.may(m.Place); err != nil {
		return "", err
	}
	if id, ok := d.s.nonces[m.Place+" "+m.Nonce]; ok && m.Nonce != "" {
		return id, nil
	}
	a := Arrived{ID: d.s.id("o", len(d.s.nonces)), Thread: m.Thread, Text: m.Text}
	if m.Card != nil {
		a.Buttons = m.Card.Options
		d.s.nonces["question "+a.ID] = m.Card.Question
	}
	d.s.nonces[m.Place+" "+m.Nonce] = a.ID
	d.s.out[m.Place] = append(d.s.out[m.Place], a)
	d.s.wake()
	return a.ID, nil
}

func (d *scriptedDriver) Update(_ context.Context, id string, m channel.Message) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if err := d.may(m.Place); err != nil {
		return err
	}
	for i, a := range d.s.out[m.Place] {
		if a.ID == id {
			d.s.out[m.Place][i].Text, d.s.out[m.Place][i].Buttons = m.Text, nil
			if m.Card != nil {
				d.s.out[m.Place][i].Buttons = m.Card.Options
			}
			d.s.wake()
			return nil
		}
	}
	return channel.ErrDead
}

func (d *scriptedDriver) Direct(_ context.Context, account string) (string, error) {
	for _, p := range d.s.People() {
		if p.Account == account {
			return DirectOf(p).Address, nil
		}
	}
	return "", channel.ErrDead
}

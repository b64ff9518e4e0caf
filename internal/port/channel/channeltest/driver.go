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
	for {
		d.s.mu.Lock()
		changed := d.s.changed
		there := len(d.s.log)
		if d.s.held {
			there = min(there, d.s.heldAt)
		}
		next := append([]channel.Event(nil), d.s.log[min(at, there):there]...)
		d.s.mu.Unlock()
		taken := hand(session, l, next, at)
		at += taken
		switch {
		case taken < len(next): // it is handed over again
			changed = after(refusedPause)
		case len(next) > 0:
			changed = after(0)
		}
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

// after is closed after a while.
func after(wait time.Duration) chan struct{} {
	over := make(chan struct{})
	if wait == 0 {
		close(over)
	} else {
		time.AfterFunc(wait, func() { close(over) })
	}
	return over
}

// hand hands events over, those of a place one after the other and several places at once, and returns how many are behind us: the cursor
// passes none that was not taken.
func hand(ctx context.Context, l channel.Listener, next []channel.Event, at int) int {
	places := map[string][]int{}
	for n, e := range next {
		places[e.Place.Address] = append(places[e.Place.Address], n)
	}
	var all sync.WaitGroup
	stuck := make(chan int, len(places)+1)
	stuck <- len(next)
	for _, mine := range places {
		all.Go(func() {
			for _, n := range mine {
				e := next[n]
				if len(places) == 1 {
					e.Cursor = strconv.Itoa(at + n + 1)
				}
				if err := l.Take(ctx, e); err != nil {
					stuck <- n
					return
				}
			}
		})
	}
	all.Wait()
	close(stuck)
	first := len(next)
	for n := range stuck {
		first = min(first, n)
	}
	if len(places) > 1 && l.Move(ctx, strconv.Itoa(at+first)) != nil {
		return 0 // they come again
	}
	return first
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

package live

import (
	"context"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
	"sallyport/internal/store"
)

// accountEvery is how often what is asked without end is written and told.
const accountEvery = time.Second

// accountPatience is how long the writing of one account may take.
const accountPatience = 10 * time.Second

// What is kept of one request's texts.
const (
	hostBytesMax = 253
	wordBytesMax = 32
	whyBytesMax  = 300
)

// account counts what one sandbox asks of its way out. What is new is written and told at once, the rest once a
// while: an agent that asks without end costs no more than one that asks now and then. What a dying daemon had not
// written is lost; nothing but the count stands on it.
type account struct {
	ledger  *ledger.Ledger
	subject id.Subject
	ctx     context.Context // of writing; it outlives the step
	wake    chan struct{}   // holds one token when there is something to write
	over    chan struct{}
	done    chan struct{}

	mu    sync.Mutex
	lines []session.Asked       // not written yet
	at    map[session.Asked]int // by kind
}

func keepAccount(ctx context.Context, l *ledger.Ledger, subject id.Subject) *account {
	a := &account{
		ledger: l, subject: subject, ctx: context.WithoutCancel(ctx), at: map[session.Asked]int{},
		wake: make(chan struct{}, 1), over: make(chan struct{}), done: make(chan struct{}),
	}
	go a.run() // ends with close
	return a
}

// close writes what is left. Nothing may be decided any more.
func (a *account) close() {
	close(a.over)
	<-a.done
	a.write()
}

// decided takes one decision; it does not block. Its texts are looked at when they are written: of what is asked without end that is seldom.
func (a *account) decided(d egress.Decision) {
	why := d.Why
	if d.Verdict != egress.Allowed && d.Path != "" {
		why = d.Path + ": " + why
	}
	at := d.At.UTC().Truncate(time.Millisecond)
	a.add(session.Asked{
		Host: d.Host, Port: d.Port, Method: d.Method, Route: d.Route, Verdict: string(d.Verdict), Why: why,
		Count: 1, First: at, Last: at,
	})
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// clean is a line as it may be kept and shown.
func (a *account) clean(l session.Asked) session.Asked {
	clean := func(text string, most int) string {
		text = strings.ToValidUTF8(a.ledger.Secrets.Redact(text), "\uFFFD")
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "")
		}
		return text
	}
	l.Host, l.Method = clean(l.Host, hostBytesMax), clean(l.Method, wordBytesMax)
	l.Route, l.Why = clean(l.Route, wordBytesMax), clean(l.Why, whyBytesMax)
	return l
}

func (a *account) add(asked session.Asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, known := a.at[asked.Kind()]
	if !known && len(a.lines) >= session.AskedMax {
		asked = asked.Rest()
		n, known = a.at[asked.Kind()]
	}
	if !known {
		n = len(a.lines)
		a.at[asked.Kind()] = n
		a.lines = append(a.lines, asked)
		return
	}
	a.lines[n].Add(asked)
}

func (a *account) take() []session.Asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines := a.lines
	a.lines, a.at = nil, map[session.Asked]int{}
	return lines
}

func (a *account) run() {
	defer close(a.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-a.over:
			return
		case <-a.wake:
		}
		a.write()
		pause.Reset(accountEvery)
		select {
		case <-a.over:
			return
		case <-pause.C:
		}
	}
}

// write writes what came since the last time, and tells who watches. What could not be written is tried again.
func (a *account) write() {
	lines := a.take()
	if len(lines) == 0 {
		return
	}
	for i, l := range lines {
		lines[i] = a.clean(l)
	}
	ctx, cancel := context.WithTimeout(a.ctx, accountPatience)
	defer cancel()
	if err := a.ledger.DB.InTx(ctx, func(tx store.Tx) error { return tx.AddAsked(ctx, a.subject, lines) }); err != nil {
		a.ledger.Log.Warn("the requests to the network were not recorded; the next time tries again", "for", a.subject, "error", err)
		for _, l := range lines {
			a.add(l)
		}
		return
	}
	of, ok := a.subject.Change()
	if !ok {
		return
	}
	for _, l := range lines {
		a.ledger.Feed.Publish(change.Notice{Change: of, At: l.Last, Kind: change.NoticeEgress, Asked: &l})
	}
}

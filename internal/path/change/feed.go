package change

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/id"
)

// queueMax is how many notices a slow reader may be behind before it misses some.
const queueMax = 256

// keepFor is how long what happens to a change that was just accepted is kept for who asked for it to come and watch.
const keepFor = time.Minute

// Feed hands notices to who watches. It never blocks who publishes.
type Feed struct {
	clean func(string) string // takes secrets out of a text

	mu   sync.Mutex
	seq  int64
	subs map[*Subscription]struct{}
	kept map[id.Change]*Subscription // of changes that nobody has come to watch yet; in subs too
}

type Subscription struct {
	change id.Change
	queue  []Notice
	ready  chan struct{}
	since  time.Time
	missed missed // since the queue was last taken
}

// missed counts what a reader was too slow for.
type missed struct {
	lines, others int
	first         Notice // of them
	behind        int    // how many had been queued before it
}

// say tells it to a person; "" if it is nothing worth telling.
func (m missed) say(change id.Change) string {
	var what []string
	if m.lines > 0 {
		what = append(what, counted(m.lines, "line")+" of the program's output")
	}
	if m.others > 0 {
		what = append(what, counted(m.others, "other notice"))
	}
	if len(what) == 0 {
		return ""
	}
	return strings.Join(what, " and ") + " left out here, because this view fell behind; the whole output: sallyport change log " + string(change)
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

func NewFeed(clean func(string) string) *Feed {
	return &Feed{clean: clean, subs: map[*Subscription]struct{}{}, kept: map[id.Change]*Subscription{}}
}

// Publish queues n for everybody who watches its change. What is neither a state nor a question is dropped for
// a reader who is too far behind.
func (f *Feed) Publish(n Notice) {
	if n.Kind != "output" { // a transcript's lines are clean
		n.Text = f.clean(n.Text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	n.Seq = f.seq
	for s := range f.subs {
		if s.change != n.Change {
			continue
		}
		if len(s.queue) >= queueMax && n.Kind != "state" && n.Kind != "trial" {
			s.miss(n)
			continue
		}
		s.queue = append(s.queue, n)
		select {
		case s.ready <- struct{}{}:
		default:
		}
	}
}

// miss is called with mu held.
func (s *Subscription) miss(n Notice) {
	if n.Kind == "progress" {
		return // the next one says the same and more
	}
	if s.missed.lines+s.missed.others == 0 {
		s.missed.first, s.missed.behind = n, len(s.queue)
	}
	if n.Kind == "output" {
		s.missed.lines++
	} else {
		s.missed.others++
	}
}

// Watched reports whether anybody watches a change.
func (f *Feed) Watched(change id.Change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		if s.change == change && f.kept[change] != s {
			return true
		}
	}
	return false
}

func (f *Feed) Subscribe(change id.Change) *Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(change)
}

// add is called with mu held.
func (f *Feed) add(change id.Change) *Subscription {
	s := &Subscription{change: change, ready: make(chan struct{}, 1), since: time.Now()}
	f.subs[s] = struct{}{}
	return s
}

// Keep begins to keep what happens to a change, for keepFor or until somebody watches it: who asked for it misses
// nothing, however late they come. Call it before anything is told of the change.
func (f *Feed) Keep(change id.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other, s := range f.kept {
		if time.Since(s.since) > keepFor {
			delete(f.kept, other)
			delete(f.subs, s)
		}
	}
	f.kept[change] = f.add(change)
}

// Watch is subscribe for one who wants to see all of it. What was kept is theirs if it is the way to where the change
// rests or works now: of a change that rested and went on only what is to come is told.
func (f *Feed) Watch(change id.Change) (s *Subscription, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s = f.kept[change]
	if s == nil {
		return f.add(change), false
	}
	delete(f.kept, change)
	rested := false
	for _, n := range s.queue {
		if n.Kind != "state" {
			continue
		}
		if rested {
			s.queue = nil
			return s, false
		}
		rested = n.Rests()
	}
	return s, len(s.queue) > 0
}

// Rests reports whether nothing happens by itself in the state that a notice tells.
func (n Notice) Rests() bool { return n.Kind == "state" && !n.State.Due() && n.State != Paused }

func (f *Feed) Unsubscribe(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
}

// Next returns what has been queued, waiting for at least one; nil when ctx ends.
func (f *Feed) Next(ctx context.Context, s *Subscription) []Notice {
	for {
		f.mu.Lock()
		queue := s.queue
		if text := s.missed.say(s.change); text != "" {
			first := s.missed.first
			queue = slices.Insert(queue, s.missed.behind, Notice{Seq: first.Seq, Change: s.change, At: first.At, Kind: NoticeMissed, Text: text})
		}
		s.queue, s.missed = nil, missed{}
		f.mu.Unlock()
		if len(queue) > 0 {
			return queue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.ready:
		}
	}
}

package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/release"
)

// How patient a keeper is with its daemon.
const (
	readyMax  = 10 * time.Minute       // until it answers: it may have a large database to bring up to date
	silentMax = 3 * time.Minute        // between two beats
	hearMax   = 10 * time.Second       // more, for one that was said and not heard
	partMax   = 2 * time.Second        // of one that has itself asked to go back
	endMax    = 45 * time.Second       // from being asked to end until it has
	pauseMin  = time.Second            // before a second start in a row; doubles after each
	pauseMax  = time.Minute            //
	steady    = time.Minute            // a daemon that was up for so long is started again at once
	lookEvery = 500 * time.Millisecond // at the landings that are under way
	hungAfter = 5 * time.Second        // that a daemon which answers has after the deadline of a landing
)

// parts are what a keeper does its work with.
type parts struct {
	start  func(last Last, digest string) (child, error) // digest "" = of the current release
	late   late
	host   *host
	died   <-chan os.Signal // a child of this process has ended
	family family
	tell   func(format string, a ...any)
}

// late tells of deadlines that a daemon lets pass.
type late interface {
	// overdue says which one has passed, and that no daemon was ended for yet; "" = none.
	overdue() string
	// ended says that a daemon was ended for what is overdue.
	ended()
}

// family is what a keeper does with the processes that daemons leave behind.
type family interface {
	adopt(yes bool)            // has them become children of this one, or no longer
	reap(daemon child)         // takes those away that have ended
	endSurvivors(daemon child) // ends those of a daemon that has ended
	reached() string           // says which limit what is on trial has reached; "" = none
	lift()                     // has it run on without limits
}

// outcome is how the time of one daemon went.
type outcome struct {
	exit
	asked   bool          // it ended because somebody wanted that
	planned bool          // the keeper wanted that, for a host change
	ready   bool          // it has answered
	up      time.Duration // since it did
}

// keep has a daemon run until ctx ends or the daemon says that it was asked to stop, and returns the exit status for that.
//
// A daemon that ends unasked is started again, at once and then with longer and longer pauses, for ever. Only a keeper whose first
// daemon ends by itself before it ever answers ends with it: a person who has just typed `serve` is told why, and mends that. While a
// host change is under way, which release is started, and what goes before, is said by its record alone.
func keep(ctx context.Context, p parts) (status int, err error) {
	last, answered, pause := Last{}, false, time.Duration(0)
	for {
		digest, fresh, err := p.host.turn(ctx)
		if errors.Is(err, errGone) {
			return 1, err
		}
		if err != nil { // of ctx
			return 0, nil
		}
		plain, trial := p.host.r.Step == "", p.host.r.Step.kept()
		p.family.adopt(trial)
		c, err := p.start(last, digest)
		if damaged := new(release.Fault); err != nil && plain && (!answered || errors.As(err, &damaged)) {
			return 1, err // only a person, or who starts serve again, brings the release back
		}
		got := outcome{exit: exit{status: -1, why: fmt.Sprint(err)}}
		if err == nil {
			got = attend(ctx, c, fresh, p)
		}
		answered = answered || got.ready
		if trial && p.host.r.Step.kept() {
			p.family.endSurvivors(c)
		}
		switch {
		case got.asked || ctx.Err() != nil:
			return 0, nil
		case got.planned:
			pause = 0
			continue
		case !answered && got.status > 0 && p.host.idle():
			return got.status, nil // it has said itself why
		}

		last = Last{Restarts: last.Restarts + 1, Why: got.why, At: time.Now().UTC()}
		if p.host.lost(got.why) || got.up >= steady {
			pause = 0
		}
		p.tell("the daemon is gone: %s; it is started again in %s", got.why, pause)
		select {
		case <-ctx.Done():
			return 0, nil
		case <-time.After(pause):
		}
		pause = min(max(2*pause, pauseMin), pauseMax)
	}
}

// life is the time of one daemon.
type life struct {
	child
	parts
	outcome
	fresh           bool // it is of the version on trial
	silent          bool // it was, once more than it may be
	killed          string
	since, lateFrom time.Time
	patience        *time.Timer
}

// attend waits for the end of a daemon. It ends one that does not answer in time, that falls silent, or that lets the deadline of a
// landing pass; and it does with it what a host change takes.
func attend(ctx context.Context, c child, fresh bool, p parts) outcome {
	l := &life{child: c, parts: p, fresh: fresh}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	l.patience = time.NewTimer(l.readyMax())
	defer l.patience.Stop()
	words, asked := c.words, ctx.Done()
	for {
		select {
		case <-asked:
			asked, l.asked = nil, true
			l.stop()
			l.patience.Reset(endMax)

		case word, ok := <-words:
			if !ok {
				words = nil // the end of its process is told apart
			} else {
				l.hear(word)
			}
			if l.silent = false; l.ready && !l.asked && !l.planned {
				l.patience.Reset(l.silentMax())
			}

		case <-l.patience.C:
			l.runOut()

		case <-look.C:
			l.look()

		case <-p.died:
			p.family.reap(c)

		case l.exit = <-c.ended:
			if l.ready {
				l.up = time.Since(l.since)
			}
			if l.killed != "" {
				l.exit = exit{status: -1, why: l.killed + ", so the keeper ended it"}
			}
			if limit := l.limit(); limit != "" {
				l.exit.why += "; " + limit
			}
			return l.outcome
		}
	}
}

// onTrial reports whether the trial hangs on this daemon.
func (l *life) onTrial() bool { return l.fresh && l.host.r.Step.onTrial() }

func (l *life) readyMax() time.Duration {
	if l.onTrial() {
		return probeMax + l.host.r.Slack
	}
	return readyMax
}

func (l *life) silentMax() time.Duration {
	if l.onTrial() {
		return quietMax - hearMax
	}
	return silentMax
}

// limit says which limit a version on trial has reached; "" = none.
func (l *life) limit() string {
	if !l.onTrial() {
		return ""
	}
	return l.family.reached()
}

// end ends the daemon at once. A trial that hangs on it goes back.
func (l *life) end(because string) {
	if l.killed != "" {
		return
	}
	l.killed = because
	if l.onTrial() && !l.asked {
		l.happen(failed, because)
	}
	l.kill()
}

// happen tells the host change what has come to pass, and does with the daemon what that leads to.
func (l *life) happen(e event, why string) {
	does, err := l.host.happen(e, why, nil)
	if err != nil && l.onTrial() {
		does, _ = l.host.happen(failed, err.Error(), nil)
	}
	l.do(does)
}

// do does with the daemon what a host change wants.
func (l *life) do(does deed) {
	switch does {
	case leave:
		l.planned = true
		l.patience.Reset(endMax)
	case restart:
		l.planned = true
		l.stop()
		l.patience.Reset(endMax)
	case goBack:
		l.planned = true
		l.kill()
	case finish:
		l.fresh = false // what it is asked next is another change's
		l.family.adopt(false)
		l.family.lift()
	}
}

// hear does what a daemon says.
func (l *life) hear(word said) {
	switch word.word {
	case wordStop:
		if err := l.host.look(); err != nil || l.host.r.Step != "" {
			return // a host change comes to its end, whoever asks the daemon to stop
		}
		l.asked = true
		l.patience.Reset(endMax)
	case wordReady:
		if l.ready || l.planned {
			return
		}
		l.ready, l.since = true, time.Now()
		if l.host.look() == nil { // without a host change nothing happens
			l.happen(answered, "")
		}
	case wordHandOver, wordAsked, wordConfirm, wordRollBack, wordFinalized:
		var a ask
		if err := json.Unmarshal(word.body, &a); err != nil {
			l.answer(word.number, reply{Refused: err.Error()})
			return
		}
		if l.planned && word.word != wordHandOver {
			l.answer(word.number, reply{Refused: "this daemon has to end"})
			return
		}
		does, r := l.host.answer(word.word, a, l.fresh)
		l.answer(word.number, r)
		if does == goBack { // who asked for it is told so before this daemon ends
			l.planned = true
			l.stop()
			l.patience.Reset(partMax)
			return
		}
		l.do(does)
	}
}

// runOut says what it means that the daemon took too long.
func (l *life) runOut() {
	switch {
	case l.asked || l.planned:
		l.end(fmt.Sprintf("it was asked to end, and had not %s later", endMax))
	case !l.ready:
		l.end(fmt.Sprintf("it did not answer within %s", l.readyMax()))
	case !l.silent: // this process may have stood still itself, and what was said waits in the pipe
		l.silent = true
		l.patience.Reset(hearMax)
	case l.onTrial():
		l.end(fmt.Sprintf("it was silent for %s", quietMax))
	default:
		l.end(fmt.Sprintf("it was silent for %s", silentMax))
	}
}

// look looks at the deadlines.
func (l *life) look() {
	if err := l.host.look(); err == nil && !l.planned && !l.asked {
		why := l.host.trips()
		if why == "" {
			why = l.limit()
		}
		switch {
		case why != "" && l.host.r.Step == Armed: // the record is the daemon's to write: so the daemon ends first
			l.planned = true
			l.end(why)
		case why != "":
			l.happen(failed, why)
		case l.ready && l.host.r.Step == Back: // its end could not be written when the daemon answered
			l.happen(answered, "")
		}
	}
	because := l.late.overdue()
	switch {
	case because == "" || !l.ready || l.asked || l.planned:
		l.lateFrom = time.Time{}
	case l.lateFrom.IsZero():
		l.lateFrom = time.Now()
	case time.Since(l.lateFrom) >= hungAfter:
		l.late.ended()
		l.end(because)
	}
}

// landings looks at the records of what is landing or on trial. The daemon writes and removes them; a keeper only reads.
type landings struct {
	dir  string
	now  func() (deadman.Moment, error)
	done map[string]time.Time // records for which a daemon was ended already, by when they were written
	last string               // what overdue has named
	at   time.Time            // when that was written
}

// overdue names a record whose deadline has passed. A daemon that takes it up arms it again or disarms it.
func (l *landings) overdue() string {
	paths, _ := filepath.Glob(filepath.Join(deadman.Literal(l.dir), "[^.]*.json"))
	if len(paths) == 0 {
		return ""
	}
	now, _ := l.now() // without a clock nothing says that there is time left
	for _, path := range paths {
		a, err := deadman.Read(path)
		if err != nil {
			continue // disarmed meanwhile, or none that can be read
		}
		if a.Due.Left(now) > 0 || l.done[path].Equal(a.At) {
			continue
		}
		l.last, l.at = path, a.At
		return fmt.Sprintf("it let the deadline of %s pass", a.Landing)
	}
	return ""
}

func (l *landings) ended() {
	if l.done == nil {
		l.done = map[string]time.Time{}
	}
	l.done[l.last] = l.at
}

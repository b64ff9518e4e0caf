package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
)

// The whole machine once more, for the eye: what a keeper does in each step, by event.
func TestWhatEachEventOfAHostChangeLeadsTo(t *testing.T) {
	const nothing = "-"
	events := []event{begun, exited, exhausted, answered, handedOver, delivered, confirmed, finalized, failed}
	deeds := map[deed]string{wait: "", runOld: "+old", runNew: "+new", leave: "+leave", restart: "+again", goBack: "+revert", finish: "+finish"}
	for step, want := range map[Step]string{
		Armed:     "armed+old | armed+old | back+revert | armed | handed+leave | - | - | - | back+revert",
		Handed:    "handed+new | back+revert | - | ready 1+again | handed+leave | - | - | - | back+revert",
		ReadyOnce: "ready 1+new | back+revert | - | ready 2 | - | - | - | - | back+revert",
		Ready:     "ready 2+new | back+revert | - | ready 2 | - | asked | confirmed | - | back+revert",
		Asked:     "asked+new | back+revert | - | asked | - | asked | confirmed | - | back+revert",
		Confirmed: "confirmed+new | confirmed+new | - | confirmed | - | - | confirmed | +finish | -",
		Back:      "back+revert | back+revert | - | +finish | - | - | - | - | back",
	} {
		var got []string
		for _, e := range events {
			says := nothing
			if m, known := step.next(e); known {
				says = string(m.to) + deeds[m.does]
			}
			got = append(got, says)
		}
		if all := strings.Join(got, " | "); all != want {
			t.Errorf("%s:\n%s\nwant\n%s", step, all, want)
		}
	}
	if len(moves) != 7 {
		t.Errorf("%d steps", len(moves))
	}
}

// say is a word of a daemon that may have been ended.
func (d *daemon) say(word said) {
	select {
	case d.words <- word:
	case <-d.over:
	}
}

func (d *daemon) ready() { d.say(said{word: wordReady}) }

// ask asks the keeper; "" = it was done.
func (d *daemon) ask(verb, code string) string {
	raw, _ := json.Marshal(ask{Change: "chg-1", Code: code, Why: "she wants it so", By: json.RawMessage(`"somebody"`)})
	d.say(said{word: verb, number: 1, body: raw})
	select {
	case r := <-d.answers:
		if r.Code {
			return fmt.Sprintf("wrong, %d left", r.Left)
		}
		return r.Refused
	case <-d.over:
		return "it ended"
	}
}

// beats beats each ten seconds for so long.
func (d *daemon) beats(during time.Duration) {
	for end := time.Now().Add(during); time.Now().Before(end); {
		select {
		case <-time.After(min(10*time.Second, time.Until(end))):
			d.say(said{word: wordBeat})
		case <-d.over:
			return
		}
	}
}

func (d *daemon) exits(status int) {
	d.end(exit{status, fmt.Sprint("it ended with exit status ", status)})
}

// The lives of daemons.
func handsOver(d *daemon) { d.ready(); d.ask(wordHandOver, ""); d.exits(0) }
func answers(d *daemon)   { d.ready(); d.beats(time.Hour) }
func quits(d *daemon)     { d.ready(); d.say(said{word: wordStop}); d.exits(0) }

// asks delivers message 1 after a while, and goes on.
func asks(after time.Duration, then ...func(*daemon)) func(*daemon) {
	return func(d *daemon) {
		d.ready()
		d.beats(after)
		d.ask(wordAsked, "")
		for _, do := range then {
			do(d)
		}
		d.beats(time.Hour)
	}
}

func confirms(d *daemon)  { d.ask(wordConfirm, plain) }
func finalizes(d *daemon) { d.ask(wordFinalized, "") }

// stage is a house with a host change.
type stage struct {
	*house
	r          Record
	short      string // what is said of the disk
	shortAfter time.Duration
	reverts    []error // what each try of the way back says; nil after these
	ops        disk.Ops
	killed     []Step        // the steps at which daemons were
	until      time.Duration // the keeper is asked to end after that; 0 = it is not
	slept      atomic.Int64  // how long the machine has slept: no timer of the bubble has seen it
}

func newStage(t *testing.T, step Step, lives ...func(*daemon)) *stage {
	t.Helper()
	s := &stage{house: &house{home: furnish(t, true), lives: lives}}
	s.r = Record{Change: "chg-1", Old: furnished.old, New: furnished.new, Code: hash, Step: step, FreeMin: 1}
	now, err := s.now()
	s.r.Armed, s.r.Handed, s.r.Due = now, now, deadman.Deadline{Set: now, In: 2 * time.Minute}
	if step != Armed && step != Back { // on trial
		err = errors.Join(err, release.In(s.home, disk.Ops{}).Use(s.r.New))
	}
	err = errors.Join(err, reserve(disk.Ops{}, s.home, 1))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// now is the bubble's time, of one boot, with what the machine has slept.
func (s *stage) now() (deadman.Moment, error) {
	now := time.Now().Add(time.Duration(s.slept.Load()))
	return deadman.Moment{Wall: now.UTC().Round(0), Boot: "b", Up: time.Duration(now.UnixNano())}, nil
}

// play has a keeper run until its last daemon has quit or none is left, and returns what happened when.
func (s *stage) play(t *testing.T) string {
	t.Helper()
	if s.r.Step != "" {
		if err := s.r.write(disk.Ops{}, s.home); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if s.until > 0 {
		defer time.AfterFunc(s.until, cancel).Stop()
	}
	p := s.parts()
	inner := p.start
	p.start = func(last Last, digest string) (child, error) {
		if len(s.lives) == 0 {
			cancel()
			return child{}, errors.New("the play is over")
		}
		c, err := inner(last, digest)
		kill := c.kill
		c.kill = func() {
			r, _, _ := RecordOf(s.home)
			s.killed = append(s.killed, r.Step)
			kill()
		}
		s.got[len(s.got)-1] += " " + map[string]string{s.r.Old: "old", s.r.New: "new", "": "current"}[digest]
		return c, err
	}
	p.host = &host{home: s.home, ops: s.ops, now: s.now, tell: p.tell,
		room: func(int64) string {
			if time.Since(s.began) < s.shortAfter {
				return ""
			}
			return s.short
		},
		revert: func(context.Context, Record) error {
			if _, err := os.Stat(Folder(s.home) + "/" + reserveName); err == nil {
				return errors.New("the reserve is still taken")
			}
			s.say("revert")
			if len(s.reverts) == 0 {
				return nil
			}
			err := s.reverts[0]
			s.reverts = s.reverts[1:]
			return err
		},
	}
	if status, err := keep(ctx, p); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	current, err := release.In(s.home, disk.Ops{}).Current()
	if err != nil {
		t.Error(err)
	}
	end := "runs by " + map[string]string{s.r.Old: "old", s.r.New: "new"}[current]
	if r, is, err := RecordOf(s.home); is || err != nil {
		end += fmt.Sprintf(", at step %s, %v", r.says(), err)
	} else if left := lies(t, s.home); left != "" {
		end += ", with " + left
	}
	s.got = append(s.got, end)
	for i, line := range s.got {
		s.got[i] = strings.ReplaceAll(strings.ReplaceAll(line, "host change chg-1", "it"), "the daemon is gone: ", "gone: ")
	}
	return strings.Join(s.got, "\n")
}

func lines(all ...string) string { return strings.Join(all, "\n") }

// What every trial begins with, and how one that goes back ends. The times are in seconds.
var trialBegins = []string{"0 start old", "0 it: handed", "0 start new", "0 it: ready 1", "0 start new", "0 it: ready 2"}

func wentBack(at int, why string) []string {
	says := func(s string) string { return fmt.Sprint(at, " ", s) }
	return []string{says("it: back: " + why), says("revert"), says("start old"), says("it is over"), "runs by old"}
}

func TestATrialOfTheHost(t *testing.T) {
	const code = "AAAA-AAAA-AAAA"
	for _, row := range []struct {
		name  string
		lives []func(*daemon)
		set   func(*stage)
		want  []string
	}{
		{"it is confirmed", []func(*daemon){handsOver, answers, asks(time.Minute, confirms, finalizes, quits)}, nil,
			slices.Concat(trialBegins, []string{"60 it: asked", "60 it: confirmed", "60 it is over", "runs by new"})},
		{"it is confirmed before it could ask", []func(*daemon){handsOver, answers, func(d *daemon) { d.ready(); confirms(d); finalizes(d); quits(d) }}, nil,
			slices.Concat(trialBegins, []string{"0 it: confirmed", "0 it is over", "runs by new"})},
		{"it never answers", []func(*daemon){handsOver, func(*daemon) {}, quits}, nil,
			slices.Concat(trialBegins[:3], wentBack(60, "it did not answer within 1m0s"))},
		{"a migration has more time", []func(*daemon){handsOver, func(d *daemon) { time.Sleep(80 * time.Second); answers(d) }, func(*daemon) {}, quits}, func(s *stage) { s.r.Slack = 30 * time.Second },
			slices.Concat(trialBegins[:3], []string{"80 it: ready 1", "80 start new"}, wentBack(150, `it had not come further than step "ready 1" in time`))},
		{"it exits with 0", []func(*daemon){handsOver, func(d *daemon) { d.exits(0) }, quits}, nil,
			slices.Concat(trialBegins[:3], []string{"0 it: back: it ended with exit status 0", "0 gone: it ended with exit status 0; it is started again in 0s"}, wentBack(0, "")[1:])},
		{"it says that it was asked to stop", []func(*daemon){handsOver, func(d *daemon) { d.say(said{word: wordStop}); d.exits(0) }, quits}, nil,
			slices.Concat(trialBegins[:3], []string{"0 it: back: it ended with exit status 0", "0 gone: it ended with exit status 0; it is started again in 0s"}, wentBack(0, "")[1:])},
		{"the old daemon answers after it has handed over, and hands over again", []func(*daemon){func(d *daemon) {
			for n, got := range []string{d.ask(wordHandOver, ""), d.ask(wordAsked, ""), d.ask(wordHandOver, "")} {
				if want := []string{"", "this daemon has to end", ""}[n]; got != want {
					panic(got)
				}
			}
			d.ready()
			d.exits(0)
		}, answers, asks(0, confirms, finalizes, quits)}, nil,
			slices.Concat(trialBegins, []string{"0 it: asked", "0 it: confirmed", "0 it is over", "runs by new"})},
		{"it does not end when the keeper starts it again", []func(*daemon){handsOver, func(d *daemon) { d.deaf = true; d.ready() }, quits}, nil,
			slices.Concat(trialBegins[:4], wentBack(45, "it was asked to end, and had not 45s later"))},
		{"it answers only once", []func(*daemon){handsOver, answers, func(d *daemon) { d.exits(1) }, quits}, nil,
			slices.Concat(trialBegins[:5], []string{"0 it: back: it ended with exit status 1", "0 gone: it ended with exit status 1; it is started again in 0s"}, wentBack(0, "")[1:])},
		{"it falls silent", []func(*daemon){handsOver, answers, func(d *daemon) { d.ready(); d.beats(20 * time.Second) }, quits}, nil,
			slices.Concat(trialBegins, wentBack(50, "it was silent for 30s"))},
		{"nobody is asked", []func(*daemon){handsOver, answers, answers, quits}, nil,
			slices.Concat(trialBegins, wentBack(120, `it had not come further than step "ready 2" in time`))},
		{"nobody confirms; asking twice gives no time", []func(*daemon){handsOver, answers, asks(100*time.Second, func(d *daemon) { d.beats(time.Minute); d.ask(wordAsked, "") }), quits}, nil,
			slices.Concat(trialBegins, []string{"100 it: asked"}, wentBack(220, "nobody confirmed it in time"))},
		{"no deadline passes ten minutes", []func(*daemon){handsOver, answers, asks(9*time.Minute, answers), quits}, func(s *stage) { s.r.Slack = time.Hour },
			slices.Concat(trialBegins, []string{"540 it: asked"}, wentBack(600, "nobody confirmed it in time"))},
		{"five wrong codes", []func(*daemon){handsOver, answers, asks(0, func(d *daemon) {
			for n, word := range []string{code, "yes", code, code, code, code} {
				if got, want := d.ask(wordConfirm, word), fmt.Sprintf("wrong, %d left", []int{4, 4, 3, 2, 1, 0}[n]); got != want {
					panic(got)
				}
			}
		}), quits}, nil, slices.Concat(trialBegins, []string{"0 it: asked"}, wentBack(0, "5 wrong codes"))},
		{"four wrong codes and the right one", []func(*daemon){handsOver, answers, asks(0, func(d *daemon) {
			for n := range 4 {
				if got, want := d.ask(wordConfirm, code), fmt.Sprintf("wrong, %d left", 4-n); got != want {
					panic(got)
				}
			}
		}, confirms, finalizes, quits), quits}, nil, slices.Concat(trialBegins, []string{"0 it: asked", "0 it: confirmed", "0 it is over", "runs by new"})},
		{"somebody rolls it back", []func(*daemon){handsOver, answers, asks(0, func(d *daemon) { d.ask(wordRollBack, "") }), quits}, nil,
			slices.Concat(trialBegins, []string{"0 it: asked"}, wentBack(0, "she wants it so"))},
		{"the disk fills up", []func(*daemon){handsOver, answers, asks(0), quits}, func(s *stage) {
			s.short, s.shortAfter = "1 MiB is free", time.Minute
		}, slices.Concat(trialBegins, []string{"0 it: asked"}, wentBack(60, "1 MiB is free"))},
		{"it ends as the disk is full, before anybody has looked", []func(*daemon){handsOver, answers, asks(0, func(d *daemon) {
			d.beats(20 * time.Second)
			time.Sleep(300 * time.Millisecond)
			d.exits(1)
		}), quits}, func(s *stage) {
			s.short, s.shortAfter = "1 MiB is free", 20200*time.Millisecond
		}, slices.Concat(trialBegins, []string{"0 it: asked", "20 it: back: 1 MiB is free, and it ended with exit status 1", "20 gone: it ended with exit status 1; it is started again in 0s"}, wentBack(20, "")[1:])},
		{"the way back fails, again and again", []func(*daemon){handsOver, func(d *daemon) { d.exits(1) }, quits}, func(s *stage) {
			s.reverts = []error{errors.New("no"), errors.New("no"), errors.New("no")}
		}, slices.Concat(trialBegins[:3], []string{"0 it: back: it ended with exit status 1", "0 gone: it ended with exit status 1; it is started again in 0s",
			"0 revert", "0 take it back: no; it is tried again in 1s", "1 revert", "1 take it back: no; it is tried again in 2s", "3 revert", "3 take it back: no; it is tried again in 4s",
			"7 revert", "7 start old", "7 it is over", "runs by old"})},
		{"the old version dies on its way back", []func(*daemon){handsOver, func(d *daemon) { d.exits(1) }, func(d *daemon) { d.exits(1) }, quits}, nil,
			slices.Concat(trialBegins[:3], []string{"0 it: back: it ended with exit status 1", "0 gone: it ended with exit status 1; it is started again in 0s",
				"0 revert", "0 start old", "0 gone: it ended with exit status 1; it is started again in 1s", "1 revert", "1 start old", "1 it is over", "runs by old"})},
		{"the old daemon does not end once it has handed over", []func(*daemon){func(d *daemon) { d.ready(); d.ask(wordHandOver, "") }, answers, asks(0, confirms, finalizes, quits)}, nil,
			[]string{"0 start old", "0 it: handed", "45 start new", "45 it: ready 1", "45 start new", "45 it: ready 2", "45 it: asked", "45 it: confirmed", "45 it is over", "runs by new"}},
		{"it dies once it is confirmed", []func(*daemon){handsOver, answers, asks(0, confirms, func(d *daemon) { d.exits(1) }), func(d *daemon) { d.ready(); finalizes(d); quits(d) }}, nil,
			slices.Concat(trialBegins, []string{"0 it: asked", "0 it: confirmed", "0 gone: it ended with exit status 1; it is started again in 0s", "0 start new", "0 it is over", "runs by new"})},
		{"the old daemon dies before it hands over", []func(*daemon){func(d *daemon) { d.exits(1) }, func(d *daemon) { d.exits(1) }, handsOver, answers, asks(0, confirms, finalizes, quits)}, nil,
			slices.Concat([]string{"0 start old", "0 gone: it ended with exit status 1; it is started again in 0s", "0 start old", "0 gone: it ended with exit status 1; it is started again in 1s"},
				[]string{"1 start old", "1 it: handed", "1 start new", "1 it: ready 1", "1 start new", "1 it: ready 2", "1 it: asked", "1 it: confirmed", "1 it is over", "runs by new"})},
		{"the old daemon dies four times", []func(*daemon){func(d *daemon) { d.exits(1) }, func(d *daemon) { d.exits(1) }, func(d *daemon) { d.exits(1) }, func(d *daemon) { d.exits(1) }, quits}, nil,
			[]string{"0 start old", "0 gone: it ended with exit status 1; it is started again in 0s", "0 start old", "0 gone: it ended with exit status 1; it is started again in 1s", "1 start old",
				"1 gone: it ended with exit status 1; it is started again in 2s", "3 start old", "3 it: back: it ended with exit status 1", "3 gone: it ended with exit status 1; it is started again in 0s",
				"3 revert", "3 start old", "3 it is over", "runs by old"}},
		{"the old daemon never hands over", []func(*daemon){answers, quits}, nil,
			slices.Concat([]string{"0 start old"}, wentBack(120, `it had not come further than step "armed" in time`))},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, Armed, row.lives...)
				if row.set != nil {
					row.set(s)
				}
				if got, want := s.play(t), lines(row.want...); got != want {
					t.Errorf("%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// What a keeper does that starts in the middle of a host change, by the record's step.
func TestAKeeperThatStartsGoesByTheRecord(t *testing.T) {
	later := func(s *stage) { s.r.Due.In = 90 * time.Second; time.Sleep(time.Minute) } // the keeper was gone for so long
	for _, row := range []struct {
		step  Step
		lives []func(*daemon)
		want  []string
	}{
		{Armed, []func(*daemon){answers, quits}, slices.Concat([]string{"0 start old"}, wentBack(30, `it had not come further than step "armed" in time`))},
		{Handed, []func(*daemon){answers, answers, quits}, slices.Concat([]string{"0 start new", "0 it: ready 1", "0 start new", "0 it: ready 2"}, wentBack(30, `it had not come further than step "ready 2" in time`))},
		{ReadyOnce, []func(*daemon){answers, quits}, slices.Concat([]string{"0 start new", "0 it: ready 2"}, wentBack(30, `it had not come further than step "ready 2" in time`))},
		{Ready, []func(*daemon){answers, quits}, slices.Concat([]string{"0 start new"}, wentBack(30, `it had not come further than step "ready 2" in time`))},
		{Asked, []func(*daemon){answers, quits}, slices.Concat([]string{"0 start new"}, wentBack(30, "nobody confirmed it in time"))},
		{Confirmed, []func(*daemon){func(d *daemon) { d.ready(); d.beats(time.Hour); finalizes(d); quits(d) }}, []string{"0 start new", "3600 it is over", "runs by new"}},
		{Back, []func(*daemon){quits}, []string{"0 revert", "0 start old", "0 it is over", "runs by old"}},
	} {
		t.Run(string(row.step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, row.step, row.lives...)
				later(s)
				if got, want := s.play(t), lines(row.want...); got != want {
					t.Errorf("%s\nwant\n%s", got, want)
				}
			})
		})
		if row.step == Confirmed || row.step == Back {
			continue
		}
		t.Run(string(row.step)+", too late", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, row.step, quits)
				time.Sleep(2 * time.Minute)
				if got := s.play(t); !strings.HasPrefix(got, "0 it: back: ") || !strings.HasSuffix(got, lines("0 revert", "0 start old", "0 it is over", "runs by old")) {
					t.Error(got)
				}
			})
		})
	}
}

// The record is the old daemon's to write until that has ended.
func TestAnOldDaemonEndsBeforeItsRecordIsWrittenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Armed, answers, quits)
		if s.play(t); !slices.Equal(s.killed, []Step{Armed}) {
			t.Errorf("killed at %q", s.killed)
		}
	})
}

// A deadline that passes while a daemon is ended changes nothing: what happens then is said by how it ends, or to the next keeper.
func TestADaemonThatIsAskedToEndHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Handed, func(d *daemon) { d.deaf = true; d.ready() }, quits)
		s.r.Due.In = 20 * time.Second
		if got, want := s.play(t), lines(slices.Concat([]string{"0 start new", "0 it: ready 1"}, wentBack(45, "it was asked to end, and had not 45s later"))...); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Asked, func(d *daemon) { d.deaf = true; answers(d) }, quits)
		s.until = 100 * time.Second
		if got, want := s.play(t), lines("0 start new", `runs by new, at step asked, <nil>`); got != want || time.Since(s.began) != s.until+endMax {
			t.Errorf("after %s:\n%s\nwant\n%s", time.Since(s.began), got, want)
		}
	})
}

// The way back is over once the old version answers, and that is on the disk.
func TestTheWayBackLastsUntilTheOldVersionAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Back, func(d *daemon) { d.beats(9 * time.Second); d.ready(); d.beats(time.Minute); quits(d) })
		fails := 2
		s.ops.Around = func(op string, do func() error) error {
			if op == "keeper:remove" && fails > 0 {
				fails--
				return errors.New("not now")
			}
			return do()
		}
		if got, want := s.play(t), lines("0 revert", "0 start old", "10 it is over", "runs by old"); got != want || fails > 0 {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}

// What a daemon leaves behind is the keeper's within a trial alone.
func TestOfADaemonOnTrialWhatItLeavesIsEnded(t *testing.T) {
	for end, row := range map[string]struct {
		does []func(*daemon)
		want []string
	}{
		"it is kept":   {[]func(*daemon){confirms, finalizes, quits}, []string{"adopt false", "adopt true", "end survivors", "adopt true", "adopt false", "lift"}},
		"it goes back": {[]func(*daemon){func(d *daemon) { d.exits(1) }}, []string{"adopt false", "adopt true", "end survivors", "adopt true", "end survivors", "adopt true", "adopt false", "lift"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, Armed, handsOver, answers, asks(0, row.does...), quits)
			if s.play(t); !slices.Equal(s.did, row.want) {
				t.Errorf("%s: %q\nwant %q", end, s.did, row.want)
			}
		})
	}
}

// Otherwise a keeper waited for ever for a home that somebody removed.
func TestAKeeperEndsOnceItsHomeIsRemovedAndNotAway(t *testing.T) {
	for name, row := range map[string]struct {
		back  bool
		tries int
		want  error
	}{"away for ten seconds": {true, 5, nil}, "removed": {false, 7, errGone}} {
		synctest.Test(t, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			began, tries := time.Now(), 0
			h := &host{home: home, tell: func(string, ...any) {}}
			err := h.insist(t.Context(), func() error {
				tries++
				if row.back && time.Since(began) > 10*time.Second {
					return os.MkdirAll(home, 0o700)
				}
				return errors.New("it is not there")
			})
			if !errors.Is(err, row.want) || tries != row.tries {
				t.Errorf("%s: after %d tries: %v", name, tries, err)
			}
		})
	}
}

// The clock of another boot counts, and one that stands before the moment of setting is not believed.
func TestATrialGoesOnAfterABootWithTheTimeThatIsLeft(t *testing.T) {
	for moved, want := range map[time.Duration]int{-90 * time.Second: 30, -time.Hour: 0, time.Hour: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, Asked, answers, quits)
			if want == 0 {
				s.lives = s.lives[1:]
			}
			s.r.Due.Set.Boot, s.r.Due.Set.Wall = "a", s.r.Due.Set.Wall.Add(moved)
			got := s.play(t)
			if !strings.Contains(got, fmt.Sprintf("%d it: back: nobody confirmed it in time", want)) || !strings.HasSuffix(got, "runs by old") {
				t.Errorf("moved by %s:\n%s", moved, got)
			}
		})
	}
}

func TestAKeeperStartsNothingByARecordThatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Asked, asks(0, confirms, finalizes, quits))
		r := s.r
		s.r.Step = ""
		disktest.Put(t, Folder(s.home)+"/"+recordName, "{", 0o600)
		go func() {
			time.Sleep(5 * time.Second)
			if err := r.write(disk.Ops{}, s.home); err != nil {
				t.Error(err)
			}
		}()
		if got := s.play(t); strings.Count(got, "is tried again") != 3 || !strings.HasSuffix(got, lines("7 start new", "7 it: confirmed", "7 it is over", "runs by new")) {
			t.Error(got)
		}
	})
}

// The old daemon's record is not the keeper's to write over, however often that daemon ends.
func TestNoDaemonIsLostByARecordThatCannotBeRead(t *testing.T) {
	home := furnish(t, true)
	path := filepath.Join(Folder(home), recordName)
	disktest.Put(t, path, "{", 0o600)
	h := &host{home: home, tell: t.Logf, r: Record{Change: "chg-1", Step: Armed}}
	for range startsMax + 2 {
		if h.lost("it ended") {
			t.Error("another version is next")
		}
	}
	if raw, err := os.ReadFile(path); string(raw) != "{" || err != nil {
		t.Errorf("the record is %.100q, %v", raw, err)
	}
}

// telling is a host that notes what it tells.
func telling(home string) (h *host, told *[]string) {
	told = new([]string)
	return &host{home: home, now: deadman.Now, room: func(int64) string { return "" }, tell: func(format string, a ...any) { *told = append(*told, fmt.Sprintf(format, a...)) }}, told
}

func TestWhatAnArmingHasLeftIsTakenAway(t *testing.T) {
	home, _ := armable(t)
	if err := errors.Join(makeFolder(disk.Ops{}, home), reserve(disk.Ops{}, home, 1)); err != nil {
		t.Fatal(err)
	}
	h, told := telling(home)
	h.ops.Around = func(string, func() error) error { return errors.New("not now") }
	if h.clean(); len(*told) != 1 || !strings.Contains((*told)[0], "not now") {
		t.Errorf("told %q", *told)
	}
	h.ops, *told = disk.Ops{}, nil
	if h.clean(); len(*told) > 0 || lies(t, home) != "" {
		t.Errorf("told %q, left over %q", *told, lies(t, home))
	}
}

// Where no service manager does it, another process starts a keeper again that dies: one for each host change, and none for longer.
func TestAHostChangeIsWatchedOnce(t *testing.T) {
	home, r := armable(t)
	h, told := telling(home)
	for _, fails := range []error{nil, errors.New("no more processes")} {
		if err := Arm(disk.Ops{}, home, r, 1); err != nil {
			t.Fatal(err)
		}
		var watchers int
		h.watch = func() error {
			watchers++
			return errors.Join(fails, os.WriteFile(deadman.Path(Folder(home), watchName), nil, 0o600))
		}
		if err := errors.Join(h.look(), h.look()); err != nil || watchers != 1 || !strings.Contains(lies(t, home), watchName) || (len(*told) > 0) != (fails != nil) {
			t.Errorf("%v, %d watchers, told %q; there lies %q", err, watchers, *told, lies(t, home))
		}
		if err := errors.Join(os.Remove(RecordPath(home)), h.look()); err != nil || strings.Contains(lies(t, home), watchName+".json") {
			t.Errorf("it is over, %v, and there lies %q", err, lies(t, home))
		}
	}
}

// A version on trial that is of the keeper's own user can do this. It saves nobody.
func TestATrialThatTakesItsRecordAwayGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Armed, handsOver, answers)
		s.lives = append(s.lives, func(d *daemon) {
			d.ready()
			d.beats(time.Second)
			if err := os.Remove(Folder(s.home) + "/" + recordName); err != nil {
				t.Error(err)
			}
			d.beats(time.Hour)
		}, quits)
		want := lines(slices.Concat(trialBegins, wentBack(120, `it had not come further than step "ready 2" in time`))...)
		if got := s.play(t); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}

// What is kept for the way back is free from the moment on that there is one.
func TestAFullDiskLeadsBack(t *testing.T) {
	for name, always := range map[string]bool{"until the reserve is free": false, "for good": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, Armed, handsOver, answers, quits)
				writes := 0
				s.ops.Around = func(op string, do func() error) error {
					if op == "keeper:write" {
						if writes++; writes == 2 || writes > 2 && always { // step ready 1, and all that follows
							return errors.New("no space")
						} else if _, err := os.Stat(Folder(s.home) + "/" + reserveName); writes > 2 && err == nil {
							return errors.New("no space")
						}
					}
					return do()
				}
				got := s.play(t)
				if !strings.HasSuffix(got, lines("0 revert", "0 start old", "0 it is over", "runs by old")) || strings.Contains(got, "cannot be written") != always {
					t.Error(got)
				}
			})
		})
	}
}

// Who asks for what the step does not allow, or is not who may, hears why, and nothing changes.
func TestTheKeeperRefuses(t *testing.T) {
	of := func(verb string) func(*daemon) string { return func(d *daemon) string { return d.ask(verb, plain) } }
	other := func(d *daemon) string {
		d.say(said{word: wordAsked, number: 1, body: []byte(`{"change":"chg-2"}`)})
		return (<-d.answers).Refused
	}
	nonsense := func(d *daemon) string {
		d.say(said{word: wordAsked, number: 1, body: []byte(`[`)})
		return (<-d.answers).Refused
	}
	for _, row := range []struct {
		name string
		step Step
		ask  func(*daemon) string
		set  func(*stage)
		want string
	}{
		{"no host change", "", of(wordRollBack), nil, "is not under way"},
		{"another change", Ready, other, nil, `"chg-2" is not under way`},
		{"nonsense", Ready, nonsense, nil, "unexpected end of JSON"},
		{"the new version hands over", Ready, of(wordHandOver), nil, "nothing to hand over"},
		{"the code before the trial", Armed, of(wordConfirm), nil, `at step "armed"`},
		{"finalized before it is confirmed", Asked, of(wordFinalized), nil, `at step "asked"`},
		{"rolled back once it is confirmed", Confirmed, of(wordRollBack), nil, `at step "confirmed"`},
		{"asked once it is confirmed", Confirmed, of(wordAsked), nil, `at step "confirmed"`},
		{"no space", Armed, of(wordHandOver), func(s *stage) { s.short = "1 MiB is free" }, "1 MiB is free"},
		{"the new release is gone", Armed, of(wordHandOver), func(s *stage) {
			if err := os.RemoveAll(release.In(s.home, disk.Ops{}).Dir + "/" + s.r.New); err != nil {
				panic(err)
			}
		}, "no such release"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan string, 1)
				s := newStage(t, row.step)
				s.lives = append(s.lives, func(d *daemon) {
					d.ready()
					got <- row.ask(d)
					synctest.Wait()
					if r, _, err := RecordOf(s.home); r.Step != row.step || err != nil {
						t.Errorf("it is at step %q, %v", r.Step, err)
					}
					d.exits(-1)
				})
				if row.set != nil {
					row.set(s)
				}
				s.play(t)
				if why := <-got; !strings.Contains(why, row.want) {
					t.Errorf("%q, want %q", why, row.want)
				}
			})
		})
	}
}

// A machine may sleep while a person is asked. What they say then is the first that is heard.
func TestWhatIsSaidAfterTheDeadlineKeepsNothing(t *testing.T) {
	for verb, steps := range map[string][]Step{wordConfirm: {Ready, Asked}, wordAsked: {Ready}} {
		for _, step := range steps {
			for slept, over := range map[time.Duration]bool{2*time.Minute - time.Nanosecond: false, 2 * time.Minute: true} {
				t.Run(fmt.Sprint(verb, " at ", step, " after ", slept), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						refused := make(chan string, 1)
						s := newStage(t, step)
						s.lives = []func(*daemon){func(d *daemon) {
							d.ready()
							s.slept.Store(int64(slept))
							refused <- d.ask(verb, plain)
							confirms(d)
							finalizes(d)
							quits(d)
						}, quits}
						end := s.play(t)
						if why := <-refused; (why != "") != over {
							t.Errorf("it is refused with %q", why)
						}
						if over != strings.Contains(end, "revert") {
							t.Errorf("%s", end)
						}
					})
				})
			}
		}
	}
}

// A version on trial may damage what lies among the releases. The copy beside the record brings it back.
func TestTheOldReleaseIsBackThoughItsFolderIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Back, quits)
		releases := release.In(s.home, disk.Ops{})
		if err := os.RemoveAll(releases.Dir + "/" + s.r.Old); err != nil {
			t.Fatal(err)
		}
		if got, want := s.play(t), lines("0 revert", "0 start old", "0 it is over", "runs by old"); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		program, err := open(s.r.Old, releases)
		if err != nil {
			t.Fatal(err)
		}
		program.Close()
	})
}

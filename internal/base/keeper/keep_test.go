package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
)

// daemon is one that a test plays. It ends when it is killed, and when it is asked to unless it is deaf.
type daemon struct {
	words   chan said
	ended   chan exit
	deaf    bool
	heard   []string
	answers chan reply
	over    chan struct{} // closed once it has ended
	once    sync.Once
}

// end ends it, once.
func (d *daemon) end(e exit) {
	d.once.Do(func() {
		select {
		case d.ended <- e:
		default: // it has ended by itself
		}
		close(d.over)
	})
}

func (d *daemon) child() child {
	return child{words: d.words, ended: d.ended,
		answer: func(_ int, r reply) { d.answers <- r },
		stop: func() {
			d.heard = append(d.heard, "stop")
			if !d.deaf {
				d.end(exit{0, "it ended with exit status 0"})
			}
		},
		kill: func() {
			d.heard = append(d.heard, "kill")
			d.end(exit{-1, "signal: killed"})
		}}
}

func newDaemon() *daemon {
	return &daemon{words: make(chan said), ended: make(chan exit, 1), answers: make(chan reply, 1), over: make(chan struct{})}
}

// none is the family of a keeper without processes. It notes what is done with it.
type none struct{ did []string }

func (n *none) adopt(yes bool)     { n.did = append(n.did, fmt.Sprint("adopt ", yes)) }
func (n *none) reap(child)         {}
func (n *none) endSurvivors(child) { n.did = append(n.did, "end survivors") }
func (n *none) reached() string    { return "" }
func (n *none) lift()              { n.did = append(n.did, "lift") }

// house plays each daemon that a keeper starts by a line of its own.
type house struct {
	home  string
	began time.Time
	lives []func(*daemon)
	mu    sync.Mutex
	got   []string // what happened when, in seconds since it began
	last  []Last
	over  string // what is overdue, once
	none
}

func (h *house) overdue() string { return h.over }
func (h *house) ended()          { h.over = "" }

func (h *house) say(format string, a ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, fmt.Sprintf("%.0f ", time.Since(h.began).Seconds())+fmt.Sprintf(format, a...))
}

// heard is what has happened by now.
func (h *house) heard() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.got, "\n")
}

func (h *house) parts() parts {
	h.began = time.Now()
	return parts{
		start: func(last Last, _ string) (child, error) {
			h.last = append(h.last, last)
			if len(h.lives) == 0 {
				return child{}, errors.New("no release")
			}
			live := h.lives[0]
			h.lives = h.lives[1:]
			h.say("start")
			d := newDaemon()
			go live(d)
			return d.child(), nil
		},
		late: h, host: &host{home: h.home}, family: &h.none,
		tell: func(format string, a ...any) { h.say(format, a...) },
	}
}

func ready(d *daemon) { d.words <- said{word: wordHello}; d.words <- said{word: wordReady} }

func dies(after time.Duration) func(*daemon) {
	return func(d *daemon) { ready(d); time.Sleep(after); d.ended <- exit{-1, "signal: killed"} }
}

func stops(d *daemon) {
	ready(d)
	d.words <- said{word: wordStop}
	d.ended <- exit{0, "it ended with exit status 0"}
}

// TestAReleaseThatCannotBeReadIsWaitedFor: one that was confirmed runs as soon as it is there again, and who looks at the log knows why
// nothing does until then.
func TestAReleaseThatCannotBeReadIsWaitedFor(t *testing.T) {
	home, r := armable(t)
	if err := Arm(disk.Ops{}, home, r, 1<<10); err != nil {
		t.Fatal(err)
	}
	is, _, err := RecordOf(home)
	if err != nil {
		t.Fatal(err)
	}
	is.Step = Confirmed
	if err := is.write(disk.Ops{}, home); err != nil {
		t.Fatal(err)
	}
	card := filepath.Join(home, ".state", "releases", is.New, "release.json")
	if err := os.Rename(card, card+".away"); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := &house{home: home, lives: []func(*daemon){ready}}
		p := h.parts()
		p.host.now, p.host.tell, p.host.room = deadman.Now, p.tell, func(int64) string { return "" }
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() {
			_, err := keep(ctx, p)
			over <- err
		}()
		time.Sleep(time.Minute)
		if got := h.heard(); !strings.Contains(got, "release.json") || strings.HasSuffix(got, " start") {
			t.Errorf("while it is away: %s", got)
		}
		if err := os.Rename(card+".away", card); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := h.heard(); !strings.HasSuffix(got, " start") {
			t.Errorf("once it is there: %s", got)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

func TestADaemonThatDiesIsStartedAgain(t *testing.T) {
	gone := func(after string) string {
		return "the daemon is gone: signal: killed; it is started again in " + after
	}
	for _, row := range []struct {
		name   string
		lives  []func(*daemon)
		over   string
		want   []string
		status int
		err    string
	}{
		{"asked to stop", []func(*daemon){stops}, "", []string{"0 start"}, 0, ""},
		{"longer and longer pauses, and none after a long life",
			[]func(*daemon){dies(time.Second), dies(0), dies(0), dies(2 * time.Minute), dies(0), stops}, "",
			[]string{"0 start", "1 " + gone("0s"), "1 start", "1 " + gone("1s"), "2 start", "2 " + gone("2s"), "4 start", "124 " + gone("0s"), "124 start", "124 " + gone("1s"), "125 start"}, 0, ""},
		{"no pause after a life of a minute",
			[]func(*daemon){dies(time.Second), dies(time.Minute), stops}, "", []string{"0 start", "1 " + gone("0s"), "1 start", "61 " + gone("0s"), "61 start"}, 0, ""},
		{"the first ends well before it answers, and nobody has asked it to", []func(*daemon){func(d *daemon) { d.ended <- exit{0, "it ended with exit status 0"} }, stops}, "",
			[]string{"0 start", "0 the daemon is gone: it ended with exit status 0; it is started again in 0s", "0 start"}, 0, ""},
		{"hello is no answer", []func(*daemon){func(d *daemon) { d.words <- said{word: wordHello} }, stops}, "",
			[]string{"0 start", "600 the daemon is gone: it did not answer within 10m0s, so the keeper ended it; it is started again in 0s", "600 start"}, 0, ""},
		{"the first never answers, and says why", []func(*daemon){func(d *daemon) { d.ended <- exit{1, "it ended with exit status 1"} }}, "", []string{"0 start"}, 1, ""},
		{"the home is another's", []func(*daemon){func(d *daemon) { d.ended <- exit{ExitTaken, ""} }}, "", []string{"0 start"}, ExitTaken, ""},
		{"one that ends later is no first", []func(*daemon){dies(0), func(d *daemon) { d.ended <- exit{1, "it ended with exit status 1"} }, stops}, "",
			[]string{"0 start", "0 " + gone("0s"), "0 start", "0 the daemon is gone: it ended with exit status 1; it is started again in 1s", "1 start"}, 0, ""},
		{"never ready", []func(*daemon){func(*daemon) {}, stops}, "",
			[]string{"0 start", "600 the daemon is gone: it did not answer within 10m0s, so the keeper ended it; it is started again in 0s", "600 start"}, 0, ""},
		{"beats, and then none", []func(*daemon){func(d *daemon) {
			ready(d)
			for range 60 {
				time.Sleep(10 * time.Second)
				d.words <- said{word: wordBeat}
			}
		}, stops}, "",
			[]string{"0 start", "790 the daemon is gone: it was silent for 3m0s, so the keeper ended it; it is started again in 0s", "790 start"}, 0, ""},
		{"a word that is not known is passed over, and is a sign of life", []func(*daemon){func(d *daemon) {
			ready(d)
			time.Sleep(2 * time.Minute)
			d.words <- said{word: "news"}
			time.Sleep(2 * time.Minute)
			stops(d)
		}}, "", []string{"0 start"}, 0, ""},
		{"the end of the pipe is not its end", []func(*daemon){func(d *daemon) {
			ready(d)
			close(d.words)
			time.Sleep(time.Minute)
			d.ended <- exit{-1, "signal: killed"}
		}, stops}, "", []string{"0 start", "60 " + gone("0s"), "60 start"}, 0, ""},
		{"asked to stop, it hangs", []func(*daemon){func(d *daemon) { ready(d); d.words <- said{word: wordStop} }}, "", []string{"0 start"}, 0, ""},
		{"a deadline that it let pass", []func(*daemon){ready, stops}, "it let the deadline of lnd-1 pass",
			[]string{"0 start", "6 the daemon is gone: it let the deadline of lnd-1 pass, so the keeper ended it; it is started again in 0s", "6 start"}, 0, ""},
		{"nothing can be started", nil, "", nil, 1, "no release"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &house{lives: row.lives, over: row.over}
				status, err := keep(t.Context(), h.parts())
				if status != row.status || !reflect.DeepEqual(h.got, row.want) || (err == nil) != (row.err == "") || err != nil && err.Error() != row.err {
					t.Errorf("status %d, %v\n%s\nwant status %d\n%s", status, err, strings.Join(h.got, "\n"), row.status, strings.Join(row.want, "\n"))
				}
			})
		})
	}
}

func TestWhoIsAskedToEndAsksTheDaemonAndWaits(t *testing.T) {
	for deaf, want := range map[bool]time.Duration{false: 0, true: endMax} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var d *daemon
			p := (&house{}).parts()
			p.start = func(Last, string) (child, error) {
				d = newDaemon()
				d.deaf = deaf
				go ready(d)
				return d.child(), nil
			}
			go func() { time.Sleep(time.Minute); cancel() }()
			began := time.Now()
			status, err := keep(ctx, p)
			if took := time.Since(began) - time.Minute; status != 0 || err != nil || took != want {
				t.Errorf("deaf %t: status %d, %v, after %s", deaf, status, err, took)
			}
			if got := strings.Join(d.heard, " "); deaf != strings.Contains(got, "kill") || !strings.HasPrefix(got, "stop") {
				t.Errorf("deaf %t: it heard %q", deaf, got)
			}
		})
	}
}

// What a daemon is told of those before it is what `status` and `doctor` show.
func TestADaemonIsToldHowTheLastOneEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{lives: []func(*daemon){dies(time.Second), dies(time.Second), stops}}
		if _, err := keep(t.Context(), h.parts()); err != nil {
			t.Fatal(err)
		}
		at := h.began.Add(time.Second).UTC()
		want := []Last{{}, {1, "signal: killed", at}, {2, "signal: killed", at.Add(time.Second)}}
		if !reflect.DeepEqual(h.last, want) {
			t.Errorf("%+v\nwant %+v", h.last, want)
		}
	})
}

func TestOneDeadlineEndsOneDaemon(t *testing.T) {
	now := deadman.Moment{Wall: time.Now().UTC(), Boot: "b", Up: time.Hour}
	at := now
	l := &landings{dir: filepath.Join(t.TempDir(), "dead[man]"), now: func() (deadman.Moment, error) { return at, nil }}
	said := func(want string) {
		t.Helper()
		if got := l.overdue(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	said("")
	arm := func(landing string, in time.Duration) {
		t.Helper()
		real, err := deadman.Now()
		if err != nil {
			t.Fatal(err)
		}
		err = deadman.Arm(disk.Ops{}, l.dir, deadman.Armed{Landing: landing, Argv: []string{"/bin/true"}, Daemon: deadman.Process{PID: 1}, Due: deadman.Deadline{Set: real, In: in}, At: real.Wall})
		if err != nil {
			t.Fatal(err)
		}
		at = real
	}
	arm("lnd-1", time.Minute)
	said("")
	at.Up += time.Minute - time.Second
	said("")
	at.Up += time.Second
	said("it let the deadline of lnd-1 pass")
	said("it let the deadline of lnd-1 pass")
	l.ended()
	said("") // the next daemon takes it up
	arm("lnd-1", time.Minute)
	said("")
	at.Up += time.Hour
	said("it let the deadline of lnd-1 pass")
	l.ended()
	disktest.Put(t, filepath.Join(l.dir, "lnd-2.json"), "{", 0o600)
	said("")
	arm("lnd-3", time.Minute)
	l.now = func() (deadman.Moment, error) { return deadman.Moment{}, errors.New("no clock") }
	said("it let the deadline of lnd-3 pass")
}

func TestOneKeeperHasAHome(t *testing.T) {
	home := t.TempDir()
	if Kept(home) {
		t.Error("a home without a folder has a keeper")
	}
	held, err := hold(home, 0)
	if err != nil || !Kept(home) || !Kept(home) {
		t.Fatalf("%v, kept %t", err, Kept(home))
	}
	disktest.Private(t, filepath.Join(home, ".state"), "keeper")
	if _, err := hold(home, 0); !errors.Is(err, ErrKept) {
		t.Errorf("a second one: %v", err)
	}
	if err := held.Close(); err != nil || Kept(home) {
		t.Errorf("%v, kept %t", err, Kept(home))
	}
	if again, err := hold(home, 0); err != nil {
		t.Error(err)
	} else {
		again.Close()
	}
}

// A keeper that is about to end is waited for.
func TestAKeeperWaitsForOneThatIsAboutToEnd(t *testing.T) {
	home := t.TempDir()
	held, err := hold(home, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { held.Close() })
	next, err := hold(home, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
}

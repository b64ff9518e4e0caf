package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// saying is one thing that a person says to echo, and when.
type saying struct {
	text   string
	answer string
	within bool                   // it is sent within its turn, and so before what the turn says
	when   func(n *terminal) bool // nil = at once
}

// sayings are said in this order: some at once, one while the turn of those runs, one after it.
var sayings = []saying{
	{text: "one", answer: "one"},
	{text: "/say within", answer: "within", within: true},
	{text: "/tool 0.2", answer: "I was busy for 200ms."},
	{text: "four", answer: "four", when: func(n *terminal) bool { return n.tool || len(n.answers()) > 2 }},
	{text: "five", answer: "five", when: func(n *terminal) bool { return len(n.answers()) > 2 }},
}

// terminal is a person's, who talks with a group and sees what they are told.
type terminal struct {
	group    string            // echo, if nothing else is said
	accepted map[string]string // nonce → message
	kill     func()            // the daemon, in the middle of a turn; nil = nobody does

	mu    sync.Mutex
	outs  []api.Sent // as they came, each once
	tool  bool       // one was in flight
	ready bool
	over  bool // nobody tells any more
}

func newTerminal() *terminal { return &terminal{group: "echo", accepted: map[string]string{}} }

// answers are the lines of what the group has said; mu is held.
func (n *terminal) answers() (lines []string) {
	for _, o := range n.outs {
		if o.Lane == "talk" {
			lines = append(lines, strings.FieldsFunc(o.Text, func(r rune) bool { return r == '\n' })...)
		}
	}
	return lines
}

// sees reports whether something holds of what the terminal was told, or can hold no more.
func (n *terminal) sees(what func(*terminal) bool) func() (bool, error) {
	return func() (bool, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.over || what(n), nil
	}
}

// watch follows the chat until the daemon is gone or the returned function is called.
func (n *terminal) watch(t *testing.T, c *client.Client) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	n.over, n.ready, n.tool = false, false, false
	r, w := io.Pipe()
	var both sync.WaitGroup
	both.Go(func() {
		w.CloseWithError(client.Copy(ctx, c, api.ChatWatch, api.WatchChat{Group: n.group, History: 1000}, w))
	})
	both.Go(func() {
		lines := json.NewDecoder(r)
		for {
			var l api.ChatLine
			if err := lines.Decode(&l); err != nil {
				break // the daemon is gone, or was left
			}
			n.hear(l)
		}
		n.mu.Lock()
		n.over = true
		n.mu.Unlock()
	})
	return func() {
		cancel()
		r.Close()
		both.Wait()
	}
}

func (n *terminal) hear(l api.ChatLine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = n.ready || l.Kind == api.ChatReady
	n.tool = n.tool || l.Kind == api.ChatTool && l.Tool != nil
	if l.Kind == api.ChatOut && !slices.ContainsFunc(n.outs, func(o api.Sent) bool { return o.ID == l.Out.ID }) {
		n.outs = append(n.outs, *l.Out)
	}
}

// talk says everything, from the first thing on: what was accepted before is said again by the same name. It returns when all is
// answered, or false when the daemon went away.
func (n *terminal) talk(t *testing.T, c *client.Client) bool {
	t.Helper()
	stop := n.watch(t, c)
	defer stop()
	await(t, "the chat to be shown", n.sees(func(n *terminal) bool { return n.ready }))
	for i, s := range sayings {
		if s.when != nil {
			await(t, "the moment to say "+s.text, n.sees(s.when))
			if n.kill != nil {
				n.kill()
				return false
			}
		}
		nonce := fmt.Sprint("nonce-", i)
		m, err := client.Call(t.Context(), c, api.ChatSay, api.Say{Group: "echo", Text: s.text, Nonce: nonce})
		if err != nil {
			if problem.KindOf(err) != problem.Unavailable {
				t.Errorf("told %q, the daemon said: %v", s.text, err)
			}
			return false
		}
		if was := n.accepted[nonce]; was != "" && was != m.ID {
			t.Errorf("%q was accepted as %s, and again as %s", s.text, was, m.ID)
		}
		n.accepted[nonce] = m.ID
	}
	await(t, "all to be answered", n.sees(func(n *terminal) bool { return len(n.answers()) >= len(sayings) }))
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.answers()) >= len(sayings)
}

// TestADaemonThatDiesLosesNoMessageAndAnswersNoneTwice is law 4 in conversations (CH-030, CH-033, CH-034): whatever a daemon dies at
// between the receipt of a message and the answer at the terminal, the next one answers each that was accepted, once and in order.
func TestADaemonThatDiesLosesNoMessageAndAnswersNoneTwice(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newSilence(t)
	w.talkEverywhere(t, talkLoop{start: "silent", from: w.startup(t, "silent"), terminal: newTerminal, triesMax: 1, oneIn: 31})
}

// TestADaemonThatDiesWhileItTakesOverAConversationLosesNothingEither kills the one that comes after the dead, too.
func TestADaemonThatDiesWhileItTakesOverAConversationLosesNothingEither(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newSilence(t)
	from := w.startup(t, "silent") - 2 // what was in process waits again while it begins to listen
	first := newTerminal()
	w.restore(t, "silent")
	d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
	first.kill = func() { _ = d.Process.Kill() }
	c := d.client(t, w.place)
	if c == nil || first.talk(t, c) || len(first.accepted) != 3 {
		t.Fatalf("the daemon took %v\n%s", first.accepted, w.said())
	}
	d.end(t, w.place)
	nobody(t)
	w.save(t, "broken")
	w.talkEverywhere(t, talkLoop{start: "broken", from: from, triesMax: 2, oneIn: 91, terminal: func() *terminal {
		return &terminal{group: "echo", accepted: maps.Clone(first.accepted), outs: slices.Clone(first.outs)}
	}})
}

// newSilence is a home in which nobody has said anything yet, kept as "silent".
func newSilence(t *testing.T) *world {
	t.Helper()
	w := &world{place: newPlace(t)}
	if err := os.Mkdir(w.repo, 0o700); err != nil {
		t.Fatal(err)
	}
	c := w.start(t) // which makes the home
	w.stop(t, c)
	w.save(t, "silent")
	return w
}

// talkLoop kills a daemon before and after each operation of a conversation, from operation number from on.
type talkLoop struct {
	start    string // saved state
	from     int
	terminal func() *terminal // of whom the daemon talks with
	triesMax int              // that the deaths may cost a message
	oneIn    int              // so many points the ordinary run takes one. It is odd, so that both sides have their turn
}

func (w *world) talkEverywhere(t *testing.T, l talkLoop) {
	t.Helper()
	whole, killed := w.dieTalking(t, l.start, "1000000:before", l.terminal())
	if killed || len(whole) <= l.from {
		t.Fatalf("a whole conversation has the operations %q\n%s", whole, w.said())
	}
	for _, must := range []string{"db:add-intake", "db:claim-chat", "db:move-message", "db:put-session", "sandbox:start", "transcript:append"} {
		if disktest.Index(whole, must) < 0 {
			t.Errorf("a conversation has no operation %s: %q", must, whole)
		}
	}
	var points []point
	for _, n := range disktest.Points(t, whole[l.from:]) {
		points = append(points, point{l.from + n, "before"}, point{l.from + n, "after"})
	}
	if len(points) < pointsMin {
		t.Fatalf("only %d points: a whole conversation has the operations %q", len(points), whole)
	}
	points = disktest.Sample(t, points, l.oneIn)

	reached, deaths, failures := map[string]int{}, 0, 0
	var waits []waited
	for _, p := range points {
		ok := t.Run(fmt.Sprintf("%s_%d", p.when, p.at), func(t *testing.T) {
			var n *terminal
			names, killed := p.die(func(where string) ([]string, bool) {
				n = l.terminal()
				return w.dieTalking(t, l.start, where, n)
			})
			if !killed {
				return
			}
			deaths++
			reached[names[p.at]]++
			t.Logf("killed %s %s, with %d accepted and %q answered", p.when, names[p.at], len(n.accepted), n.answers())
			waits = append(waits, w.goesOn(t, n, l.triesMax)...)
			w.leftNothing(t)
			if t.Failed() {
				t.Logf("operations were %q\n%s", names, w.said())
			}
		})
		if !ok {
			failures++
		}
		if failures == failuresMax {
			return
		}
	}
	t.Logf("%d operations a whole run, %d deaths at %d names: %q", len(whole), deaths, len(reached), slices.Sorted(maps.Keys(reached)))
	if 2*deaths < len(points) {
		t.Errorf("it died at %d of %d points only", deaths, len(points))
	}
	inTime(t, waits)
}

// wakeMax is how long after the start of a daemon what was accepted before is answered (CH-034).
const wakeMax = 5 * time.Second

// waited is how long a message waited for the next daemon to answer it.
type waited struct {
	took   time.Duration // from that daemon's start
	within time.Duration // it is in time: wakeMax, and more where a daemon alone takes long to begin
}

// inTime holds CH-034 over all deaths, at the pace of the machine; one that is busy may be late now and then. What a daemon itself decides about
// time is held in dispatch, where no machine is slow.
func inTime(t *testing.T, waits []waited) {
	t.Helper()
	late := 0
	for _, w := range waits {
		if t.Logf("a message waited %s for the next daemon to answer it, of %s", w.took, w.within); w.took > w.within {
			late++
		}
	}
	if 2*late > len(waits) {
		t.Errorf("%d of %d messages waited too long for a daemon", late, len(waits))
	}
}

// dieTalking runs one daemon to its death in a conversation, or to its end if there is no such operation.
func (w *world) dieTalking(t *testing.T, start, where string, n *terminal) (names []string, killed bool) {
	t.Helper()
	w.restore(t, start)
	log := filepath.Join(w.dir, "names")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := w.doom(t, where, log)
	if c := d.client(t, w.place); c != nil {
		if n.talk(t, c) {
			_ = client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}) // dead already is as good
		}
	}
	d.end(t, w.place)
	w.noKeeper(t, d)
	return operations(t, log), d.killed()
}

// answered holds that each saying has its answer, once and in order.
func (n *terminal) answered(t *testing.T) {
	t.Helper()
	var within, after, wantWithin, wantAfter []string
	for _, s := range sayings {
		if s.within {
			wantWithin = append(wantWithin, s.answer)
		} else {
			wantAfter = append(wantAfter, s.answer)
		}
	}
	for _, line := range n.answers() {
		if slices.Contains(wantWithin, line) {
			within = append(within, line)
		} else {
			after = append(after, line)
		}
	}
	if !slices.Equal(within, wantWithin) || !slices.Equal(after, wantAfter) {
		t.Errorf("the terminal was told %q within turns and %q after them, not %q and %q", within, after, wantWithin, wantAfter)
	}
}

// goesOn starts a daemon after one that died in a conversation, and wants it carried to its end: nothing lost, nothing twice, in order.
// It returns how long what was accepted and not answered waited for that daemon to answer.
func (w *world) goesOn(t *testing.T, n *terminal, triesMax int) (waits []waited) {
	t.Helper()
	before, seen := maps.Clone(n.accepted), slices.Clone(n.outs)
	began := time.Now()
	c := w.start(t)
	within := wakeMax + 10*time.Since(began)
	shown, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	n.outs = nil // it is told all again
	if !n.talk(t, c) {
		t.Fatalf("the daemon after it went away, too: %s", w.said())
	}

	n.answered(t)
	for i, o := range seen {
		if o != n.outs[min(i, len(n.outs)-1)] {
			t.Errorf("what was told as %d was %+v, and is %+v", i, o, n.outs)
		}
	}
	all, err := client.Call(t.Context(), c, api.MessageList, api.Messages{Group: "echo"})
	if err != nil || len(all) != len(sayings) {
		t.Errorf("%d messages were kept, not %d: %v", len(all), len(sayings), err)
	}
	for i, m := range all {
		if m.Status != "completed" || m.Tries > triesMax || m.ID != n.accepted[fmt.Sprint("nonce-", i)] {
			t.Errorf("message %d is %+v", i, m)
			continue
		}
		if before[fmt.Sprint("nonce-", i)] == "" || !m.Ended.After(shown.Started) {
			continue
		}
		if m.Tries > 1 {
			continue // what has ended two daemons may end a third: it waits longer
		}
		waits = append(waits, waited{m.Ended.Sub(shown.Started), within})
	}
	entries, err := client.Call(t.Context(), c, api.AuditList, api.Entries{Limit: 10_000})
	if err := errors.Join(err, audittest.Verify(entries)); err != nil {
		t.Error(err)
	}
	w.stop(t, c)
	return waits
}

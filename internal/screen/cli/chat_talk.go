package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const (
	chatHistory = 20                     // messages of before that are shown
	chatTick    = 200 * time.Millisecond // what moves by itself is drawn so often
	leaveTime   = 2 * time.Second        // for looking whether a card waits for whoever leaves
	lookForTime = 2 * time.Second        // how often a stopped daemon is looked for; none is started by that
	pasteOn     = "\x1b[?2004h"          // the terminal marks what is pasted
	pasteOff    = "\x1b[?2004l"
)

// talkWith talks with a group at a terminal until the person leaves.
func talkWith(ctx context.Context, a *app, c *client.Client, group string) error {
	in, _ := terminal(a.In)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)

	keys := make(chan byte, 256)
	restore, err := eachKey(in, func(k byte) {
		select {
		case keys <- k:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return fmt.Errorf("read the terminal: %w", err)
	}
	defer restore()
	defer cancel() // before restore, which waits for the reader of keys
	fmt.Fprint(a.Out, pasteOn)
	defer fmt.Fprint(a.Out, pasteOff)

	t := &talk{app: a, client: c, group: group, foot: foot{w: a.Out}, seen: map[string]bool{}, cards: map[string]bool{},
		open: map[string]api.Message{}, woken: make(chan struct{}, 1)}
	err = t.loop(ctx, keys, signals)
	t.foot.clear()
	if err == nil {
		t.leave(ctx)
	}
	return err
}

// talk is a chat on a terminal.
type talk struct {
	*app
	client *client.Client
	group  string
	foot   foot
	editor editor
	woken  chan struct{}                // holds one token when a daemon runs again
	unsaid struct{ text, nonce string } // of a message that could not be said

	ready   bool // what was there before is on the screen
	history []api.ChatLine
	seen    map[string]bool        // messages that are on the screen, of both directions
	cards   map[string]bool        // changes that a card here is about, answered or not
	open    map[string]api.Message // that have not come to their end
	last    time.Time              // of what was shown

	words words
	turn  int
	began time.Time // the turn
	over  bool      // the turn has been completed: what is sent of it now is all that it said
	tool  *api.InFlight
}

// chatNews is a line of the chat, or why there are none now.
type chatNews struct {
	line api.ChatLine
	err  error
}

// errMoves says that the host starts again, because it changes itself.
var errMoves = problem.Case(client.ErrCut, "", "the host starts again")

// loop returns nil when the person leaves.
func (t *talk) loop(ctx context.Context, keys <-chan byte, signals <-chan os.Signal) error {
	lines := make(chan chatNews, 256)
	go t.watch(ctx, lines) // ends with ctx
	tick := time.NewTicker(chatTick)
	defer tick.Stop()
	for {
		select {
		case <-signals:
			return nil
		case h := <-lines:
			if h.err != nil && !errors.Is(h.err, client.ErrStopped) && !errors.Is(h.err, client.ErrCut) {
				return h.err
			}
			t.hear(h)
			if len(lines) > 0 {
				continue // the screen is drawn once for what came together
			}
		case k := <-keys:
			if t.press(ctx, k) {
				return nil
			}
			if len(keys) > 0 {
				continue
			}
		case <-tick.C:
		}
		t.draw(time.Now())
	}
}

// watch hands on the lines of the chat. A daemon that died is started again; one that was stopped is not, until something is said.
func (t *talk) watch(ctx context.Context, lines chan<- chatNews) {
	put := func(h chatNews) {
		select {
		case lines <- h:
		case <-ctx.Done():
		}
	}
	comebacks, stopped := 0, false
	for ctx.Err() == nil {
		err := t.client.WatchChat(ctx, api.WatchChat{Group: t.group, History: lookBack},
			func(l api.ChatLine) error { // as far each time: what is older than the screen stays off it
				stopped = false
				if l.Kind == api.ChatIn || l.Kind == api.ChatOut {
					comebacks = 0
				}
				put(chatNews{line: l})
				return nil
			})
		moves := (errors.Is(err, client.ErrStopped) || errors.Is(err, client.ErrCut)) && t.client.HostMoves()
		switch {
		case ctx.Err() != nil:
			return
		case moves:
			put(chatNews{err: errMoves})
			if err := t.client.ComeBack(ctx, err); err != nil {
				put(chatNews{err: problem.Errorf(problem.Unavailable, problem.Of(err).Next, "%s", problem.Of(err).Text)})
				return
			}
		case errors.Is(err, client.ErrStopped), stopped && errors.Is(err, client.ErrNoDaemon):
			if !stopped {
				put(chatNews{err: client.ErrStopped})
			}
			stopped = true
			select {
			case <-ctx.Done():
			case <-t.woken:
			case <-time.After(lookForTime):
			}
		case errors.Is(err, client.ErrCut) && comebacks < comebacksMax:
			comebacks++
			put(chatNews{err: client.ErrCut})
			if err := t.client.ComeBack(ctx, err); err != nil {
				put(chatNews{err: problem.Errorf(problem.Unavailable, problem.Of(err).Next, "%s", problem.Of(err).Text)})
				return
			}
		default:
			put(chatNews{err: problem.Errorf(problem.KindOf(err), problem.Of(err).Next, "%s", problem.Of(err).Text)})
			return
		}
	}
}

// hear shows one line of the chat. The rows are what counts: a message is shown once, by its id.
func (t *talk) hear(h chatNews) {
	l := h.line
	if l.Out != nil && l.Out.Change != "" {
		t.cards[l.Out.Change] = true
	}
	switch {
	case errors.Is(h.err, client.ErrStopped):
		t.quiet()
		t.host("the daemon was stopped; what you say next starts it again")
	case errors.Is(h.err, errMoves):
		t.quiet()
		t.host("the host starts again, because it changes itself; what was accepted goes on")
	case h.err != nil:
		t.quiet()
		t.host("the daemon died and is started again; what was accepted goes on")
	case !t.ready && (l.Kind == api.ChatIn || l.Kind == api.ChatOut):
		t.history = append(t.history, l)
	case l.Kind == api.ChatReady && !t.ready:
		t.ready, t.turn = true, l.Turn
		t.past()
	case l.Kind == api.ChatIn:
		t.message(*l.In)
	case l.Kind == api.ChatOut:
		t.sent(*l.Out)
	case l.Kind == api.ChatTurn:
		t.quiet()
		t.turn, t.began = l.Turn, l.At
	case l.Kind == api.ChatSaid:
		t.turn = l.Turn
		t.words.said += l.Text
	case l.Kind == api.ChatTool:
		t.tool = l.Tool
	}
}

// quiet forgets what was said and not sent.
func (t *talk) quiet() {
	if len(t.words.above) > 0 {
		t.host("what stands above was broken off, and was not sent")
	}
	t.words, t.tool, t.over, t.began = words{}, nil, false, time.Time{}
}

// past shows the newest of what was there before.
func (t *talk) past() {
	t.print(func(s sheet) {
		s.line("%s", s.dim(fmt.Sprintf("talking with %s; Ctrl-C, Ctrl-D or /quit leaves, and loses nothing", t.group)))
	})
	early := max(len(t.history)-chatHistory, 0)
	for i, l := range t.history {
		switch {
		case l.In != nil && i < early:
			t.seen[l.In.ID] = true
			t.message(*l.In)
		case l.In != nil:
			t.message(*l.In)
		case i < early:
			t.seen[l.Out.ID] = true
		default:
			t.sent(*l.Out)
		}
	}
	t.history = nil
}

// readChat prints what was said with a group, and ends.
func readChat(ctx context.Context, a *app, c *client.Client, group string) error {
	lines := []api.ChatLine{}
	err := c.WatchChat(ctx, api.WatchChat{Group: group, History: lookBack}, func(l api.ChatLine) error {
		if l.Kind == api.ChatReady {
			return errEnough
		}
		lines = append(lines, l)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if a.document(lines) {
		return nil
	}
	fmt.Fprintf(a.Err, "standard input holds no message: this is what was said with %s\n", group)
	var b strings.Builder
	t := &talk{app: a, client: c, group: group, foot: foot{w: &b}, seen: map[string]bool{}, open: map[string]api.Message{}}
	for _, l := range lines {
		if l.In != nil {
			t.message(*l.In)
		} else if l.Out != nil {
			t.sent(*l.Out)
		}
	}
	_, err = io.WriteString(a.Out, strings.ReplaceAll(b.String(), "\r\n", "\n")) // no terminal, which needs both
	return err
}

// message shows what was said to the group, and keeps how it stands.
func (t *talk) message(m api.Message) {
	was, known := t.open[m.ID]
	if m.Ended == nil {
		t.open[m.ID] = m
	} else {
		delete(t.open, m.ID)
	}
	if !t.seen[m.ID] {
		t.seen[m.ID] = true
		t.asked(m)
	}
	switch {
	case known && m.Status == api.MessageCompleted && m.Turn == t.turn:
		t.over, t.tool, t.began = true, nil, time.Time{}
	case known && was.Status == api.MessageProcessing && m.Status != api.MessageProcessing && m.Ended == nil:
		t.quiet()
		if m.Reason != "" {
			t.host("not answered yet: " + m.Reason + "; the message waits and is tried again")
		}
	case m.Status == api.MessageDead:
		t.quiet() // the host's word about it comes as a notice
	}
}

// asked shows a message to the group: a task of the host's as such.
func (t *talk) asked(m api.Message) {
	if m.Kind == systemKind {
		return // the host tells the agent what it has told the person
	}
	t.at(m.At)
	if m.Task != "" {
		t.host("task " + m.Task + " is due:")
		t.print(func(s sheet) { s.quote(m.Text) }) // mostly an agent has written it
		return
	}
	if m.Agent {
		t.print(func(s sheet) { s.quote(m.Sender + " to " + t.group + ": " + m.Text) })
		return
	}
	t.print(func(s sheet) { s.hung(typedMark, typedRest, inert.Block(m.Text, len(m.Text))) })
}

// sent shows what leaves the group. What completes the words on the screen takes their place.
func (t *talk) sent(o api.Sent) {
	if t.seen[o.ID] {
		return
	}
	t.seen[o.ID] = true
	t.at(o.At)
	switch {
	case o.Change != "" && o.Digits > 0:
		t.card(o)
	case o.Lane != api.LaneTalk:
		t.host(o.Text)
	case o.Question != "":
		t.host(fmt.Sprintf("a question; answer with its number or in words, or later with /answer %s", o.Question))
		t.print(func(s sheet) { s.quote(o.Text) })
	case o.Turn == t.turn && t.words.said != "" && (t.over || t.words.begins(o.Text)):
		t.completed(o)
	default:
		t.print(func(s sheet) { s.quote(o.Text) })
	}
}

// card shows what a person is asked about a change, and how the card is called: message 1 is the assistant's, the others are the host's.
func (t *talk) card(o api.Sent) {
	if o.Lane == api.LaneTalk {
		t.print(func(s sheet) { s.quote(o.Text) })
	} else {
		t.host(o.Text)
	}
	t.host(fmt.Sprintf("this is card %d, about %s", o.Digits, o.Change))
}

// completed has the words on the screen be those that were sent.
func (t *talk) completed(o api.Sent) {
	rows, other := t.words.whole(t.sheet(t.Out), o.Text)
	t.words = words{}
	if other {
		t.host("it was sent otherwise than it stands above; this is what was sent")
	}
	if len(rows) > 0 {
		t.print(func(s sheet) { fmt.Fprintln(s.w, strings.Join(rows, "\n")) })
	}
}

// at names the time where more than a while lies before it.
func (t *talk) at(at time.Time) {
	if at.Sub(t.last) > 30*time.Minute {
		t.print(func(s sheet) { s.line("%s", s.dim("— "+at.Local().Format("Jan 2, 15:04")+" —")) })
	}
	t.last = at
}

// host shows a word of sallyport's own.
func (t *talk) host(text string) {
	t.print(func(s sheet) { s.hung(ourMark, ourMark, inert.Block(text, len(text))) })
}

// print writes lines that stay, above the foot.
func (t *talk) print(write func(s sheet)) {
	var b strings.Builder
	s := t.sheet(t.Out)
	s.w = &b
	write(s)
	t.foot.write(b.String())
}

// draw writes the foot: what the agent says now, what it does, and what is typed.
func (t *talk) draw(now time.Time) {
	s, height := t.sheet(t.Out), 24
	if fd, ok := terminal(t.Out); ok {
		if _, rows, err := term.GetSize(fd); err == nil && rows > 0 {
			height = rows
		}
	}
	typed, row, col := t.editor.rows(s.width)
	if over := len(typed) - max(height/2, 1); over > 0 { // the end of a long message
		typed, row = typed[over:], max(row-over, 0)
	}
	leave, rows := t.words.live(s, max(height-len(typed)-3, 3))
	if len(leave) > 0 {
		t.foot.write(strings.Join(leave, "\n") + "\n")
	}
	if status := t.status(now); status != "" {
		rows = append(rows, s.dim(clip(status, s.width-1)))
	}
	t.foot.draw(append(rows, typed...), len(rows)+row, col)
}

// status says what is being done; "" while nothing is.
func (t *talk) status(now time.Time) string {
	since, what := t.began, "is at work"
	if since.IsZero() {
		what = "waits"
		for _, m := range t.open {
			if m.Trigger && m.Due.Before(now) && (since.IsZero() || m.At.Before(since)) {
				since = m.At
			}
			if m.Status == api.MessageProcessing {
				what = "is at work"
			}
		}
	}
	took := now.Sub(since)
	if since.IsZero() || took < time.Second {
		return ""
	}
	if what == "waits" {
		return "waiting for " + t.group + " " + duration(took.Truncate(time.Second))
	}
	return fmt.Sprintf("%s %s %s%s", t.group, what, duration(took.Truncate(time.Second)), toolWords(t.tool, now))
}

// press takes one key; true if the person leaves.
func (t *talk) press(ctx context.Context, k byte) bool {
	text, whole, quit := t.editor.key(k)
	switch {
	case quit || whole && text == "/quit":
		return true
	case whole && text != "":
		if err := t.tell(ctx, text); err != nil {
			p := problem.Of(err)
			t.host(p.Text + t.nextWords(p.Next))
			t.editor.text = []rune(text) // Enter says it again
			t.editor.at = len(t.editor.text)
		}
	}
	return false
}

func (t *talk) nextWords(next string) string {
	if next == "" {
		return ""
	}
	return "; next: " + t.command(next)
}

// tell says what was typed, or answers a question by its name.
func (t *talk) tell(ctx context.Context, text string) error {
	m, is, err := answerByName(ctx, t.client, text)
	if !is {
		if text != t.unsaid.text { // else whether the first try was heard is not known, and both are one
			t.unsaid.text, t.unsaid.nonce = text, rand.Text()
		}
		if m, err = say(ctx, t.client, t.group, text, t.unsaid.nonce); err == nil {
			t.unsaid.text = ""
		}
	}
	if err != nil {
		return err
	}
	select {
	case t.woken <- struct{}{}:
	default:
	}
	if m.ID == "" { // it was about a stranger or a place: no agent hears of it
		t.print(func(s sheet) { s.hung(typedMark, typedRest, inert.Block(text, len(text))) })
		t.host(inert.Line(m.Reason))
		return nil
	}
	if !t.seen[m.ID] {
		t.seen[m.ID] = true
		if m.Ended == nil {
			t.open[m.ID] = m
		}
		t.last = m.At
		t.print(func(s sheet) { s.hung(typedMark, typedRest, inert.Block(text, len(text))) })
	}
	if m.Code != "" {
		t.host("the code that keeps it: " + inert.Line(m.Code) + "\nReply `confirm` and this code once the host has started again and asks. It is shown once.")
	}
	return nil
}

// leave says what goes on without the terminal, and which card of this chat waits for the person.
func (t *talk) leave(ctx context.Context) {
	s := t.sheet(t.Err)
	waiting := 0
	for _, m := range t.open {
		if m.Task == "" && m.Kind != systemKind && !m.Agent { // a person has said it
			waiting++
		}
	}
	asked, err := t.waitingCards(ctx)
	switch {
	case waiting > 0:
		s.line("%s goes on without this terminal with %s of yours", t.group, count(waiting, "message"))
	case len(asked) == 0 && err == nil:
		s.line("you left; nothing of yours waits for %s", t.group)
	default:
		s.line("you left")
	}
	for _, c := range asked {
		left := ""
		if c.State == api.InTrial {
			left = ", " + duration(c.Trial.Left().Truncate(time.Second)) + " left"
		}
		s.line("%s waits for your answer%s: %s", c.ID, left, t.command(wayOn(c)))
	}
	fmt.Fprintf(t.Err, "to come back: %s\n", t.command("sallyport chat "+t.group))
}

// waitingCards are the changes of this chat's cards that wait for a person now. A daemon that was stopped is not started by that.
func (t *talk) waitingCards(ctx context.Context) (asked []api.Change, err error) {
	if len(t.cards) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	rows, err := client.Call(ctx, t.client, api.ChangeList,
		api.Filter{States: []string{api.AwaitingApproval, api.InTrial, api.Blocked, api.RollbackFailed}, Limit: lookedUp})
	for _, c := range rows {
		if t.cards[c.ID] && waitsForPerson(c) {
			asked = append(asked, c)
		}
	}
	return asked, err
}

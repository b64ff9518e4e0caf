package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// spoken is a message and what answered it.
type spoken struct {
	Message api.Message `json:"message"`
	Answer  []api.Sent  `json:"answer"`
	Notices []api.Sent  `json:"notices"` // of the host's, meanwhile, and cards that nobody was shown before
}

// Why the wait for an answer ends.
var (
	errAnswered = errors.New("it was answered")
	errLook     = errors.New("it came to its end: what was sent is in the rows")
	errWaited   = errors.New("no answer came in the time that was given")
)

// lookBack is how much of a chat is read again to find a message and its answer.
const lookBack = 200

// sayOnce says one thing and prints what answers it.
func sayOnce(ctx context.Context, a *app, c *client.Client, group, text string, wait time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	m, is, err := answerByName(ctx, c, text)
	if !is {
		m, err = say(ctx, c, group, text, rand.Text())
	}
	if err != nil {
		return err
	}
	if m.ID == "" { // it was about a stranger or a place: no agent hears of it
		said := spoken{Message: m, Answer: []api.Sent{}, Notices: []api.Sent{}}
		if !a.document(said) {
			a.sheet(a.Out).line("%s", inert.Line(m.Reason))
		}
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errWaited)
	defer cancel()

	if !a.json { // there it stands in the message
		showCode(a, "the change", m.Code)
	}
	w := &answerWait{app: a, client: c, group: group, said: spoken{Message: m, Answer: []api.Sent{}, Notices: []api.Sent{}},
		began: time.Now(), told: map[string]bool{}}
	ended := w.showTime(ctx)
	err = w.await(ctx)
	left := ctx.Err() != nil
	cancel()
	<-ended
	if err != nil && !left && !errors.Is(err, client.ErrStopped) {
		return err
	}
	return w.report(err)
}

// answerWait waits for the answer to one message.
type answerWait struct {
	*app
	client *client.Client
	group  string
	began  time.Time

	mu    sync.Mutex // of what follows, and of what is written to standard error
	said  spoken
	told  map[string]bool // notices, by id and by text
	ready bool            // the chat's rows have been read
	tool  *api.InFlight
	drawn bool
	diff  []api.Sent // of the card that comes next
}

// await watches until the message has come to its end and its answer is known. Errors: client.ErrStopped; the cause of ctx's end.
func (w *answerWait) await(ctx context.Context) error {
	for comebacks := 0; ; {
		w.said.Answer, w.ready, w.diff = []api.Sent{}, false, nil
		err := w.client.WatchChat(ctx, api.WatchChat{Group: w.group, History: lookBack}, func(l api.ChatLine) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.hear(l)
		})
		switch {
		case errors.Is(err, errAnswered):
			return nil
		case errors.Is(err, errLook):
		case errors.Is(err, client.ErrStopped) && w.client.HostMoves(), errors.Is(err, client.ErrCut) && comebacks < comebacksMax:
			if !w.client.HostMoves() {
				comebacks++
			}
			if err := w.client.ComeBack(ctx, err); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// hear takes one line. A message's end and what its turn sent are one transaction: read after the end, the rows have it all.
func (w *answerWait) hear(l api.ChatLine) error {
	m := &w.said.Message
	switch l.Kind {
	case api.ChatIn:
		if l.In.ID == m.ID {
			w.moved(*l.In)
			if w.ready && m.Ended != nil {
				return errLook
			}
		}
	case api.ChatOut:
		w.sent(*l.Out)
	case api.ChatTool:
		w.tool = l.Tool
	case api.ChatReady:
		w.ready = true
		if m.Ended != nil {
			return errAnswered
		}
	}
	return nil
}

// moved takes the message as it is now, and says why it has to be tried again.
func (w *answerWait) moved(m api.Message) {
	was := w.said.Message
	w.said.Message, w.said.Message.Code = m, was.Code // a row has none
	if m.Ended == nil && m.Tries > was.Tries && m.Reason != "" {
		w.note(ourMark, m.Reason, fmt.Sprintf("not answered yet: %s; the message waits and is tried again", m.Reason))
	}
}

// sent takes what was sent: an answer is kept, a word of the host's since then is shown at once. So is a card that nobody was shown before,
// as it counts as shown by that. The one that the message is dead is the outcome's to say.
func (w *answerWait) sent(o api.Sent) {
	before := o.At.Before(w.said.Message.At)
	if before && o.Card == api.CardDiff {
		w.diff = append(w.diff, o)
		return
	}
	diff := w.diff
	w.diff = nil
	switch {
	case o.Unseen:
		for _, part := range append(diff, o) {
			w.notice(part)
		}
	case o.Lane == api.LaneTalk:
		w.said.Answer = append(w.said.Answer, o)
	case !before && (o.Card != "" || !strings.Contains(o.Text, w.said.Message.ID)): // what became of the message is told at the end
		w.notice(o)
	}
}

// notice keeps a word of the host's and shows it, once.
func (w *answerWait) notice(o api.Sent) {
	if !slices.ContainsFunc(w.said.Notices, func(known api.Sent) bool { return known.ID == o.ID }) {
		w.said.Notices = append(w.said.Notices, o)
	}
	mark := ourMark
	if o.Lane == api.LaneTalk {
		mark = agentMark
	}
	w.note(mark, o.ID, o.Text)
}

// note says something of the host's on standard error, once.
func (w *answerWait) note(mark, key, text string) {
	for known := range w.told {
		if known == key || strings.Contains(known, key) {
			return
		}
	}
	w.told[key], w.told[text] = true, true
	if w.json {
		return
	}
	w.clear()
	w.sheet(w.Err).hung(mark, mark, inert.Block(text, len(text)))
}

// showTime keeps a line on standard error, if that is a terminal, that says how long it takes; what it returns is closed when it is gone.
func (w *answerWait) showTime(ctx context.Context) <-chan struct{} {
	gone := make(chan struct{})
	if w.json || !onTerminal(w.Err) {
		close(gone)
		return gone
	}
	go func() {
		defer close(gone)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				w.mu.Lock()
				defer w.mu.Unlock()
				w.clear()
				return
			case now := <-tick.C:
				w.mu.Lock()
				s := w.sheet(w.Err)
				text := fmt.Sprintf("waiting for %s %s", w.group, duration(now.Sub(w.began).Truncate(time.Second)))
				fmt.Fprint(w.Err, clearLine, s.dim(clip(text+toolWords(w.tool, now), s.width-1)))
				w.drawn = true
				w.mu.Unlock()
			}
		}
	}()
	return gone
}

func (w *answerWait) clear() {
	if w.drawn {
		fmt.Fprint(w.Err, clearLine)
		w.drawn = false
	}
}

// report says what became of the message; because is why the wait ended, nil if it was answered.
func (w *answerWait) report(because error) error {
	m := w.said.Message
	var answer []api.Sent
	for _, o := range w.said.Answer {
		if because == nil && o.Turn == m.Turn && m.Status != api.MessageDead {
			answer = append(answer, o)
		}
	}
	w.said.Answer = append([]api.Sent{}, answer...)
	code := exitDone
	switch {
	case because != nil && !errors.Is(because, errWaited) && !errors.Is(because, client.ErrStopped):
		code = exitInterrupted
	case because != nil:
		code = exitWaiting
	case m.Status == api.MessageDead:
		code = exitAgentFailed
	case m.Decides == api.DecidesNothing:
		code = exitError
	}
	if w.document(w.said) {
		return ended(code)
	}

	switch {
	case code == exitAgentFailed:
		return problem.Errorf(problem.AgentFailed, "sallyport message retry "+m.ID, "the message %s was not answered: %s", m.ID, m.Reason)
	case because != nil:
		w.sheet(w.Err).line("%s; %s stays accepted and is answered later", w.whyNot(because), m.ID)
		fmt.Fprintf(w.Err, "next: %s\n", w.command("sallyport message show "+m.ID))
	case m.Decides == api.DecidesNothing, m.Decides != "" && len(w.told) == 0:
		w.note(ourMark, m.Reason, m.Reason)
	case m.Decides != "":
	case len(answer) == 0:
		w.sheet(w.Err).line("%s has read it and sends nothing", w.group)
	}
	for _, o := range answer {
		if _, err := io.WriteString(w.Out, whole(inert.Block(o.Text, len(o.Text)))); err != nil {
			return err
		}
	}
	return ended(code)
}

// whyNot says why there is no answer.
func (w *answerWait) whyNot(because error) string {
	switch {
	case errors.Is(because, errWaited):
		return fmt.Sprintf("no answer of %s came within the time of --wait", w.group)
	case errors.Is(because, client.ErrStopped):
		return "the daemon was stopped before the answer came"
	}
	return "you left before the answer came"
}

package pi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/inert"
)

const (
	// pollPause is between two questions whether pi stands still.
	pollPause = 50 * time.Millisecond
	// againMax is how often it is asked when it said that it would go on and does not.
	againMax = 200
)

// turn is what is known of a turn under way. It is over when pi stands still: an agent_end alone does not say so, because
// it tries again after errors, sums up a long conversation and goes on, or has been given more words.
type turn struct {
	t           *talk
	prompted    string // id of the prompt; "" once it is answered
	running     bool   // between agent_start and agent_end
	retrying    bool   // it waits before another try
	compacting  bool
	again       int    // > 0: it said that it goes on by itself; counts down
	asked       string // id of the question whose answer may end the turn
	poll        *time.Timer
	interrupted bool
	over        bool
	kicked      bool

	says    string
	stop    string // stopReason of the last message
	failure string // its error
	err     error
	calls   map[string]string // kinds of the tool calls under way, by their id
	said    map[int]int       // bytes of each part of the message that were shown
	lost    bool              // some of the message could not be read as it came
}

// Prompt gives pi words and waits until it stands still.
func (t *talk) Prompt(ctx context.Context, text string) (says string, err error) {
	n := &turn{t: t, prompted: t.id(), calls: map[string]string{}, said: map[int]int{}, poll: time.NewTimer(time.Hour)}
	defer n.poll.Stop()
	n.poll.Stop()
	if !t.send(command{ID: n.prompted, Type: "prompt", Message: text}) {
		return "", t.gone()
	}
	t.begin()
	defer t.settle()
	stop := ctx.Done()
	for !n.over {
		select {
		case e, ok := <-t.events:
			if !ok {
				return n.says, t.gone()
			}
			n.hear(e)
		case <-n.poll.C:
			n.ask()
		case <-stop:
			stop = nil
			n.interrupted = true
			n.abort()
		}
	}
	switch {
	case n.interrupted:
		return n.says, context.Cause(ctx)
	case n.err != nil:
		return n.says, n.err
	case n.stop == "error":
		return n.says, failed(n.failure)
	case n.stop == "aborted":
		return n.says, errors.New("pi's turn was interrupted, and the host did not ask for that")
	}
	return n.says, nil
}

// abort interrupts what runs. Before pi has begun there is nothing that it could interrupt: then it is asked once it has.
func (n *turn) abort() {
	if n.running || n.retrying {
		n.t.send(command{Type: "abort"})
	}
}

// ask asks pi whether it stands still, unless it is known that it does not.
func (n *turn) ask() {
	if n.prompted == "" && !n.running && !n.retrying && !n.compacting {
		n.asked = n.t.id()
		if !n.t.send(command{ID: n.asked, Type: "get_state"}) {
			n.poll.Reset(pollPause)
		}
	}
}

// hear takes one event.
func (n *turn) hear(e event) {
	switch e.Type {
	case "response":
		n.response(e)
	case "agent_start":
		n.running, n.retrying, n.again = true, false, 0
		n.stop, n.failure = "", ""
		if n.interrupted {
			n.abort()
		}
	case "agent_end":
		n.running = false
		clear(n.calls)
		n.ask()
	case "auto_retry_start":
		n.retrying = true
		n.t.show.Note(fmt.Sprintf("%s; pi asks again in %s", explain(e.ErrorMessage), (time.Duration(e.DelayMs) * time.Millisecond).Round(time.Second/10)))
		if n.interrupted {
			n.abort()
		}
	case "auto_retry_end":
		n.retrying = false
		n.ask()
	case "compaction_start":
		n.compacting = true
		n.t.show.Note("the conversation has grown long; pi sums it up")
	case "compaction_end":
		n.compacting = false
		if e.WillRetry {
			n.again = againMax
		}
		if e.ErrorMessage != "" {
			n.t.show.Note(inert.Brief(e.ErrorMessage, failureBytesMax))
		}
		n.ask()
	case "extension_ui_request":
		n.dialog(e)
	case "extension_error":
		n.t.show.Note("an extension failed: " + inert.Brief(e.Error, failureBytesMax))
	default:
		n.work(e)
	}
}

func (n *turn) dialog(e event) {
	kinds := make([]string, 0, len(n.calls))
	for _, k := range n.calls {
		kinds = append(kinds, k)
	}
	n.t.dialog(e, kinds)
}

// response takes pi's answer to a command.
func (n *turn) response(e event) {
	switch {
	case e.ID == "":
	case e.ID == n.prompted:
		n.prompted = ""
		if !e.Success {
			n.err = errors.New("pi refuses the request: " + explain(e.Error))
		}
		n.ask()
	case n.t.answered(e.ID, e.Success):
		n.ask()
	case e.ID == n.asked:
		n.asked = ""
		n.state(e)
	}
}

// state ends the turn if pi stands still and nothing waits.
func (n *turn) state(e event) {
	switch {
	case n.prompted != "" || n.running || n.retrying || n.compacting:
		return
	case e.Data.IsStreaming || e.Data.IsCompacting:
		n.poll.Reset(pollPause)
	case n.again > 0:
		n.again--
		n.poll.Reset(pollPause)
	case e.Data.PendingMessageCount > 0 && !n.interrupted && !n.kicked:
		// Words came when the run was ending, and lie there until it is told something.
		n.kicked = true
		n.prompted = n.t.id()
		n.t.send(command{ID: n.prompted, Type: "prompt", Message: "Go on with what you are told next."})
	default:
		n.over = n.t.rest() // words on their way are answered first
	}
}

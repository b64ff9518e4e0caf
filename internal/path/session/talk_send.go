package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/rule/policy"
)

// Types of messages to an agent (SV-083, SV-086).
const (
	checkpointViolation = "checkpoint_violation"
	pauseRequest        = "pause_request"
	resumeAgain         = "resume"
	tellAgent           = "tell"
	interruptTurn       = "interrupt"
)

const (
	// TellBytesMax is the longest text that Tell takes.
	TellBytesMax = 64 << 10
	// ChatBytesMax is the longest that it takes in a conversation, where it is a batch of messages.
	ChatBytesMax = 512 << 10
	// violatedBytesMax is the longest message about a violation; a longer one has fewer entries and says so.
	violatedBytesMax = 128 << 10
)

// Violated tells the agent which rules its work breaks (SV-072). If v asks for an
// acknowledgement it waits for the agent's violation_ack and sends the message
// again while none comes (SV-084); otherwise it waits until it is delivered.
//
// Acknowledged is true if the agent says that it understood. AgentResponse is its
// corrective_action, at most ResponseBytesMax and in its own words: redact and
// escape it before it is stored or shown. Type is set here, Timestamp if it is zero.
func (t *Talk) Violated(ctx context.Context, v Violated) Delivery {
	if t == nil {
		return Delivery{}
	}
	tries := 1
	if v.RequiresAck {
		tries += t.Retries
	}
	p := &parcel{name: checkpointViolation + " " + v.CheckpointID, words: true, line: violatedLine(v)}
	d, a := t.deliver(ctx, p, v.RequiresAck, violationAck, v.CheckpointID, tries)
	d.Acknowledged, d.AgentResponse = a.Understood, a.Action
	return d
}

// Tell gives the agent a person's words (SV-086), at most TellBytesMax, in a conversation ChatBytesMax; longer ones are
// not delivered. It waits for a tell_ack at most AnswerWithin and never says a thing twice.
func (t *Talk) Tell(ctx context.Context, text string) Delivery {
	return t.tell(ctx, told{Text: text})
}

// Try is Tell in a conversation, for a turn that shows whether the agent answers: where a hook fails or drops the words, the turn fails.
func (t *Talk) Try(ctx context.Context, text string) Delivery {
	return t.tell(ctx, told{Text: text, Trial: true})
}

// Steer is Tell in a conversation, into the turn that is under way and no other: an agent that does not take it there is not given it.
// Until it has said that it takes it, which it does before the end of the turn is told, it is not.
func (t *Talk) Steer(ctx context.Context, text string) Delivery {
	return t.tell(ctx, told{Text: text, Turn: t.Turn() + 1})
}

// told is a tell as it is sent.
type told struct {
	Type      string    `json:"type"`
	ID        string    `json:"id"` // a tell_ack names it
	Text      string    `json:"text"`
	Trial     bool      `json:"trial,omitempty"`
	Turn      int       `json:"turn,omitempty"` // that it is for; 0 = the next
	Timestamp time.Time `json:"timestamp"`
}

func (t *Talk) tell(ctx context.Context, m told) Delivery {
	if t == nil || len(m.Text) > t.longest() {
		return Delivery{}
	}
	t.mu.Lock()
	t.words++
	m.Type, m.ID, m.Timestamp = tellAgent, fmt.Sprintf("tell-%d", t.words), time.Now().UTC()
	t.mu.Unlock()
	p := &parcel{name: tellAgent + " " + m.ID, words: m.Turn == 0, line: encodeLine(m)}
	d, a := t.deliver(ctx, p, true, tellAck, m.ID, 1)
	d.Refused, d.At = a.Status == refused, a.at
	d.Acknowledged, d.AgentResponse = a.Type != "" && !d.Refused, a.Response
	return d
}

// longest is the most that Tell takes.
func (t *Talk) longest() int {
	if t.chat {
		return ChatBytesMax
	}
	return TellBytesMax
}

// Interrupt has the turn that is under way in a conversation end as cancelled; it never waits, and says nothing to a program that has
// an interruption to read already. Between turns the program does not heed it.
func (t *Talk) Interrupt() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := slices.ContainsFunc(t.queue, func(p *parcel) bool { return p.name == interruptTurn })
	if t.chat && !t.closed && !waits {
		t.push(&parcel{name: interruptTurn, line: encodeLine(struct {
			Type string `json:"type"`
		}{interruptTurn})})
	}
}

// Pause asks the agent to stand still and waits for its pause_ack. It is a courtesy:
// that an agent says it is paused proves nothing, and the freeze does not depend on
// it (SV-046). Timeout is true if no answer came in time, also where the program
// takes no messages (SV-081); it is false if ctx or the session ended first.
func (t *Talk) Pause(ctx context.Context, checkpointID string) Answer {
	if t == nil {
		return Answer{Timeout: true}
	}
	began := time.Now()
	w := t.expect(pauseAck, checkpointID)
	defer t.forget(w)
	p := &parcel{name: pauseRequest + " " + checkpointID, pause: checkpointID, from: w, line: encodeLine(struct {
		Type         string `json:"type"`
		CheckpointID string `json:"checkpoint_id"`
		Reason       string `json:"reason"`
		TimeoutMS    int64  `json:"timeout_ms"`
	}{pauseRequest, checkpointID, "checkpoint_validation", t.PauseWithin.Milliseconds()})}
	out := Answer{}
	if t.send(p) {
		limit := time.NewTimer(t.PauseWithin)
		defer limit.Stop()
		select {
		case <-w.done:
			out.Acknowledged = true
		case <-limit.C:
			out.Timeout = true
		case <-ctx.Done():
		case <-t.over:
		}
		t.withdraw(p)
	} else {
		out.Timeout = !is(t.over) // it does not read
	}
	out.LatencyMS = time.Since(began).Milliseconds()
	return out
}

// Resume tells the agent that it may go on after a Pause, whatever its answer was;
// it never waits. An agent that never got the pause gets no resume.
func (t *Talk) Resume(checkpointID string) {
	if t == nil {
		return
	}
	p := &parcel{name: resumeAgain + " " + checkpointID, line: encodeLine(struct {
		Type         string `json:"type"`
		CheckpointID string `json:"checkpoint_id"`
	}{resumeAgain, checkpointID})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused[checkpointID] && !t.closed {
		delete(t.paused, checkpointID)
		// Room is kept for it: without it the agent would stand for ever. There are
		// never more than pauses that the pipe has taken.
		t.push(p)
	}
}

// deliver sends a message up to tries times, AnswerWithin apart, until it is answered,
// or only until it is delivered if no answer is wanted. One that the pump has not
// taken yet is not sent again. The answer's type is "" if there was none.
func (t *Talk) deliver(ctx context.Context, p *parcel, wanted bool, kind, id string, tries int) (d Delivery, a answer) {
	w := t.expect(kind, id)
	defer t.forget(w)
	p.from = w
	for ; tries > 0; tries-- {
		if is(p.taken) {
			d.Delivered = true
			p = &parcel{name: p.name, words: p.words, line: p.line, from: w}
		}
		if p.taken == nil && !t.send(p) {
			break
		}
		if t.await(ctx, p.taken, w.done, wanted) {
			break
		}
	}
	t.withdraw(p)
	if is(w.done) {
		return Delivery{Delivered: true}, w.answer
	}
	d.Delivered = d.Delivered || is(p.taken)
	return d, a
}

// await waits for what comes of one try; it reports whether another makes no sense.
func (t *Talk) await(ctx context.Context, taken, done <-chan struct{}, wanted bool) bool {
	limit := time.NewTimer(t.AnswerWithin)
	defer limit.Stop()
	for {
		select {
		case <-done:
			return true
		case <-taken:
			if taken = nil; !wanted {
				return true
			}
		case <-limit.C:
			return false
		case <-ctx.Done():
			return true
		case <-t.over:
			return true
		}
	}
}

// is reports whether something has come to pass: its channel is closed.
func is(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// violatedLine encodes a violation. One with very many entries is cut and says how many are left out.
func violatedLine(v Violated) []byte {
	type omitted struct {
		Violations   int `json:"violations"`
		FilesChanged int `json:"files_changed"`
	}
	out := struct {
		Violated
		Omitted *omitted `json:"omitted,omitempty"`
	}{Violated: v}
	out.Type = checkpointViolation
	if out.Timestamp.IsZero() {
		out.Timestamp = time.Now().UTC()
	}
	if out.ActionTaken == "" {
		out.ActionTaken = ActionNone
	}
	if out.Violations == nil {
		out.Violations = []policy.Violation{} // a list, not null
	}
	if out.FilesChanged == nil {
		out.FilesChanged = []string{}
	}
	for {
		line := encodeLine(out)
		if len(line) <= violatedBytesMax || len(out.Violations)+len(out.FilesChanged) == 0 {
			return line
		}
		if len(out.FilesChanged) > len(out.Violations) {
			out.FilesChanged = out.FilesChanged[:len(out.FilesChanged)/2]
		} else {
			out.Violations = out.Violations[:len(out.Violations)/2]
		}
		out.Omitted = &omitted{len(v.Violations) - len(out.Violations), len(v.FilesChanged) - len(out.FilesChanged)}
	}
}

// encodeLine returns a message as one line with its newline.
func encodeLine(message any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(message); err != nil {
		panic(fmt.Sprintf("a message is plain data: %v", err)) // strings, numbers and times always can be
	}
	return b.Bytes()
}

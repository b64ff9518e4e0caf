package supervise

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/policy"
	"sallyport/internal/store"
)

// tellMax is how long a person waits for an agent to take their words.
const tellMax = 15 * time.Second

// tell says what an invalid checkpoint meant to an agent that reads messages, in structured form
// (SV-025, SV-072). An agent that reads none is not waited for.
func (s *supervisor) tell(ctx context.Context, cp checkpoint.Checkpoint, action string) {
	if policy.AtLeast(cp.Severity, policy.Warning) != cp.Severity {
		return
	}
	talk := s.run.Talk
	if talk == nil || s.again {
		return
	}
	v := session.Violated{
		Type: "checkpoint_violation", Severity: cp.Severity, CheckpointID: string(cp.ID), Timestamp: cp.At,
		Violations: cp.Violations, FilesChanged: cp.FilesChanged, ActionTaken: action,
		RequiresAck: policy.AtLeast(cp.Severity, policy.Error) == cp.Severity,
	}
	s.telling.Go(func() {
		d := talk.Violated(ctx, v)
		s.recordDelivery(context.WithoutCancel(ctx), cp.Change, string(cp.ID), "", audit.Host, d)
		s.heard(d)
	})
}

// askToPause asks an agent that wants to be asked to come to a rest before it is stopped, and returns
// what lets it go on. Its answer decides nothing: it is stopped either way (SV-046).
func (s *supervisor) askToPause(ctx context.Context) (goOn func()) {
	if s.run.Talk == nil || s.mode.Pause != agent.PauseMessage || s.still {
		return func() {}
	}
	all, err := s.Checkpoints(ctx, s.Row.ID)
	if err != nil {
		return func() {}
	}
	next := fmt.Sprintf("ckpt-%03d", len(all)+1) // the rest of the id is known once it is taken
	if a := s.run.Talk.Pause(ctx, next); !a.Acknowledged {
		s.Feed.Publish(change.Notice{Change: s.Row.ID, At: ledger.Now(), Kind: "event", Text: "the agent did not answer the request to pause; sallyport paused it all the same"})
	}
	return func() { s.run.Talk.Resume(next) }
}

// recordDelivery records whether a message reached an agent, and tells who watches.
func (p Parts) recordDelivery(ctx context.Context, changeID id.Change, subject, words string, by audit.Actor, d session.Delivery) {
	verb := "not told: the agent took no message"
	switch {
	case d.Acknowledged:
		verb = "told and acknowledged"
	case d.Delivered:
		verb = "told"
	}
	err := p.DB.InTx(ctx, func(tx store.Tx) error {
		return p.Append(ctx, tx, &change.Row{ID: changeID, Reason: words}, ledger.Move{By: by, Subject: subject}, verb, ledger.Now())
	})
	if err != nil {
		p.Log.Warn("a message to an agent was not recorded", "change", changeID, "error", err)
	}
	p.Feed.Publish(change.Notice{Change: changeID, At: ledger.Now(), Kind: "event", Text: fmt.Sprintf("the agent was %s (%s)", verb, subject)})
}

// Tell hands a person's words to a running agent (SV-086).
func (ss *Supervisors) Tell(ctx context.Context, change id.Change, by audit.Actor, text string) (session.Delivery, error) {
	s, err := ss.supervised(ctx, change, by)
	if err != nil {
		return session.Delivery{}, err
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return session.Delivery{}, problem.Errorf(problem.Usage, "sallyport change tell --help", "the text is empty: there is nothing to tell the agent")
	case len(text) > request.TextBytesMax:
		return session.Delivery{}, problem.Errorf(problem.Usage, "sallyport change tell --help", "the text has %d bytes; %d is the limit", len(text), request.TextBytesMax)
	case s.run.Talk == nil:
		return session.Delivery{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(change), "the agent of %s reads no messages: only an agent with a name, or a COMMAND that was started with run --messages, does", change)
	}
	if err := ss.Secrets.RefuseIn(ctx, "sallyport change tell --help", "the text", text); err != nil {
		return session.Delivery{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, tellMax)
	defer cancel()
	d := s.run.Talk.Tell(ctx, text)
	ss.recordDelivery(context.WithoutCancel(ctx), change, string(s.run.Session.ID), request.FirstLine(text), by, d)
	return d, nil
}

package supervise

import (
	"context"
	"fmt"
	"sync"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/policy"
	"sallyport/internal/store"
)

// messages are what the agent of one session is told, and what is written down of that. Nobody waits for the agent to read them.
type messages struct {
	Parts
	change id.Change
	run    *session.Running
	deaf   chan struct{}  // holds one once words were not taken: the program does not read
	words  sync.WaitGroup // that are under way to the agent; they end with the session
}

func newMessages(p Parts, change id.Change, run *session.Running) *messages {
	return &messages{Parts: p, change: change, run: run, deaf: make(chan struct{}, 1)}
}

// tell tells the agent something in words.
func (v *messages) tell(ctx context.Context, subject, words string) {
	v.words.Go(func() {
		d := v.run.Talk.Tell(ctx, words)
		v.recordDelivery(context.WithoutCancel(ctx), v.change, subject, request.FirstLine(words), audit.Host, d)
		v.heard(d)
	})
}

// tellViolation says what an invalid checkpoint meant to an agent that reads messages, in structured form
// (SV-025, SV-072). An agent that reads none is not waited for.
func (v *messages) tellViolation(ctx context.Context, cp checkpoint.Checkpoint, action string) {
	if policy.AtLeast(cp.Severity, policy.Warning) != cp.Severity {
		return
	}
	talk := v.run.Talk
	if talk == nil {
		return
	}
	said := session.Violated{
		Type: "checkpoint_violation", Severity: cp.Severity, CheckpointID: string(cp.ID), Timestamp: cp.At,
		Violations: cp.Violations, FilesChanged: cp.FilesChanged, ActionTaken: action,
		RequiresAck: policy.AtLeast(cp.Severity, policy.Error) == cp.Severity,
	}
	v.words.Go(func() {
		d := talk.Violated(ctx, said)
		v.recordDelivery(context.WithoutCancel(ctx), cp.Change, string(cp.ID), "", audit.Host, d)
		v.heard(d)
	})
}

// heard ends the wait for an agent that does not read what it is told.
func (v *messages) heard(d session.Delivery) {
	if !d.Delivered && v.run.Program.Turns {
		select {
		case v.deaf <- struct{}{}:
		default:
		}
	}
}

// say tells who watches how far the rounds are.
func (v *messages) say(text string) {
	v.Feed.Publish(change.Notice{Change: v.change, At: ledger.Now(), Kind: "round", Text: text})
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

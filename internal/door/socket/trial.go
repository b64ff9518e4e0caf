package socket

import (
	"context"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
)

// Trials is what a person says of what has landed.
type Trials interface {
	// Confirm keeps what is on trial (SM-122). Errors: conflict if nobody was asked yet, or if rollback or the end of the
	// time was first; confirming what is confirmed changes nothing and is no error.
	Confirm(ctx context.Context, change id.Change, by audit.Actor, code string) error
	// Rollback asks for the undoing of a finalized change: a new change of kind revert, which it returns. What is on
	// trial goes back at once (SM-123), and its own row is returned.
	Rollback(ctx context.Context, change id.Change, by audit.Actor, reason string, approve request.Approve) (change.Row, error)
}

// trials answers a person who says what is to become of what has landed.
type trials struct{ part Trials }

func (n trials) confirm(ctx context.Context, by audit.Actor, in api.Confirm) (out api.Nothing, err error) {
	return out, n.part.Confirm(ctx, id.Change(in.Of), by, in.Code)
}

func (n trials) rollback(ctx context.Context, by audit.Actor, in api.Rollback) (out api.Change, err error) {
	mode, err := approveMode(in.Approve)
	if err != nil {
		return out, err
	}
	row, err := n.part.Rollback(ctx, id.Change(in.Of), by, in.Reason, mode)
	return changeOf(row), err
}

// lengthOf reads --trial as it crosses the socket; how long is right is the controller's to say.
func lengthOf(ms *int64) *time.Duration {
	return maybe(ms, func(ms int64) time.Duration { return time.Duration(min(max(ms, -1), 1<<40)) * time.Millisecond })
}

// restartOf is what restarts: a command, a group, or the host.
func restartOf(t trust.Target) string {
	if t.Host {
		return "the host itself"
	}
	if t.Group != "" {
		return "the agent of " + t.Group
	}
	return t.Restart
}

func trialOf(t *trial.Trial, state change.State) *api.Trial {
	if t == nil {
		return nil
	}
	out := &api.Trial{
		Landing: string(t.Landing), Host: t.Target.Host, Restart: text(restartOf(t.Target)), Probe: text(t.Target.Probe.HTTP + t.Target.Probe.Command),
		LengthMS: t.Length.Milliseconds(), Handshake: string(t.Handshake), Restarts: t.Restarts,
		Started: t.Started.Wall, Expires: t.Expires.At(), Delivered: t.Delivered, By: maybe(t.By, actorOf), At: t.At, Reason: text(t.Why()),
		Say: text(said(t, state)), Undoing: string(t.Undoing), Restored: t.Restored,
	}
	if !t.Handshake.Decided() {
		if now, err := deadman.Now(); err == nil { // a clock that cannot be read leaves nothing
			out.LeftMS = t.Expires.Left(now).Milliseconds()
		}
	}
	return out
}

// said is what a person is told of a trial (SM-121, SM-130).
func said(t *trial.Trial, state change.State) string {
	switch {
	case t.Handshake == trial.Message1Sent:
		return t.Question()
	case state == change.RolledBack && t.Handshake == trial.RolledBack:
		return t.Said()
	}
	return "" // kept, or still on its way back
}

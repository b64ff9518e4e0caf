package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// hold does something while every process of the session stands, and lets it run again on every
// way out, unless it is to stand (SV-085).
func (s *supervisor) hold(ctx context.Context, do func() error) (err error) {
	if s.still || s.held {
		return do()
	}
	if err := s.process.Freeze(ctx); err != nil {
		return notStopped(err)
	}
	stood := s.Meter.Stands()
	s.held = true
	defer func() {
		defer stood()
		s.held = false
		if s.still || s.again {
			return
		}
		if thawed := s.process.Thaw(); thawed != nil {
			err = errors.Join(err, fmt.Errorf("let the session run again: %w", thawed))
		}
	}()
	return do()
}

// take takes one checkpoint of the running session: wait until the tree is stable, freeze,
// record, do what its verdict asks for, thaw; then the agent is told.
func (s *supervisor) take(ctx context.Context, why checkpoint.Trigger) (taken checkpoint.Taken, err error) {
	if !s.still {
		s.settle(ctx)
	}
	action := session.ActionNone
	judge := func() error {
		if taken, err = s.record(ctx, why); err != nil {
			return err
		}
		action, err = s.answer(ctx, taken, why)
		return err
	}
	defer s.askToPause(ctx)()
	if gate, urgent := s.gate, why == checkpoint.OnDemand; !urgent && gate.crowded() {
		err = s.hold(ctx, func() error { return gate.pass(ctx, urgent, judge) }) // back-pressure (SV-095)
	} else {
		err = gate.pass(ctx, urgent, func() error { return s.hold(ctx, judge) })
	}
	if taken.Checkpoint.Status == checkpoint.Invalid && !s.again && !(why == checkpoint.TurnEnded && s.rounds.last() && !s.still) {
		s.messages.tellViolation(ctx, taken.Checkpoint, action)
	}
	return taken, err
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
		s.Feed.Publish(change.Notice{Change: s.Row.ID, At: ledger.Now(), Kind: "event",
			Text: "the agent did not answer the request to pause; sallyport paused it all the same"})
	}
	return func() { s.run.Talk.Resume(next) }
}

// record takes a checkpoint of a session that stands and remembers what stood there.
func (s *supervisor) record(ctx context.Context, why checkpoint.Trigger) (checkpoint.Taken, error) {
	s.last = time.Now()
	w, err := s.Opener.Anew(ctx, s.Work)
	if err != nil {
		return checkpoint.Taken{}, err
	}
	s.Work = w
	taken, err := s.Takes.Take(ctx, w, s.ws, Taking{Why: why, Session: s.run.Session.ID, Live: true})
	if err != nil {
		return checkpoint.Taken{}, err
	}
	s.rounds.taken = taken
	s.events.reset(taken.Checkpoint.ID)
	return taken, s.remember(ctx)
}

// stop freezes the session until somebody resumes it.
func (s *supervisor) stop(ctx context.Context) error {
	if s.still {
		return nil
	}
	if !s.held {
		if err := s.process.Freeze(ctx); err != nil {
			return notStopped(err)
		}
	}
	s.still = true
	return nil
}

// notStopped says why a session could not be stopped: it has ended by itself, or what went wrong.
func notStopped(err error) error {
	if errors.Is(err, sandbox.ErrEnded) {
		return errOver
	}
	return fmt.Errorf("stop the session: %w", err)
}

// block stops an agent that cannot go on by itself and asks a person (SV-090, SV-091).
func (s *supervisor) block(ctx context.Context, subject string, why error) error {
	if err := s.stop(ctx); err != nil {
		return err
	}
	because := problem.Errorf(problem.Refused, "sallyport change resume "+string(s.Row.ID),
		"Interactive mode failure: %s: the agent is stopped: %w", s.Row.ID, why)
	err := s.shift(ctx, ledger.Move{Event: change.Block, By: audit.Host, Subject: subject, Blocked: change.InteractiveModeFailure, Because: because})
	if err != nil {
		s.still = false
		if !s.held {
			err = errors.Join(err, s.process.Thaw())
		}
	}
	return err
}

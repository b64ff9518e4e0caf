package supervise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

const (
	stableFor   = 100 * time.Millisecond // a tree that has not moved for so long is stable (SV-045)
	stablePoll  = 50 * time.Millisecond
	stableMax   = time.Second // after that it is frozen as it is: a frozen tree is stable
	failuresMax = 3           // failed checkpoints in a row before a person is asked (SV-090)

)

// look counts what has changed and takes a checkpoint if one is due. A checkpoint that cannot be
// taken has failed: it counts like one that is not valid (SV-090).
func (s *supervisor) look(ctx context.Context) {
	if s.still || s.again || s.limit != nil {
		return
	}
	diff, err := s.Workspaces.Walk(ctx, s.ws)
	if err == nil {
		over, unmeasured := s.tooMuch(ctx, diff)
		if over {
			return
		}
		err = errors.Join(unmeasured, s.due(ctx, stamps(diff)))
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, errOver) {
		return
	}
	s.Log.Warn("a checkpoint could not be taken; sallyport tries again at the next one", "change", s.Row.ID, "error", err)
	s.failed++
	if s.failed >= failuresMax {
		err = s.block(ctx, string(s.Row.ID), fmt.Errorf("%d checkpoints in a row failed: %w", s.failed, err))
		if err != nil {
			s.Log.Error("an agent whose work cannot be checked could not be paused, so it was ended", "change", s.Row.ID, "error", err)
			s.process.Kill()
		}
	}
}

// tooMuch ends a session whose workspace holds more than it may, or that writes while the disk is as good as full.
func (s *supervisor) tooMuch(ctx context.Context, diff workspace.Diff) (over bool, err error) {
	use, err := s.Workspaces.Usage(ctx, s.ws, diff)
	if err != nil {
		return false, err
	}
	s.Meter.Upper(s.Row.ID, use.Held)
	if w := s.events.watch; w != nil {
		s.Meter.Held(s.Row.ID, w.Stats().HeldBytes)
	}
	mb := func(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
	switch {
	case use.Held > s.mode.UpperBytesMax:
		s.end(&sandbox.Limit{Name: sandbox.Disk, Value: mb(s.mode.UpperBytesMax), Observed: mb(use.Held)})
	case use.Low():
		s.end(&sandbox.Limit{Name: sandbox.FreeDisk, Value: mb(min(use.All/50, 1<<30)), Observed: mb(use.Free)})
	default:
		return false, nil
	}
	return true, nil
}

// due takes a checkpoint if enough has changed, or long enough ago (SV-021, SV-043).
func (s *supervisor) due(ctx context.Context, at map[string]int64) error {
	moved := moved(s.seen, at)
	since := time.Since(s.last)
	if moved == 0 || since < s.mode.Apart {
		return nil
	}
	why := checkpoint.Interval
	switch {
	case moved >= s.mode.ChangesMax:
		why = checkpoint.Changes
	case since < s.mode.Interval:
		return nil
	}
	_, err := s.take(ctx, why)
	return err
}

// end ends the session because it broke a limit that the host holds it to; it is judged like any other end.
func (s *supervisor) end(l *sandbox.Limit) {
	s.limit = l
	s.process.Kill()
}

// moved counts the paths that differ between two walks.
func moved(before, after map[string]int64) (n int) {
	for path, at := range after {
		if was, ok := before[path]; !ok || was != at {
			n++
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			n++
		}
	}
	return n
}

// stamps says when each found path last changed.
func stamps(d workspace.Diff) map[string]int64 {
	at := make(map[string]int64, len(d.Changes))
	for _, f := range d.Changes {
		at[f.Path] = f.At
	}
	return at
}

// settle waits until nothing has moved for stableFor, at most stableMax (SV-045).
func (s *supervisor) settle(ctx context.Context) {
	end := time.Now().Add(stableMax)
	last, err := s.Workspaces.Walk(ctx, s.ws)
	for quiet := time.Now(); err == nil && time.Since(quiet) < stableFor && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(stablePoll):
		}
		var now workspace.Diff
		if now, err = s.Workspaces.Walk(ctx, s.ws); err == nil && !maps.Equal(stamps(last), stamps(now)) {
			last, quiet = now, time.Now()
		}
	}
}

// remember notes what stands in the workspace, so that only later changes count.
func (s *supervisor) remember(ctx context.Context) error {
	diff, err := s.Workspaces.Walk(ctx, s.ws)
	if err == nil {
		s.seen = stamps(diff)
	}
	return err
}

package supervise

import (
	"context"
	"time"

	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

// supervise runs a session to its end and looks at it meanwhile. With again it is no end to judge:
// another session begins from row.From.
func (ss *Supervisors) supervise(ctx context.Context, w *work.Work, ws workspace.Workspace, run *session.Running) (exit sandbox.Exit, again bool, err error) {
	change := w.Row.ID
	s := &supervisor{
		Parts: ss.Parts, Work: *w, gate: &ss.gate, ws: ws, run: run, mode: w.Mode(),
		asks: make(chan ask), over: make(chan struct{}), last: time.Now(), seen: map[string]int64{},
		rounds: newRounds(run.Program), messages: newMessages(ss.Parts, change, run), broke: ss.Runtime.Budget.Subscribe(change.Subject()),
	}
	defer ss.Runtime.Budget.Unsubscribe(change.Subject())
	s.listen(ctx)
	defer s.events.close()

	started := make(chan sandbox.Process, 1)
	run.Live = func(p sandbox.Process) { started <- p }
	over := make(chan ended, 1)
	go func() { // ends with the session
		exit, err := session.Run(ctx, *run)
		over <- ended{exit, err}
	}()

	var end ended
	select {
	case end = <-over:
	case p := <-started:
		s.last = time.Now() // what it took to build its sandbox is not the agent's time
		s.process = live.Measure(p, ss.Meter, change)
		ss.setLive(change, s)
		end = s.attend(ctx, over)
		ss.setLive(change, nil)
		close(s.over)
	}

	s.rounds.dropChecks()
	s.beside.Wait()
	s.messages.words.Wait()
	*w = s.Work
	if s.limit != nil && end.exit.Limit == nil {
		end.exit.Limit = s.limit
	}
	end.exit = s.correct(end.exit)
	return end.exit, s.again, end.err
}

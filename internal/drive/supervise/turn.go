package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/drive/check"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/store"
)

// endWithin is how long a program has to end once nothing more is wanted of it.
const endWithin = 15 * time.Second

// paidAgain is told to an agent whose turn failed because its budget was used up or its login had ended, once its model answers again. It
// is no round: nothing was wrong.
const paidAgain = "Your model refused to answer for a while. It answers again. Go on where you stopped."

// rounds is what a supervisor knows of an agent that works in turns: it waits at the end of each until it is told more, or
// that nothing more is wanted. That it says it is done means nothing: what stands is judged (CW-052, CW-053).
type rounds struct {
	max, n  int                // of change and check; n is the one that goes on, from 1
	taken   checkpoint.Taken   // what stood last
	drop    context.CancelFunc // ends the checks that run; nil if none do
	verdict chan check.Verdict // of them
	over    bool               // nothing more is wanted: its stdin ends
	late    <-chan time.Time   // once it is, and no turn is under way: when it has to have ended
	ended   bool               // by the host, because it did not
	failure string             // why its last turn failed
	unpaid  bool               // a budget was used up in its turn: if it fails, that is why
	put     chan agent.TurnEnd // the end of a turn that is looked at once the agent may go on
}

func newRounds(p agent.Program) rounds {
	r := rounds{max: p.Rounds, n: 1, put: make(chan agent.TurnEnd, 1)}
	if r.max <= 0 {
		r.max = agent.RoundsDefault
	}
	return r
}

// last reports whether what is wrong now is not told any more.
func (r *rounds) last() bool { return r.n >= r.max }

// dropChecks ends the checks that run: what they look at stands no more.
func (r *rounds) dropChecks() {
	if r.drop != nil {
		r.drop()
	}
	r.drop, r.verdict = nil, nil
}

// turns is where the end of a turn comes from; nil while nothing may follow from it.
func (s *supervisor) turns() <-chan agent.TurnEnd {
	if !s.run.Program.Turns || s.idle() {
		return nil
	}
	if len(s.rounds.put) > 0 {
		return s.rounds.put
	}
	return s.run.Talk.Turns()
}

// verdicts is where what came of checks comes from; nil while nothing may follow from it.
func (s *supervisor) verdicts() <-chan check.Verdict {
	if s.idle() {
		return nil
	}
	return s.rounds.verdict
}

// idle reports whether the agent stands, or ends, for a reason of its own.
func (s *supervisor) idle() bool { return s.still || s.again || s.limit != nil }

// endTurn looks at what stands now that the agent waits, and tells it what is wrong with it, or that nothing more is wanted.
func (s *supervisor) endTurn(ctx context.Context, end agent.TurnEnd) {
	s.rounds.dropChecks()
	select { // its model refused before the agent could end its turn
	case why := <-s.broke:
		s.stopUnpaid(ctx, why)
	default:
	}
	if s.idle() && s.rounds.unpaid {
		s.rounds.put <- end
		return
	}
	s.rounds.failure = ""
	if end.Outcome != agent.TurnDone {
		s.rounds.failure = "its last turn failed, and it gave no reason"
		if end.Reason != "" {
			s.rounds.failure = end.Reason
		}
	}
	if s.rounds.over {
		s.rounds.late = time.After(endWithin)
		return
	}
	unpaid := s.rounds.unpaid
	s.rounds.unpaid = false
	if unpaid && s.rounds.failure != "" && !end.More {
		s.rounds.failure = ""
		s.messages.tell(ctx, string(s.run.Session.ID), paidAgain)
		return
	}
	if s.rounds.failure != "" && !end.More { // the tree is kept and judged at its end
		s.finish()
		return
	}
	if s.Row.Request.Kind == request.Swap {
		s.endDevTurn(ctx, end)
		return
	}
	taken, err := s.take(ctx, checkpoint.TurnEnded)
	switch {
	case ctx.Err() != nil || errors.Is(err, errOver) || s.again:
	case err != nil:
		s.Log.Warn("the files could not be looked at when a turn ended; sallyport looks when the session ends", "change", s.Row.ID, "error", err)
		s.finish()
	case taken.Checkpoint.Status == checkpoint.Invalid:
		s.countRules(ctx, taken.Checkpoint)
	case !end.More:
		s.judgeTree(ctx, taken)
	}
}

// countRules counts the round of an agent that was told which rules it breaks, or ends what has had its rounds.
func (s *supervisor) countRules(ctx context.Context, cp checkpoint.Checkpoint) {
	if s.rounds.last() && !s.still {
		s.messages.say(fmt.Sprintf("round %d of %d is over, and %s", s.rounds.n, s.rounds.max, grounds.Refusal(s.Row, cp.Violations)))
		s.finish()
		return
	}
	s.nextRound(ctx, string(cp.ID), grounds.Refusal(s.Row, cp.Violations).Error())
}

// judgeTree has the checks run on exactly what stands, beside what goes on here.
func (s *supervisor) judgeTree(ctx context.Context, taken checkpoint.Taken) {
	s.rounds.dropChecks()
	if len(taken.Edits) == 0 || taken.Checkpoint.Status != checkpoint.Valid {
		s.finish() // there is nothing to check, and why stands with the session's end
		return
	}
	if len(s.Checks()) == 0 {
		s.finish()
		return
	}
	ctx, s.rounds.drop = context.WithCancel(ctx)
	to := make(chan check.Verdict, 1)
	s.rounds.verdict = to
	w := s.Work // by the rules that the checkpoint was judged by
	o := grounds.Offer{Host: w.Host, Base: taken.Checkpoint.Base, Commit: taken.Checkpoint.Commit, Tree: taken.Checkpoint.Tree, Judging: w.Judging}
	s.beside.Go(func() {
		v := check.Verdict{Tree: o.Tree, Policy: w.Judging.Digest(w.Row.Request)}
		v.Results, v.Why, v.Err = s.Checker.Check(ctx, w.Row, o)
		to <- v
	})
}

// weigh does what the checks of a turn's tree ask for.
func (s *supervisor) weigh(ctx context.Context, v check.Verdict) {
	s.rounds.dropChecks()
	switch {
	case ctx.Err() != nil || s.rounds.over:
	case s.run.Talk.Turning(): // it was told more meanwhile: what it makes of that is judged
	case v.Err != nil:
		s.Log.Warn("the checks of a turn did not run; they run again once the session has ended", "change", s.Row.ID, "error", v.Err)
		s.finish()
	case s.rounds.taken.Checkpoint.Tree != v.Tree: // somebody put files back meanwhile
		s.judgeTree(ctx, s.rounds.taken)
	case v.Why == nil:
		s.Checker.Remember(s.Row.ID, v)
		s.finish()
	case s.rounds.last():
		v.Why = fmt.Errorf("%w; the agent had %d rounds to correct this, and they are over", v.Why, s.rounds.max)
		s.Checker.Remember(s.Row.ID, v)
		s.messages.say(fmt.Sprintf("round %d of %d is over, and %s", s.rounds.n, s.rounds.max, v.Failed()))
		s.finish()
	default:
		s.mend(ctx, v)
	}
}

// mend tells the agent which check failed, and how.
func (s *supervisor) mend(ctx context.Context, v check.Verdict) {
	s.nextRound(ctx, string(s.rounds.taken.Checkpoint.ID), v.Failed())
	r := v.Results[len(v.Results)-1]
	words := fmt.Sprintf("The check %q failed on the files as you left them: %s.", r.Command, r.Why)
	if r.Tail != "" {
		words += " The end of what it printed:\n\n" + r.Tail
	}
	words += "\n\nCorrect this. The check runs again on exactly your files once your turn is over."
	subject := string(s.rounds.taken.Checkpoint.ID)
	s.messages.tell(ctx, subject, words)
}

// nextRound counts a round, tells who watches, and writes down why it was needed.
func (s *supervisor) nextRound(ctx context.Context, subject, why string) {
	s.rounds.n++
	s.rounds.max = max(s.rounds.max, s.rounds.n) // a person has let it go on
	round := fmt.Sprintf("round %d of %d", s.rounds.n, s.rounds.max)
	s.messages.say(round + ": " + why)
	keep := context.WithoutCancel(ctx)
	err := s.DB.InTx(keep, func(tx store.Tx) error {
		return s.Append(keep, tx, &change.Row{ID: s.Row.ID, Reason: why}, ledger.Move{By: audit.Host, Subject: subject}, round, ledger.Now())
	})
	if err != nil {
		s.Log.Warn("a round was not recorded", "change", s.Row.ID, "error", err)
	}
}

// finish ends the agent's stdin: nothing more is wanted of it. One that has no turn under way has to end soon.
func (s *supervisor) finish() {
	if s.rounds.over {
		return
	}
	s.rounds.over = true
	s.run.Talk.Finish()
	if !s.run.Talk.Turning() || s.rounds.failure != "" {
		s.rounds.late = time.After(endWithin)
	}
}

// outstays ends a program that does not end by itself though nothing more is wanted of it; what it left is judged all the same.
func (s *supervisor) outstays() {
	if s.idle() { // a person has stopped it: it cannot end
		s.rounds.late = time.After(endWithin)
		return
	}
	s.rounds.late, s.rounds.ended = nil, true
	s.process.Kill()
}

// correct says how a program with turns has ended: one that the host ended after its last turn, or that says its turn failed
// and not by its status, is judged by what is true of it.
func (s *supervisor) correct(exit sandbox.Exit) sandbox.Exit {
	if exit.Limit != nil {
		return exit
	}
	if s.rounds.ended {
		exit.Code = 0 // SIGKILL is the host's, and stays in the record
	}
	if s.rounds.failure != "" {
		s.run.Session.Reason = s.rounds.failure
		if exit.Code == 0 {
			exit.Code = 1
		}
	}
	return exit
}

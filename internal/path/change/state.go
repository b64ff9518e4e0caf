package change

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// State is where a change stands. The strings are stored and shown.
type State string

const (
	Requested        State = "requested"
	Preparing        State = "preparing"
	Working          State = "working"
	Paused           State = "paused"
	Blocked          State = "blocked"
	Submitted        State = "submitted"
	AwaitingApproval State = "awaiting_approval"
	Landing          State = "landing"
	InTrial          State = "in_trial"
	Finalized        State = "finalized"
	RolledBack       State = "rolled_back"
	RollbackFailed   State = "rollback_failed"
	Rejected         State = "rejected"
	Cancelled        State = "cancelled"
	Failed           State = "failed"
)

// Event is what moves a change.
type Event string

const (
	Accepted  Event = "accepted"   // the request is well-formed and the repository fit
	Prepared  Event = "prepared"   // base kept, workspace there
	Computed  Event = "computed"   // a revert's tree was computed; no agent works on it
	Ended     Event = "ended"      // the agent ended and its last checkpoint is recorded
	Unchanged Event = "unchanged"  // the agent ended and nothing differs from the base; checks, if there are any, passed there
	Proposed  Event = "proposed"   // rules and checks passed; a person is asked
	Approved  Event = "approved"   // an entitled person said yes to exactly this digest
	Asked     Event = "asked"      // what the approval was bound to changed: asked again
	Held      Event = "held"       // landing was refused and nothing moved: back to the person
	Landed    Event = "landed"     // branch, index and work tree hold it, verified
	Undone    Event = "undone"     // landing failed half-way and was taken back, verified
	Stuck     Event = "stuck"      // landing failed and could not be taken back
	Tried     Event = "tried"      // it has landed, and is on trial
	Kept      Event = "kept"       // confirmed, or it answers and nobody was to be asked
	TakenBack Event = "taken back" // the trial went against it: the old files are back and the old version answers
	GivenUp   Event = "given up"   // a person leaves what could not be taken back as it stands
	Reverted  Event = "reverted"   // a revert of this change was finalized
	Refused   Event = "refused"    // a person said no
	Cancel    Event = "cancel"     // a person withdrew it
	Pause     Event = "paused"     // a person stopped the agent where it stands
	Block     Event = "blocked"    // the host stopped it: it needs a person (SV-091)
	Resume    Event = "resumed"    // a person lets it go on
	Returned  Event = "returned"   // a check refused what an agent has proposed: it goes on, and proposes again
	Reworked  Event = "reworked"   // a person who is asked wants something else in it: its agent hears their words, goes on, and proposes again
	Again     Event = "again"      // a person has an ended session resumed (RM-025), or a change made anew on its branch as it is now
	Fail      Event = "fail"       // agent, rule, check or machine; the reason says which
)

// moves is the whole machine. A pair that is not here cannot happen.
var moves = map[State]map[Event]State{
	Requested:        {Accepted: Preparing, Cancel: Cancelled, Fail: Failed},
	Preparing:        {Prepared: Working, Computed: Submitted, Cancel: Cancelled, Fail: Failed},
	Working:          {Pause: Paused, Block: Blocked, Ended: Submitted, Unchanged: Finalized, Cancel: Cancelled, Fail: Failed},
	Paused:           {Resume: Working, Block: Blocked, Cancel: Cancelled, Fail: Failed},
	Blocked:          {Resume: Working, Cancel: Cancelled, Fail: Failed},
	Submitted:        {Proposed: AwaitingApproval, Returned: Working, Unchanged: Finalized, Cancel: Cancelled, Fail: Failed},
	AwaitingApproval: {Approved: Landing, Asked: AwaitingApproval, Again: Preparing, Reworked: Working, Refused: Rejected, Cancel: Cancelled},
	Landing: {Landed: Finalized, Tried: InTrial, Asked: AwaitingApproval, Held: AwaitingApproval, Undone: AwaitingApproval,
		Stuck: RollbackFailed, Cancel: Cancelled, Fail: Failed},
	InTrial:        {Kept: Finalized, TakenBack: RolledBack, Stuck: RollbackFailed},
	RollbackFailed: {Undone: AwaitingApproval, Landed: Finalized, Tried: InTrial, Kept: Finalized, TakenBack: RolledBack, GivenUp: Failed},
	Finalized:      {Reverted: RolledBack},
	RolledBack:     {},
	Rejected:       {Again: Preparing},
	Cancelled:      {Again: Preparing},
	Failed:         {Again: Preparing},
}

// Next returns the state after e, or an error wrapping ErrMoved and naming both.
func (s State) Next(e Event) (State, error) {
	to, ok := moves[s][e]
	if !ok {
		return s, fmt.Errorf("%s cannot follow %s: %w", e, s, ErrMoved)
	}
	return to, nil
}

// Words are how a state is said to people, after "it is".
func (s State) Words() string {
	switch s {
	case AwaitingApproval:
		return "waiting for approval"
	case InTrial:
		return "on trial"
	case RollbackFailed:
		return "in a rollback that failed"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

// Final reports whether nothing more happens by itself or by approval.
func (s State) Final() bool {
	switch s {
	case Finalized, RolledBack, Rejected, Cancelled, Failed:
		return true
	}
	return false
}

// States are all that a change can be in.
func States() []State { return slices.Sorted(maps.Keys(moves)) }

// Open are the states in which a change has not come to its end.
func Open() (open []State) {
	for _, state := range States() {
		if !state.Final() {
			open = append(open, state)
		}
	}
	return open
}

// WithAgent reports whether a change in this state is with its agent: that works, is about to, or stands still in the middle of it.
func (s State) WithAgent() bool {
	switch s {
	case Requested, Preparing, Working, Paused, Blocked:
		return true
	}
	return false
}

// Due reports whether the reconciler has something to do for a change in this state.
func (s State) Due() bool {
	switch s {
	case Requested, Preparing, Working, Submitted, Landing, InTrial, RollbackFailed:
		return true
	}
	return false
}

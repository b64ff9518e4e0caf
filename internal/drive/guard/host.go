package guard

import (
	"context"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/code"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
)

// Host is the host itself as its keeper has it: the keeper restarts it on what has landed, judges the new one, and has the old one back.
type Host interface {
	// Judges returns nil if a keeper has this home and can judge a trial of the host; else why not, and what to do about it.
	Judges() error
	// Record is what the keeper goes by; false if no change of the host is under way.
	Record() (keeper.Record, bool, error)
	// Code is what a trial of the host will be confirmed with. It waits until the person who approved the change has it. Errors: refused if
	// this daemon has made none since it started, or could not give it to them.
	Code(ctx context.Context, of id.Change) (code.Hash, error)
	// Arm makes sure that there is a way back before anything moves. Arming again replaces what was armed and not handed over.
	Arm(ctx context.Context, c HostChange) error
	// Disarm takes that back: nothing was handed over, and nothing has to go back. Disarming what is not armed does nothing.
	Disarm(of id.Change) error
	// HandOver has the keeper start the new host in the place of this one. It returns nil once the keeper has taken over; this daemon ends then.
	HandOver(ctx context.Context, of id.Change) error
	// Asked says that message 1 was delivered: the person has two minutes from now on.
	Asked(ctx context.Context, of id.Change) error
	// Confirm has the keeper keep the new host, if that is the code. Errors: keeper.ErrCode, in a problem that says how many tries are left.
	Confirm(ctx context.Context, of id.Change, code string, by audit.Actor) error
	// RollBack has the keeper bring the old host back; it ends this daemon.
	RollBack(ctx context.Context, of id.Change, why string, by audit.Actor) error
	// Finalized says that the row says so too.
	Finalized(ctx context.Context, of id.Change) error
}

// HostChange is what is to go on trial as the host.
type HostChange struct {
	Change  id.Change
	Code    code.Hash
	Release string        // digest of the release that it runs by; "" = the current one goes on
	Slack   time.Duration // that it may take longer to be ready than a host otherwise may
}

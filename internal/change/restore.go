package change

import (
	"context"

	"sallyport/internal/audit"
	"sallyport/internal/checkpoint"
	"sallyport/internal/id"
	"sallyport/internal/problem"
	"sallyport/internal/session"
	"sallyport/internal/store"
)

var errNotYet = problem.New(problem.Internal, "not yet")

// Tell hands a person's words to a running agent.
func (c *Controller) Tell(context.Context, id.Change, audit.Actor, string) (session.Delivery, error) {
	return session.Delivery{}, errNotYet
}

// RestoreTo makes an unlanded change's tree that of one of its checkpoints.
func (c *Controller) RestoreTo(context.Context, id.Checkpoint, audit.Actor) (checkpoint.Checkpoint, error) {
	return checkpoint.Checkpoint{}, errNotYet
}

// PutBack returns files of a working change to its last valid checkpoint.
func (c *Controller) PutBack(context.Context, id.Change, audit.Actor, []string, bool) (PutBack, error) {
	return PutBack{}, errNotYet
}

// ResumeSession lets the agent of a session go on.
func (c *Controller) ResumeSession(context.Context, id.Session, audit.Actor) (store.Change, error) {
	return store.Change{}, errNotYet
}

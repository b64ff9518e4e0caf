package control

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/checkpoint"
)

// Notebook keeps a copy, for people to read, of what the database holds of a change (SV-041).
type Notebook interface {
	// Write replaces the notes of a change, whole or not at all. A mode that a person wrote there stays.
	Write(ctx context.Context, change id.Change, checkpoints []checkpoint.Checkpoint) error
	// Deterministic reports whether the notes ask for that execution mode; false without notes.
	Deterministic(ctx context.Context, change id.Change) (bool, error)
}

// note writes a change's checkpoints to its notes. They are a copy: what cannot be written is said
// and written with the next checkpoint.
func (c *Controller) note(ctx context.Context, change id.Change) {
	all, err := c.Checkpoints(ctx, change)
	if err == nil {
		err = c.Notebook.Write(ctx, change, all)
	}
	if err != nil {
		c.Log.Warn("the state.md of a change was not written; the next checkpoint tries again", "change", change, "error", err)
	}
}

// mayResume refuses a mode that a person wrote into the notes and that a plain command cannot have (SV-001, SV-002).
func (c *Controller) mayResume(ctx context.Context, change id.Change) error {
	deterministic, err := c.Notebook.Deterministic(ctx, change)
	if err != nil {
		return err
	}
	if deterministic {
		return problem.Errorf(problem.Usage, "sallyport change show "+string(change),
			"the state.md of %s says execution_mode: deterministic, which its agent, a plain command, cannot do: remove that line", change)
	}
	return nil
}

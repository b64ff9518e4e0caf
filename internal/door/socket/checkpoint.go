package socket

import (
	"context"
	"io"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/path/checkpoint"
)

// Checkpoints are those of changes.
type Checkpoints interface {
	Checkpoints(ctx context.Context, change id.Change) ([]checkpoint.Checkpoint, error)
	Checkpoint(ctx context.Context, ref id.Checkpoint) (checkpoint.Checkpoint, error)
	// CheckpointDiff writes the unified diff between two checkpoints of one change; from "" is its base.
	CheckpointDiff(ctx context.Context, from, to id.Checkpoint, w io.Writer) error
	// CheckpointExport writes what a checkpoint differs in from its base, as a patch with binary data that `git apply` takes.
	CheckpointExport(ctx context.Context, ref id.Checkpoint, w io.Writer) error
	// RestoreTo makes an unlanded change's tree that of one of its checkpoints, byte for byte (SV-048). What stood
	// there is a checkpoint before it goes. It returns the checkpoint that was taken after it.
	RestoreTo(ctx context.Context, ref id.Checkpoint, by audit.Actor) (checkpoint.Checkpoint, error)
}

// checkpoints answers what was recorded of changes.
type checkpoints struct {
	part Checkpoints
	host Host // keeps what is exported
}

func (n checkpoints) list(ctx context.Context, _ audit.Actor, of string) ([]api.Checkpoint, error) {
	rows, err := n.part.Checkpoints(ctx, id.Change(of))
	return each(rows, checkpointOf), err
}

func (n checkpoints) show(ctx context.Context, _ audit.Actor, ref string) (api.Checkpoint, error) {
	c, err := n.part.Checkpoint(ctx, id.Checkpoint(ref))
	return checkpointOf(c), err
}

func (n checkpoints) diff(ctx context.Context, in api.Between, out io.Writer) error {
	return n.part.CheckpointDiff(ctx, id.Checkpoint(in.From), id.Checkpoint(in.Of), out)
}

func (n checkpoints) export(ctx context.Context, _ audit.Actor, ref string) (out api.Exported, err error) {
	c, err := n.part.Checkpoint(ctx, id.Checkpoint(ref))
	if err != nil {
		return out, err
	}
	file, err := n.host.Keep(ctx, c.Change, c.ID, func(w io.Writer) error {
		return n.part.CheckpointExport(ctx, c.ID, w)
	})
	return api.Exported{Path: text(file)}, err
}

func (n checkpoints) restore(ctx context.Context, by audit.Actor, ref string) (api.Checkpoint, error) {
	c, err := n.part.RestoreTo(ctx, id.Checkpoint(ref), by)
	return checkpointOf(c), err
}

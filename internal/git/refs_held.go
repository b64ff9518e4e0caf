package git

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// UpdateRefHeld moves ref from old to to, compare and set, with a line for the reflog, while the process
// holds the open file held, too. A flock on it thus lasts until git has ended, even if we die first.
func (d Dir) UpdateRefHeld(ctx context.Context, op, ref string, to, old OID, message string, held *os.File) error {
	_, err := d.Do(ctx, op, Cmd{Args: []string{"update-ref", "--no-deref", "-m", message, ref, string(to), string(old)}, Stdin: held, Short: true})
	if err != nil {
		return fmt.Errorf("move %s to %.12s: %w", ref, to, err)
	}
	return nil
}

// Contains reports whether commit is tip or one of its ancestors.
func (d Dir) Contains(ctx context.Context, tip, commit OID) (bool, error) {
	_, err := d.Run(ctx, Cmd{Args: []string{"merge-base", "--is-ancestor", string(commit), string(tip)}})
	var f *Failure
	if errors.As(err, &f) && f.Code == 1 {
		return false, nil
	}
	return err == nil, err
}

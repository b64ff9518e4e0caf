package git

import (
	"context"
	"errors"
)

// Contains reports whether commit is tip or one of its ancestors.
func (d Dir) Contains(ctx context.Context, tip, commit OID) (bool, error) {
	_, err := d.Run(ctx, Cmd{Args: []string{"merge-base", "--is-ancestor", string(commit), string(tip)}})
	var f *Failure
	if errors.As(err, &f) && f.Code == 1 {
		return false, nil
	}
	return err == nil, err
}

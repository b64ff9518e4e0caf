package git

import (
	"context"
	"errors"
	"strings"
)

// LastChange returns the newest commit up to tip that changed one of the paths; "" if none did.
func (d Dir) LastChange(ctx context.Context, tip OID, paths []string) (OID, error) {
	out, err := d.Run(ctx, Cmd{Args: append([]string{"rev-list", "--max-count=1", string(tip), "--"}, paths...)})
	return OID(strings.TrimSpace(string(out))), err
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

// LastAdded returns the newest commit, from tip along first parents, in which a path came to be; "" if it did in none.
func LastAdded(ctx context.Context, d Dir, tip OID, path string) (OID, error) {
	out, err := d.Run(ctx, Cmd{Args: []string{
		"log", "--first-parent", "--no-renames", "--diff-filter=A", "--no-show-signature", "--max-count=1", "--format=%H", string(tip), "--", path,
	}})
	return OID(strings.TrimSpace(string(out))), err
}

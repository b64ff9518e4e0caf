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

// Contains reports whether commit is tip or one of its ancestors. One that git has forgotten is neither; a tip that is not there is an error.
func (d Dir) Contains(ctx context.Context, tip, commit OID) (bool, error) {
	_, err := d.Run(ctx, Cmd{Args: []string{"merge-base", "--is-ancestor", string(commit), string(tip)}})
	var f *Failure
	switch {
	case !errors.As(err, &f):
		return err == nil, err
	case f.Code == 1:
		return false, nil
	}
	// A no is what a whole walk says: an object that is missing may be one of those between.
	if known, e := d.Resolve(ctx, string(commit)); e != nil || known != "" {
		return false, errors.Join(err, e)
	}
	all, e := d.Run(ctx, Cmd{Args: []string{"rev-list", string(tip), "--"}})
	if e != nil {
		return false, errors.Join(err, e)
	}
	return strings.Contains("\n"+string(all), "\n"+string(commit)+"\n"), nil
}

// reverts are the words of a commit that takes another back, as git, we and the forges write them; a line of it is enough.
const reverts = `this reverts|^reverts? `

// Follows reports whether tip is commit, or a descendant of it since which no commit says in such words that it reverts something. One
// that git has forgotten is followed by none; a tip that is not there is an error.
func Follows(ctx context.Context, d Dir, tip, commit OID) (bool, error) {
	if tip == commit {
		return true, nil
	}
	if known, err := d.Resolve(ctx, string(commit)); err != nil || known == "" {
		return false, err
	}
	if has, err := d.Contains(ctx, tip, commit); err != nil || !has {
		return false, err
	}
	undone, err := d.Run(ctx, Cmd{Args: []string{
		"log", "--max-count=1", "--no-show-signature", "--regexp-ignore-case", "--extended-regexp", "--grep=" + reverts, "--format=%H", string(commit) + ".." + string(tip), "--",
	}})
	return err == nil && len(undone) == 0, err
}

// LastAdded returns the newest commit, from tip along first parents, in which a path came to be; "" if it did in none.
func LastAdded(ctx context.Context, d Dir, tip OID, path string) (OID, error) {
	out, err := d.Run(ctx, Cmd{Args: []string{
		"log", "--first-parent", "--no-renames", "--diff-filter=A", "--no-show-signature", "--max-count=1", "--format=%H", string(tip), "--", path,
	}})
	return OID(strings.TrimSpace(string(out))), err
}

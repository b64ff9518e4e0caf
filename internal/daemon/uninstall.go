package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/host/storage"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox/bwrap"
	"sallyport/internal/rule/config"
	"sallyport/internal/store/sqlite"
)

// Uninstall finds what a home's sallyport has left, shows it to agree, and removes it if that says so: in the repository whose work
// tree is at repo, or, with "", in every one and on the machine. The home's daemon must have been stopped; while this runs none can start.
// Doing it twice is doing it once.
//
// Errors: problem.Conflict if a change is open, or if a daemon serves the home.
func Uninstall(ctx context.Context, o Options, repo string, agree func(api.Uninstall) (bool, error)) (api.Uninstall, error) {
	out := api.Uninstall{Home: o.Home, Pieces: []api.Piece{}, Stays: []string{}, Unlanded: []string{}}
	state := filepath.Join(o.Home, ".state")
	at, folder, err := beneath.PlaceOf(state)
	if err != nil {
		return out, err
	}
	if !folder && at.Path != "" || folder && int(at.UID) != os.Geteuid() {
		return out, problem.Errorf(problem.Refused, "ls -ld "+inert.Path(state), "%q does not belong to you: a home is removed by the user who made it", state)
	}
	var left storage.Leaving
	closeDB := func() {}
	if folder {
		held, err := lock.Folder(state)
		if errors.Is(err, lock.ErrHeld) {
			return out, problem.Errorf(problem.Conflict, "sallyport daemon stop --home "+inert.Path(o.Home), "a daemon serves the home %q: %w", o.Home, err)
		}
		if err != nil {
			return out, err
		}
		defer held.Close()
		var done func()
		if left, done, err = o.leaving(ctx, state, repo); err != nil {
			return out, err
		}
		defer done()
		closeDB = done
	}
	var home []storage.Piece
	if repo == "" {
		var stays []string
		if home, stays, err = o.homeLeaves(ctx); err != nil {
			return out, err
		}
		left.Stays = append(left.Stays, stays...)
	}
	for _, p := range slices.Concat(left.Pieces, home) {
		out.Pieces = append(out.Pieces, api.Piece{What: p.What, Path: p.Path, Bytes: p.Bytes})
	}
	for _, c := range left.Unlanded {
		out.Unlanded = append(out.Unlanded, string(c))
	}
	out.Stays = append(out.Stays, left.Stays...)
	yes, err := agree(out)
	if err != nil || !yes {
		return out, err
	}
	if err := removeAll(ctx, left.Pieces); err != nil {
		return out, err
	}
	closeDB() // it goes with the home
	if err := removeAll(ctx, home); err != nil {
		return out, err
	}
	out.Removed = true
	return out, nil
}

func removeAll(ctx context.Context, pieces []storage.Piece) error {
	for _, p := range pieces {
		if err := p.Remove(ctx); err != nil {
			return fmt.Errorf("remove the %s %q: %w", p.What, p.Path, err)
		}
	}
	return nil
}

// leaving finds what the rows of a home tell of: in repositories, and on the machine outside the home's folder. done closes what
// the pieces need.
func (o Options) leaving(ctx context.Context, state, repo string) (left storage.Leaving, done func(), err error) {
	file := filepath.Join(state, "sallyport.db")
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) { // it was never served, or half of it is gone already
		return storage.Leaving{}, func() {}, nil
	}
	db, err := sqlite.Open(ctx, file, o.Ops)
	if err != nil {
		return left, nil, fmt.Errorf("open the database of %q: %w", o.Home, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	by := audit.Actor{Kind: "person", Name: loginName(os.Geteuid()), UID: os.Geteuid()}
	d := &Daemon{Options: o, log: slog.New(slog.DiscardHandler), db: db}
	d.spaces = workspace.New(workspace.Config{Root: state, Ops: o.Ops})
	d.sandbox = bwrap.New(bwrap.Config{Root: state, Ops: o.Ops})
	owner, err := d.ensureOwner(ctx)
	if err != nil {
		return left, nil, err
	}
	if err := owner.MayDecide(by); err != nil {
		return left, nil, err
	}
	steward := storage.New(d.storageParts(owner, state))
	top := ""
	if repo != "" {
		p, err := git.Open(ctx, repo)
		if err != nil {
			return left, nil, err
		}
		top = p.Top
	}
	if left, err = steward.Leave(ctx, top, by); err != nil {
		return left, nil, err
	}
	if repo == "" {
		left.Pieces = append(left.Pieces, steward.Machine(ctx)...)
	}
	return left, func() { _ = db.Close() }, nil // what was written is in its files
}

// homeLeaves finds what sallyport made in a home's folder. A file that a person has changed stays, and with it the repository that
// tracks it; the folder goes if nothing is left in it.
func (o Options) homeLeaves(ctx context.Context) (pieces []storage.Piece, stays []string, err error) {
	entries, err := os.ReadDir(o.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unwritable(o.Home, err)
	}
	untouched := o.untouched(ctx)
	made := map[string]string{}
	for _, f := range config.NewHome() {
		made[f.Name] = f.Text
		if text, ok := o.committed(ctx, f.Name); untouched && ok {
			made[f.Name] = text // an earlier build began a home with other words
		}
	}
	asMade := true // every file that a home begins with is as it was, or gone
	for _, e := range entries {
		at, folder, err := beneath.PlaceOf(filepath.Join(o.Home, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		text, ours := made[e.Name()]
		if !ours || folder || at.Path == "" {
			continue
		}
		regular := e.Type().IsRegular() // a link is a person's
		var raw []byte
		if regular {
			raw, err = os.ReadFile(at.Path)
		}
		if err != nil || !regular || string(raw) != text {
			asMade = false
			stays = append(stays, fmt.Sprintf("%q stays: it is not as sallyport made it", at.Path))
			continue
		}
		pieces = append(pieces, o.file("uninstall:file", at))
	}
	for _, e := range entries {
		name := e.Name()
		at, folder, err := beneath.PlaceOf(filepath.Join(o.Home, name))
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !folder || int(at.UID) != os.Geteuid():
		case name == ".state", name == ".new-.state", name == ".new-.git":
			size, err := beneath.Allocated(ctx, at.Path)
			if err != nil {
				return nil, nil, err
			}
			pieces = append(pieces, storage.Piece{What: "folder", Path: at.Path, Bytes: size, Remove: func(context.Context) error { return o.Ops.Do("uninstall:state", at.Remove) }})
			continue
		case name == ".git":
			if asMade && untouched {
				pieces = append(pieces, storage.Piece{What: "folder", Path: at.Path, Remove: func(context.Context) error { return o.Ops.Do("uninstall:repository", at.Remove) }})
			} else if !asMade {
				stays = append(stays, fmt.Sprintf("%q stays: it tracks what a person has changed", at.Path))
			} else {
				stays = append(stays, fmt.Sprintf("%q stays: it holds more than sallyport put there", at.Path))
			}
			continue
		}
		if _, ours := made[name]; !ours {
			stays = append(stays, fmt.Sprintf("%q stays: sallyport did not make it", at.Path))
		}
	}
	if len(stays) == 0 {
		pieces = append(pieces, o.homeItself())
	}
	return pieces, stays, nil
}

// homeItself is the home's folder, which goes once it is empty.
func (o Options) homeItself() storage.Piece {
	remove := func() error {
		if err := os.Remove(o.Home); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return storage.Piece{What: "folder", Path: o.Home, Remove: func(context.Context) error { return o.Ops.Do("uninstall:home", remove) }}
}

func (o Options) file(op string, at beneath.Place) storage.Piece {
	return storage.Piece{What: "file", Path: at.Path, Remove: func(context.Context) error { return o.Ops.Do(op, at.Unlink) }}
}

// untouched reports whether the home's own repository holds the one commit that it was made with and no other ref.
func (o Options) untouched(ctx context.Context) bool {
	repo := git.Dir{Path: filepath.Join(o.Home, ".git"), Ops: o.Ops}
	refs, err := repo.Refs(ctx, "refs/")
	if err != nil || len(refs) != 1 || refs["refs/heads/main"] == "" {
		return false
	}
	out, err := repo.Run(ctx, git.Cmd{Args: []string{"rev-list", "--count", "--all"}})
	return err == nil && strings.TrimSpace(string(out)) == "1"
}

// committed is a file as the home's own repository has it.
func (o Options) committed(ctx context.Context, name string) (string, bool) {
	repo := git.Dir{Path: filepath.Join(o.Home, ".git"), Ops: o.Ops}
	out, err := repo.Run(ctx, git.Cmd{Args: []string{"cat-file", "blob", "refs/heads/main:" + name}})
	return string(out), err == nil
}

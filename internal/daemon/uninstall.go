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
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/group"
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
	if by, _, err = d.Recognize(ctx, by); err != nil {
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
		pieces, err := steward.Machine(ctx)
		if err != nil {
			return left, nil, err
		}
		left.Pieces = append(left.Pieces, pieces...)
	}
	return left, func() { _ = db.Close() }, nil // what was written is in its files
}

// homeLeaves finds what sallyport made in a home's folder. A file that a person has changed stays, and with it the repository that
// tracks it and all that it tracks: so a home is left that sallyport can begin on again. A folder goes if nothing is left in it.
func (o Options) homeLeaves(ctx context.Context) (pieces []storage.Piece, stays []string, err error) {
	if _, err := os.ReadDir(o.Home); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, unwritable(o.Home, err)
	}
	made, err := o.made(ctx)
	if err != nil {
		return nil, nil, err
	}
	l := leaves{Options: o, made: made, whole: true}
	if err := l.folder(""); err != nil {
		return nil, nil, err
	}
	tracked := l.pieces
	l.pieces, l.changed = nil, !l.whole || !l.untouched(ctx)
	keeps, err := l.own(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !keeps {
		l.pieces = append(tracked, l.pieces...)
	}
	if len(l.stays) == 0 {
		l.pieces = append(l.pieces, o.emptied("uninstall:home", o.Home))
	}
	return l.pieces, l.stays, nil
}

// made are the files that a home begins with, as they were made, and the folders that they are in.
func (o Options) made(ctx context.Context) (map[string]string, error) {
	files, err := group.NewHome([]group.Beginning{{Folder: group.First}})
	if err != nil {
		return nil, err
	}
	untouched, made := o.untouched(ctx), map[string]string{}
	for _, f := range files {
		made[f.Name] = f.Text
		if text, ok := o.committed(ctx, f.Name); untouched && ok {
			made[f.Name] = text // an earlier build began a home with other words
		}
		for up := filepath.Dir(f.Name); up != "."; up = filepath.Dir(up) {
			made[up+"/"] = ""
		}
	}
	return made, nil
}

// leaves gathers what of a home's folder goes, and what stays.
type leaves struct {
	Options
	made    map[string]string
	whole   bool // every file that a home begins with is as it was, or gone
	changed bool // the home's repository holds what a person has changed
	pieces  []storage.Piece
	stays   []string
}

// folder looks through a folder that sallyport made, and the folders of that kind in it. What is the host's alone at the top is own's.
func (l *leaves) folder(in string) error {
	entries, err := os.ReadDir(filepath.Join(l.Home, in))
	if err != nil {
		return unwritable(l.Home, err)
	}
	for _, e := range entries {
		name := filepath.Join(in, e.Name())
		at, folder, err := beneath.PlaceOf(filepath.Join(l.Home, name))
		if err != nil {
			return err
		}
		_, file := l.made[name]
		_, holds := l.made[name+"/"]
		switch {
		case at.Path == "": // it has gone meanwhile
		case holds && folder:
			pieces, stays := len(l.pieces), len(l.stays)
			if err := l.folder(name); err != nil {
				return err
			}
			if len(l.stays) == stays { // all that is in it goes, and it is told as one
				all := append(slices.Clone(l.pieces[pieces:]), l.emptied("uninstall:folder", at.Path))
				l.pieces = append(l.pieces[:pieces],
					storage.Piece{What: "folder", Path: at.Path, Remove: func(ctx context.Context) error { return removeAll(ctx, all) }})
			}
		case file && !folder:
			if err := l.file(name, at, e.Type().IsRegular()); err != nil {
				return err
			}
		case in == "" && slices.Contains(hostsOwn, name) && folder && int(at.UID) == os.Geteuid():
		default:
			why := "sallyport did not make it"
			if in == "groups" {
				why = "it is not a group that a home begins with"
			}
			l.stays = append(l.stays, fmt.Sprintf("%q stays: %s", at.Path, why))
		}
	}
	return nil
}

// file looks at a file that a home begins with; a link is a person's.
func (l *leaves) file(name string, at beneath.Place, regular bool) error {
	var raw []byte
	var err error
	if regular {
		raw, err = os.ReadFile(at.Path)
	}
	if err != nil || !regular || string(raw) != l.made[name] {
		l.whole = false
		l.stays = append(l.stays, fmt.Sprintf("%q stays: it is not as sallyport made it", at.Path))
		return nil
	}
	l.pieces = append(l.pieces, l.Options.file("uninstall:file", at))
	return nil
}

// hostsOwn are the folders at the top of a home that are the host's alone.
var hostsOwn = []string{".state", ".new-.state", ".git", ".new-.git"}

// own looks at the folders that are the host's alone. The repository goes if it holds nothing but what the home began with; keeps
// says that it does not.
func (l *leaves) own(ctx context.Context) (keeps bool, err error) {
	for _, name := range hostsOwn {
		at, folder, err := beneath.PlaceOf(filepath.Join(l.Home, name))
		if err != nil {
			return false, err
		}
		switch {
		case !folder || int(at.UID) != os.Geteuid():
		case name != ".git":
			size, err := beneath.Allocated(ctx, at.Path)
			if err != nil {
				return false, err
			}
			l.pieces = append(l.pieces, storage.Piece{What: "folder", Path: at.Path, Bytes: size,
				Remove: func(context.Context) error { return l.Ops.Do("uninstall:state", at.Remove) }})
		case l.changed:
			keeps = true
			l.stays = append(l.stays, fmt.Sprintf("%q stays, with all that it tracks: a person has changed some of that", at.Path))
		default:
			l.pieces = append(l.pieces, storage.Piece{What: "folder", Path: at.Path,
				Remove: func(context.Context) error { return l.Ops.Do("uninstall:repository", at.Remove) }})
		}
	}
	return keeps, nil
}

// emptied is a folder which goes once it is empty.
func (o Options) emptied(op, path string) storage.Piece {
	remove := func() error {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return storage.Piece{What: "folder", Path: path, Remove: func(context.Context) error { return o.Ops.Do(op, remove) }}
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

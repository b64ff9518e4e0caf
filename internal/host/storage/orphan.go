package storage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/leftover"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/whole"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/repository"
	"sallyport/internal/store"
)

// Begin removes what a crash left half made, before anything has begun. It is called by whoever holds the home. A folder in its state
// is moved aside, however much is in it: a steward removes it when there is time.
func Begin(ctx context.Context, ops disk.Ops, state string, parts ...leftover.Part) error {
	for _, part := range parts {
		items, err := part.Left(ctx)
		if err != nil {
			return fmt.Errorf("find what the last daemon left: %w", err)
		}
		for _, it := range items {
			if it.Goes != leftover.AtStart {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if it.Folder() && strings.HasPrefix(it.Path, state+"/") {
				err = setAside(ops, state, it.Path)
			} else {
				_, err = it.Remove(ctx)
			}
			if err != nil {
				return fmt.Errorf("clear up after the last daemon: %w", err)
			}
		}
	}
	return nil
}

func setAside(ops disk.Ops, state, path string) error {
	gone := filepath.Join(state, "gone")
	if err := whole.MakeFolder(ops, gone); err != nil {
		return err
	}
	return ops.Do("sweep:aside", func() error {
		room, err := os.MkdirTemp(gone, "")
		if err != nil {
			return err
		}
		return os.Rename(path, filepath.Join(room, "it"))
	})
}

// leftovers are what every part has left. One part that cannot tell is no reason not to ask the others.
func (r *round) leftovers(ctx context.Context) error {
	var errs []error
	for _, left := range []func(context.Context) ([]leftover.Item, error){r.mounts, r.partsLeft, r.allDesks, r.locks, r.halfMade, r.sockets} {
		items, err := left(ctx)
		errs = append(errs, err)
		for _, it := range items {
			if it.Goes == leftover.AtStart {
				continue // somebody may be at work on it
			}
			if it.Stays != "" {
				r.note("%q stays: %s", it.Path, it.Stays)
				continue
			}
			t := thing{kind: Orphans, goes: it.Goes == leftover.AtOnce || r.abandoned(it.At), remove: func() (bool, error) { return it.Remove(ctx) }}
			if it.Ino != 0 {
				t.path = it.Path
			}
			if err := r.count(ctx, t); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

// partsLeft are what those parts tell that know neither rows nor other homes.
func (s *Steward) partsLeft(ctx context.Context) (all []leftover.Item, err error) {
	for _, part := range s.Left {
		items, failed := part.Left(ctx)
		all, err = append(all, items...), errors.Join(err, failed)
	}
	return all, err
}

// mounts are overlays of this home's workspaces that are mounted where this process sees them. A sandbox mounts in a
// namespace of its own, so nobody works on these. What a person has mounted there, such as a disk for the layers, is none.
func (r *round) mounts(context.Context) ([]leftover.Item, error) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	defer table.Close() // read only
	var all []leftover.Item
	for lines := bufio.NewScanner(table); lines.Scan(); {
		at, ok := overlayOf(r.State, lines.Text())
		if !ok {
			continue
		}
		all = append(all, leftover.Item{Place: beneath.Place{Path: at}, What: "mount", Goes: leftover.AtOnce, Remove: func(context.Context) (bool, error) {
			return true, r.Ops.Do("sweep:mount", func() error { return unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
		}})
	}
	return all, nil
}

// overlayOf returns where a line of mountinfo has an overlay whose upper folder and mount point are in a home's state.
func overlayOf(state, line string) (string, bool) {
	before, after, ok := strings.Cut(line, " - ")
	fields, kind := strings.Fields(before), strings.Fields(after)
	if !ok || len(fields) < 5 || len(kind) < 3 || kind[0] != "overlay" {
		return "", false
	}
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
	at := plain(fields[4])
	if !strings.HasPrefix(at, state+"/") {
		return "", false
	}
	for option := range strings.SplitSeq(kind[2], ",") {
		if upper, is := strings.CutPrefix(option, "upperdir="); is && strings.HasPrefix(plain(upper), state+"/workspaces/") {
			return at, true
		}
	}
	return "", false
}

func (r *round) allDesks(ctx context.Context) (all []leftover.Item, err error) {
	for _, p := range r.projects() {
		items, failed := r.desks(ctx, p)
		all, err = append(all, items...), errors.Join(err, failed)
	}
	return all, err
}

// desks of landings in a project whose rows are closed, and objects of landings that were killed. A person's own bytes stay, and so does
// a landing that this home does not know.
func (r *round) desks(ctx context.Context, p git.Project) ([]leftover.Item, error) {
	there, err := landing.Desks(p)
	if err != nil {
		return nil, nil // the repository is gone, or closed to us
	}
	var all []leftover.Item
	for _, d := range there {
		var l landing.Landing
		known := false
		err := r.DB.Read(ctx, func(tx store.Tx) (err error) { l, known, err = tx.Landing(ctx, d.Landing); return err })
		if err != nil {
			return nil, err
		}
		it := leftover.Item{Place: d.Place, What: "desk", Goes: leftover.InTime}
		switch {
		case d.Aside:
			it.What = "objects"
			it.Remove = func(ctx context.Context) (bool, error) {
				err := r.Lander.ClearAside(ctx, p)
				return err == nil, err
			}
		case d.Kept:
			it.Stays = "it holds your own version of a file"
		case !known:
			it.Stays = "no landing of this home has that id"
		case l.Unfinished():
			continue
		default:
			it.Remove = func(ctx context.Context) (bool, error) {
				left, err := r.Lander.Clear(ctx, l)
				r.notes = append(r.notes, left...)
				return err == nil, err
			}
		}
		all = append(all, it)
	}
	return all, nil
}

// locks are what a killed git has left: locks and temporary files in the host's own repositories, where nobody but this home's
// git works, and locks below our refs in a project.
func (r *round) locks(context.Context) ([]leftover.Item, error) {
	hosts, err := r.Workspaces.Repositories.All()
	if err != nil {
		return nil, fmt.Errorf("read the host's repositories: %w", err)
	}
	var all []leftover.Item
	add := func(found []beneath.Place, err error) {
		if err != nil {
			return // it is closed to us, or a link: not ours
		}
		for _, at := range found {
			all = append(all, leftover.At(at, leftover.InTime, r.Ops, "sweep:git"))
		}
	}
	for _, host := range hosts {
		add(repository.Leavings(host))
	}
	for c, row := range r.changes {
		if row.Request.Project.GitDir != "" {
			add(repository.Locks(filepath.Join(row.Request.Project.CommonDir, repository.RefRoot(c))))
		}
	}
	return all, nil
}

// halfMade are files and folders under the names that this home writes aside with; the start clears most of them.
func (r *round) halfMade(ctx context.Context) ([]leftover.Item, error) {
	names := leftover.Names{Folder: r.State, Goes: leftover.InTime, Ops: r.Ops, Op: "sweep:aside"}
	for _, in := range []string{"", "sessions/", "changes/", "logs/", "deadman/", store.BackupsFolder + "/"} {
		names.Patterns = append(names.Patterns, in+".new-*", in+"*.new", in+"*.part")
	}
	all, err := names.Left(ctx)
	return slices.DeleteFunc(all, func(it leftover.Item) bool { return int(it.UID) != os.Geteuid() }), err
}

// aside reports whether a name is one under which something is written before it is renamed.
func aside(name string) bool {
	return strings.HasPrefix(name, ".new-") || strings.HasSuffix(name, ".new") || strings.HasSuffix(name, ".part")
}

// keepers are the records of open landings, and the logs of keepers that fired; those go some time after their record.
func (r *round) keepers(ctx context.Context) error {
	folder := filepath.Join(r.State, "deadman")
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the records of keepers: %w", err)
	}
	for _, e := range entries {
		if aside(e.Name()) {
			continue
		}
		ext := filepath.Ext(e.Name())
		log := ext == ".log" || ext == ".out"
		at, _, _ := beneath.PlaceOf(filepath.Join(folder, e.Name()))
		if at.Mode&unix.S_IFMT != unix.S_IFREG { // nor what is gone meanwhile, or closed to us
			continue
		}
		_, err = os.Lstat(strings.TrimSuffix(at.Path, ext) + ".json")
		err = r.count(ctx, thing{
			kind: Logs, path: at.Path, goes: log && errors.Is(err, fs.ErrNotExist) && r.now.Sub(at.At) >= r.Retention.Transcripts,
			remove: func() (bool, error) { return true, r.Ops.Do("sweep:keeper", at.Unlink) },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var socketFolder = pattern.Of(`^[0-9a-f]{12}$`)

// sockets are the folders of daemons that are gone, of this home or of another of the same user: they hold a socket on
// which nobody answers, or nothing.
func (r *round) sockets(ctx context.Context) ([]leftover.Item, error) {
	var all []leftover.Item
	for _, runtime := range r.Runtime {
		entries, err := os.ReadDir(runtime)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if path := filepath.Join(runtime, e.Name()); socketFolder().MatchString(e.Name()) && path != filepath.Dir(r.Socket) {
				if it, ok := r.deadSocket(ctx, path); ok {
					all = append(all, it)
				}
			}
		}
	}
	return all, nil
}

// deadSocket looks at one folder of a daemon's.
func (s *Steward) deadSocket(ctx context.Context, path string) (leftover.Item, bool) {
	at, folder, _ := beneath.PlaceOf(path)
	closed := at.Mode&0o077 == 0 || at.Mode&0o777 == 0o755 // the second is for other users, who look into it
	if !folder || int(at.UID) != os.Geteuid() || !closed || !silent(ctx, path) {
		return leftover.Item{}, false
	}
	return leftover.Item{Place: at, What: "socket", Goes: leftover.InTime,
		Remove: func(ctx context.Context) (bool, error) { return removeSockets(ctx, s, at) }}, true
}

// Beginnings of the names of what a daemon makes beside its socket: for sandboxes, their ways out, and what is trusted on them.
const (
	WayPrefix    = "out-"
	BundlePrefix = "ca-"
)

// besidesMax bounds what is looked at in a folder of sockets.
const besidesMax = 1000

// silent reports whether a folder holds nothing but what a daemon makes, and nobody answers on any of its sockets.
func silent(ctx context.Context, folder string) bool {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) > besidesMax {
		return false
	}
	for _, e := range entries {
		name := e.Name()
		socket := (name == "daemon.sock" || name == "chat" || strings.HasPrefix(name, WayPrefix) ||
			strings.HasPrefix(name, live.SocketPrefix)) && e.Type() == fs.ModeSocket
		if socket && !refused(ctx, filepath.Join(folder, name)) || !socket && !(strings.HasPrefix(name, BundlePrefix) && e.Type().IsRegular()) {
			return false
		}
	}
	return true
}

// refused reports whether a socket has nobody behind it.
func refused(ctx context.Context, path string) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}

// removeSockets moves a folder aside, so that no daemon can come to listen in it, looks again, and removes it.
func removeSockets(ctx context.Context, s *Steward, at beneath.Place) (gone bool, err error) {
	err = s.Ops.Do("sweep:socket", func() error {
		aside := filepath.Join(filepath.Dir(at.Path), ".gone-"+filepath.Base(at.Path))
		if err := unix.Renameat2(unix.AT_FDCWD, at.Path, unix.AT_FDCWD, aside, unix.RENAME_NOREPLACE); err != nil {
			return fmt.Errorf("remove the socket of a dead daemon: %w", err)
		}
		now, folder, err := beneath.PlaceOf(aside)
		if !folder || now.Ino != at.Ino || now.Dev != at.Dev || !silent(ctx, aside) {
			return errors.Join(err, unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, at.Path, unix.RENAME_NOREPLACE))
		}
		entries, err := os.ReadDir(aside)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := os.Remove(filepath.Join(aside, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		gone = true
		return os.Remove(aside)
	})
	return gone, err
}

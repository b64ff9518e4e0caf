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
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/repository"
	"sallyport/internal/store"
)

// groups are control groups of sandboxes whose daemon is dead; what still runs in them ends. The lock on the home
// proves it, so there is no grace.
func (r *round) groups(ctx context.Context) error {
	if r.Groups == nil {
		return nil
	}
	left := r.Groups.Left()
	row := r.rows[Orphans]
	row.Count += len(left)
	if !r.do {
		row.Gone += len(left)
		return nil
	}
	if len(left) == 0 {
		return nil
	}
	n, err := r.Groups.Clear(ctx)
	row.Gone += n
	if err != nil && ctx.Err() == nil {
		r.note("control groups stay: %v", err)
		r.Log.Warn("control groups of an earlier daemon stay", "error", err)
	}
	return context.Cause(ctx)
}

// mounts are overlays of this home's workspaces that are mounted where this process sees them. A sandbox mounts in a
// namespace of its own, so nobody works on these. What a person has mounted there, such as a disk for the layers, is none.
func (r *round) mounts(ctx context.Context) error {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read the mounts: %w", err)
	}
	defer table.Close() // read only
	for lines := bufio.NewScanner(table); lines.Scan(); {
		at, ok := overlayOf(r.State, lines.Text())
		if !ok {
			continue
		}
		err := r.count(ctx, thing{kind: Orphans, goes: true, remove: func() (bool, error) {
			return true, r.Ops.Do("sweep:mount", func() error { return unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
		}})
		if err != nil {
			return err
		}
	}
	return nil
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

// desks of landings whose rows are closed. A person's own bytes stay, and so does a landing that this home does not know.
func (r *round) desks(ctx context.Context) error {
	for _, p := range r.projects() {
		there, err := landing.Desks(p)
		if err != nil {
			continue // the repository is gone, or closed to us
		}
		for _, d := range there {
			if d.Aside {
				err := r.count(ctx, thing{kind: Orphans, path: d.Path, goes: r.abandoned(time.Unix(d.At, 0)), remove: func() (bool, error) {
					err := r.Lander.ClearAside(ctx, p)
					return err == nil, err
				}})
				if err != nil {
					return err
				}
				continue
			}
			if d.Kept {
				r.note("%q stays: it holds your own version of a file", d.Path)
				continue
			}
			var l landing.Landing
			known := false
			err := r.DB.Read(ctx, func(tx store.Tx) (err error) { l, known, err = tx.Landing(ctx, d.Landing); return err })
			if err != nil {
				return err
			}
			if !known {
				r.note("%q stays: no landing of this home has that id", d.Path)
				continue
			}
			closed := !l.Unfinished()
			err = r.count(ctx, thing{kind: Orphans, path: d.Path, goes: closed && r.abandoned(time.Unix(d.At, 0)), remove: func() (bool, error) {
				left, err := r.Lander.Clear(ctx, l)
				r.notes = append(r.notes, left...)
				return err == nil, err
			}})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leavings are what a killed git has left: locks and temporary files in the host's own repositories, where nobody but this home's
// git works, and locks below our refs in a project.
func (r *round) leavings(ctx context.Context) error {
	hosts, err := r.Workspaces.Repositories.All()
	if err != nil {
		return fmt.Errorf("read the host's repositories: %w", err)
	}
	var all []beneath.Place
	add := func(found []beneath.Place, err error) {
		if err == nil { // else it is closed to us, or a link: not ours
			all = append(all, found...)
		}
	}
	for _, host := range hosts {
		add(repository.Leavings(host))
	}
	for _, p := range r.projects() {
		for c, row := range r.changes {
			if row.Request.Project.GitDir == p.GitDir {
				add(repository.Locks(filepath.Join(p.CommonDir, repository.RefRoot(c))))
			}
		}
	}
	for _, at := range all {
		err := r.count(ctx, thing{kind: Orphans, path: at.Path, goes: r.abandoned(at.At), remove: func() (bool, error) {
			return true, r.Ops.Do("sweep:git", at.Unlink)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// halfMade are files and folders under the names that this home writes aside with; the start clears most of them.
func (r *round) halfMade(ctx context.Context) error {
	gone, folder, err := beneath.PlaceOf(filepath.Join(r.State, "gone"))
	if err != nil {
		return err
	}
	if folder {
		err := r.count(ctx, thing{kind: Orphans, path: gone.Path, goes: true, remove: func() (bool, error) { return true, r.Workspaces.EmptyAside(ctx) }})
		if err != nil {
			return err
		}
	}
	for _, in := range []string{".", "sessions", "changes", "logs", "deadman", store.BackupsFolder} {
		entries, err := os.ReadDir(filepath.Join(r.State, in))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read %q: %w", in, err)
		}
		for _, e := range entries {
			if !aside(e.Name()) {
				continue
			}
			at, folder, err := beneath.PlaceOf(filepath.Join(r.State, in, e.Name()))
			if err != nil || at.Path == "" || int(at.UID) != os.Geteuid() {
				continue
			}
			t := thing{kind: Orphans, path: at.Path, goes: r.abandoned(at.At), remove: func() (bool, error) { return true, r.Ops.Do("sweep:aside", at.Unlink) }}
			if folder {
				t.remove = r.removing("sweep:aside", at)
			}
			if err := r.count(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
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
		at, isFolder, err := beneath.PlaceOf(filepath.Join(folder, e.Name()))
		if err != nil || at.Path == "" || isFolder || at.Mode&unix.S_IFMT != unix.S_IFREG {
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

var socketFolder = regexp.MustCompile(`^[0-9a-f]{12}$`)

// sockets are the folders of daemons that are gone, of this home or of another of the same user: they hold a socket on
// which nobody answers, or nothing.
func (r *round) sockets(ctx context.Context) error {
	for _, runtime := range r.Runtime {
		entries, err := os.ReadDir(runtime)
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(runtime, e.Name())
			if !socketFolder.MatchString(e.Name()) || path == filepath.Dir(r.Socket) {
				continue
			}
			at, folder, err := beneath.PlaceOf(path)
			if err != nil || !folder || int(at.UID) != os.Geteuid() || at.Mode&0o077 != 0 || !silent(ctx, path) {
				continue
			}
			err = r.count(ctx, thing{kind: Orphans, path: path, goes: r.abandoned(at.At), remove: func() (bool, error) {
				return removeSockets(ctx, r.Steward, at)
			}})
			if err != nil {
				return err
			}
		}
	}
	return nil
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
		socket := (name == "daemon.sock" || strings.HasPrefix(name, WayPrefix) || strings.HasPrefix(name, live.SocketPrefix)) && e.Type() == fs.ModeSocket
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
		if err != nil || !folder || now.Ino != at.Ino || now.Dev != at.Dev || !silent(ctx, aside) {
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

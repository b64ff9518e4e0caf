package project

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
)

// convertedMax is the size of the largest file whose stored form is computed.
const convertedMax = 64 << 20

// theirIndex reads a copy of a person's index, and when theirs was written.
func theirIndex(private string) (raw []byte, at time.Time, err error) {
	st, err := os.Stat(private)
	if errors.Is(err, os.ErrNotExist) {
		return nil, at, nil
	}
	if err == nil {
		at = st.ModTime()
		raw, err = os.ReadFile(private)
	}
	return raw, at, err
}

// convert takes out what differs only as git's own conversions make it differ, and notes what cannot be taken along as it
// is. No filter runs: of a file that has one, what git remembers of it decides, as git itself asks first.
func (u uncommitted) convert(ctx context.Context, host git.Dir, project git.Project, head git.OID, settings conversion.Settings,
	index *git.Index, written time.Time) error {
	paths := u.paths()
	if len(paths) == 0 {
		return nil
	}
	top, err := beneath.Real(project.Top, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	live, err := u.attributes(top, paths)
	if err != nil {
		return err
	}
	does, err := settings.In(live).At(ctx, host, head, paths)
	if err != nil {
		return err
	}
	for i, p := range paths {
		if does[i].Why == "" || u.unstaged[p] {
			continue
		}
		f, st, err := TheirBytes(top, p)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		entry := index.Entry(p)
		var same, sure bool
		if does[i].Foreign() || st.Size > convertedMax {
			same, sure = remembered(entry.Stat, st, written)
		} else {
			b, err := io.ReadAll(io.LimitReader(f, convertedMax))
			if err != nil {
				f.Close()
				return err
			}
			stored := does[i].Stored(b)
			oid, err := git.HashBlob(project.ObjectFormat, int64(len(stored)), bytes.NewReader(stored))
			if err != nil {
				f.Close()
				return err
			}
			same, sure = oid == entry.OID, bytes.Equal(stored, b) || oid == entry.OID
		}
		f.Close()
		if same && !u.staged[p] {
			delete(u.changed, p)
		}
		switch {
		case same && !sure && !u.staged[p]:
			u.untold[p] = does[i].Why
		case !sure || u.staged[p] && does[i].Foreign():
			u.converted[p] = does[i].Why
		}
	}
	return nil
}

// remembered reports whether a file is the one that an index of a time remembers, and whether a later write would show: not if
// both were written at once. git compares seconds; finer clocks are asked where both have one.
func remembered(was git.Stat, st unix.Stat_t, written time.Time) (same, sure bool) {
	same = was.MtimeSec == uint32(st.Mtim.Sec) && was.Size == uint32(st.Size) && was.Ino == uint32(st.Ino)
	exact := was.MtimeNsec != 0 && was.MtimeNsec == uint32(st.Mtim.Nsec) && was.CtimeSec == uint32(st.Ctim.Sec) && was.CtimeNsec == uint32(st.Ctim.Nsec)
	earlier := st.Mtim.Sec < written.Unix() || exact && time.Unix(st.Mtim.Unix()).Before(written)
	return same, same && earlier
}

// attributes reads the files of attributes that are not committed: by folder, "" = the top.
func (u uncommitted) attributes(top int, paths []string) (map[string]string, error) {
	live := map[string]string{}
	for _, p := range paths {
		if path.Base(p) != conversion.FileName || u.unstaged[p] {
			continue
		}
		f, st, err := TheirBytes(top, p)
		if err != nil {
			return nil, err
		}
		if f == nil { // it is deleted, or no file: nothing counts there
			folder, _ := path.Split(p)
			live[path.Clean("/" + folder)[1:]] = ""
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, conversion.TextMax))
		f.Close()
		if err != nil {
			return nil, err
		}
		if st.Size <= conversion.TextMax {
			folder, _ := path.Split(p)
			live[path.Clean("/" + folder)[1:]] = string(text)
		}
	}
	return live, nil
}

// TheirBytes opens a regular file of a person's work tree; nil for what is none.
func TheirBytes(top int, p string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := beneath.Open(top, p, unix.O_RDONLY)
	if err != nil {
		return nil, st, nil // it is named when it is taken along
	}
	f := os.NewFile(uintptr(fd), p)
	if err = unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, st, err
	}
	return f, st, nil
}

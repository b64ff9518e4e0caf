package release

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	programs "sallyport/internal/base/release"
	"sallyport/internal/path/change"
	"sallyport/internal/port/sandbox"
)

// copying is a host whose state is a word.
type copying struct {
	Host
	uid int
	err error
}

func (c *copying) Copy(_ context.Context, to string, uid int) error {
	c.uid = uid
	return errors.Join(c.err, os.WriteFile(to, []byte("the state"), 0o600))
}

// failing does operations up to the one of a number, which fails; did is how many there were.
type failing struct {
	at, did int
}

var errNoPower = errors.New("no power")

func (f *failing) Around(_ string, do func() error) error {
	f.did++
	if f.did == f.at {
		return errNoPower
	}
	return do()
}

func furnishing(t *testing.T, f *failing) (rs *Rehearsals, host *copying, dir string) {
	t.Helper()
	dir, host = t.TempDir(), &copying{}
	disktest.Put(t, filepath.Join(dir, programs.Program), "a program", 0o755)
	return New(Parts{Folder: t.TempDir(), Host: host, Ops: disk.Ops{Around: f.Around}}), host, dir
}

func TestARehearsedHomeHasItsStateItsProgramsAndItsMark(t *testing.T) {
	rs, host, dir := furnishing(t, &failing{})
	of := sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if os.Geteuid() == 0 {
		of = sandbox.Owner{UID: 1234, GID: 56}
	}
	place := t.TempDir()
	digest, err := rs.furnish(t.Context(), place, of, dir, programs.Release{Build: "b", Schema: 7})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		".state/sallyport.db": "the state", ".state/releases/current/" + programs.Program: "a program", ".state/releases/" + digest + "/" + programs.Program: "a program", "mark": "",
	} {
		if raw, err := os.ReadFile(filepath.Join(place, name)); err != nil || string(raw) != want {
			t.Errorf("%s has %q, %v", name, raw, err)
		}
	}
	if host.uid != int(of.UID) {
		t.Errorf("the state is copied for %d", host.uid)
	}
	err = filepath.WalkDir(filepath.Join(place, ".state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		is, err := d.Info()
		if err != nil {
			return err
		}
		if uid, gid := owner(is); uid != of.UID || gid != of.GID {
			t.Errorf("%s is of %d:%d", path, uid, gid)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	is, err := os.Lstat(filepath.Join(place, "mark"))
	if err != nil {
		t.Fatal(err)
	}
	if uid, _ := owner(is); uid != uint32(os.Geteuid()) || is.Mode() != 0o444 {
		t.Errorf("the mark is of %d, %v: the rehearsed could take it away", uid, is.Mode())
	}
	host.err = errors.New("no space")
	if _, err := rs.furnish(t.Context(), t.TempDir(), of, dir, programs.Release{}); !errors.Is(err, host.err) {
		t.Errorf("without the state: %v", err)
	}
}

// TestWhatIsNotDoneForARehearsalIsNotTakenForDone has each operation fail in its turn.
func TestWhatIsNotDoneForARehearsalIsNotTakenForDone(t *testing.T) {
	me := sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for what, do := range map[string]func(t *testing.T, f *failing) error{
		"furnish": func(t *testing.T, f *failing) error {
			rs, _, dir := furnishing(t, f)
			_, err := rs.furnish(t.Context(), t.TempDir(), me, dir, programs.Release{Build: "b", Schema: 7})
			return err
		},
		"place": func(t *testing.T, f *failing) error {
			rs, _, _ := furnishing(t, f)
			if err := os.MkdirAll(filepath.Join(rs.Folder, "chg-00000001/left"), 0o700); err != nil {
				t.Fatal(err)
			}
			_, _, err := rs.takePlace(change.Row{ID: "chg-00000001"}, "home")
			return err
		},
	} {
		for at := 1; ; at++ {
			f := &failing{at: at}
			err := do(t, f)
			if f.did < at { // every operation has had its turn
				if err != nil || at < 3 {
					t.Errorf("%s: after %d operations %v", what, f.did, err)
				}
				break
			}
			if !errors.Is(err, errNoPower) {
				t.Errorf("%s, operation %d: %v", what, at, err)
			}
		}
	}
}

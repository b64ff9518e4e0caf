package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk/disktest"
)

func TestOnlyFoldersOfThisHomesSocketsAreItsOwn(t *testing.T) {
	dir := t.TempDir()
	const home = "0123456789ab"
	own, older, strange := filepath.Join(dir, "own"), filepath.Join(dir, "older"), filepath.Join(dir, "strange")
	shared, used, file := filepath.Join(dir, "shared"), filepath.Join(dir, "used"), filepath.Join(dir, "file")
	for _, path := range []string{own, filepath.Join(older, home), strange, filepath.Join(shared, home), filepath.Join(shared, "of another"), filepath.Join(used, home)} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(used, home, "notes.txt"), file} { // what is not a daemon's stays
		disktest.Put(t, path, "", 0o600)
	}

	users, anybodys := filepath.Join(dir, "users"), filepath.Join(dir, "anybodys") // others may look at what is for them; what they may write is not ours
	for path, mode := range map[string]os.FileMode{users: 0o755, anybodys: 0o775} {
		err := errors.Join(os.MkdirAll(filepath.Join(path, home), 0o755), leaveSocket(filepath.Join(path, home, "chat")), os.Chmod(filepath.Join(path, home), mode))
		if err != nil {
			t.Fatal(err)
		}
	}

	runtime := []string{own, older, strange, shared, used, file, users, anybodys, filepath.Join(dir, "absent")}
	if os.Geteuid() == 0 { // only root can make one that is another user's
		of := filepath.Join(dir, "foreign")
		if err := errors.Join(os.Mkdir(of, 0o700), os.Mkdir(filepath.Join(of, home), 0o700), os.Chown(filepath.Join(of, home), 4711, -1), os.Chown(of, 4711, -1)); err != nil {
			t.Fatal(err)
		}
		runtime = append(runtime, of)
	}

	s := &Steward{Parts: Parts{Socket: filepath.Join(own, home, "daemon.sock"), Runtime: runtime}}
	var goes []string
	pieces, err := s.Machine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pieces {
		goes = append(goes, p.Path)
	}
	if want := []string{own, filepath.Join(older, home), older, filepath.Join(shared, home), used, filepath.Join(users, home), users, anybodys}; !slices.Equal(goes, want) {
		t.Errorf("%q would go, want %q", goes, want)
	}
	if err := errors.Join(s.removeEmpty(used), s.removeEmpty(own), s.removeEmpty(own)); err != nil {
		t.Errorf("a folder that is used, and one that is gone: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(used, home, "notes.txt")); err != nil {
		t.Error(err)
	}
}

func TestAFolderOfSocketsThatIsAnotherByNowStays(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "0123456789ab")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	at, _, err := beneath.PlaceOf(folder)
	if err != nil {
		t.Fatal(err)
	}
	for name, become := range map[string]func() error{
		"another folder": func() error { return os.Mkdir(folder, 0o700) },
		"a file":         func() error { return os.WriteFile(folder, nil, 0o600) },
	} {
		if err := errors.Join(os.Rename(folder, folder+name), become()); err != nil {
			t.Fatal(err)
		}
		if gone, err := removeSockets(t.Context(), &Steward{}, at); gone || err != nil {
			t.Errorf("%s is removed: %v, %v", name, gone, err)
		}
		if _, err := os.Lstat(folder); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFolderOfMoreThanADaemonMakesIsNobodys(t *testing.T) {
	folder := t.TempDir()
	for i := range besidesMax {
		disktest.Put(t, filepath.Join(folder, BundlePrefix+fmt.Sprint(i)), "", 0o600)
	}
	if !silent(t.Context(), folder) {
		t.Error("as many as are looked at")
	}
	disktest.Put(t, filepath.Join(folder, BundlePrefix+"more"), "", 0o600)
	if silent(t.Context(), folder) || silent(t.Context(), folder+" that is absent") {
		t.Error("one more, or none, is taken for a dead daemon's")
	}
}

func TestANameUnderWhichSomethingIsHalfMade(t *testing.T) {
	for name, want := range map[string]bool{".new-a": true, "a.new": true, "a.part": true, "a": false, "new-a": false, "a.new.json": false} {
		if aside(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

package whole_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/whole"
)

func TestAFileIsSetOnlyWhereItHoldsSomethingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	var did []string
	ops := disk.Ops{Around: func(op string, do func() error) error { did = append(did, op); return do() }}
	for _, step := range []struct {
		data string
		did  int
	}{{"one\n", 1}, {"one\n", 1}, {"two\n", 2}, {"", 3}, {"", 3}} {
		if err := whole.SetFile(ops, "list:set", path, []byte(step.data)); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != step.data || len(did) != step.did {
			t.Errorf("it holds %q after %d operations, want %q after %d", got, len(did), step.data, step.did)
		}
		if whole.Exists(path) != (step.data != "") {
			t.Errorf("with %q it is there: %v", step.data, whole.Exists(path))
		}
	}
}

func TestWhatIsMadeIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		path := filepath.Join(dir, "shelf", "it")
		if err := whole.MakeFolder(disk.Ops{}, whole.Fresh(path)); err != nil {
			t.Fatal(err)
		}
		if err := whole.Commit(whole.Fresh(path), path); err != nil {
			t.Fatal(err)
		}
		if err := whole.SetFile(disk.Ops{}, "list:set", filepath.Join(path, "list"), []byte("one\n")); err != nil {
			t.Fatal(err)
		}
		if err := whole.Keep(disk.Ops{}, "words", filepath.Join(path, "words"), []byte("kept\n")); err != nil {
			t.Fatal(err)
		}
		disktest.Private(t, filepath.Join(path, "words"), ".")
		for _, folder := range []string{"shelf", "shelf/it"} {
			if info, err := os.Stat(filepath.Join(dir, folder)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", folder, info.Mode(), err)
			}
		}
	})
	disktest.Ordered(t, calls, `syncfs shelf/\.new-it`, `rename shelf/\.new-it shelf/it`, `fsync shelf`, `fsync shelf/it/\.new-list`, `rename shelf/it/\.new-list shelf/it/list`,
		`fsync shelf/it/\.new-words`, `rename shelf/it/\.new-words shelf/it/words`, `fsync shelf/it`)
}

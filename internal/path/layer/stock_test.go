package layer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/layer"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func stocks(t *testing.T, root string, ops disk.Ops) *layer.Stocks {
	t.Helper()
	return layer.NewStocks(layer.StocksConfig{
		Root: root, Ops: ops, Overlay: true, Keep: time.Hour, QuotaBytes: 1 << 20, Showing: func(func(string)) error { return nil },
	})
}

func stockID(family, generation string) layer.StockID {
	return layer.StockID{Family: strings.Repeat(family, 32), Generation: strings.Repeat(generation, 12)}
}

// leaveFor makes one of a branch.
func leaveFor(t *testing.T, k *layer.Stocks, id layer.StockID, branch string) {
	t.Helper()
	n := layer.StockNote{Kind: layer.Checks, Base: "b", Branch: branch, Made: time.Now()}
	_, release, err := k.Make(gittest.Context(t), id, n, wt.Self(), layer.Stock{}, func(layer.Room) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func anyServes(layer.Stock) (bool, error) { return true, nil }

// leave makes a stock whose commands wrote a file into the folder of caches.
func leave(t *testing.T, k *layer.Stocks, id layer.StockID, kind layer.StockKind, cache string) (layer.Stock, error) {
	t.Helper()
	s, release, err := k.Make(gittest.Context(t), id, layer.StockNote{Kind: kind, Base: "b", Made: time.Now()}, wt.Self(), layer.Stock{}, func(r layer.Room) error {
		return os.WriteFile(filepath.Join(r.Cache.Upper, "f"), []byte(cache), 0o644)
	})
	if err == nil {
		release()
	}
	return s, err
}

// What commands left is the host's own: nobody can run it as somebody else, nothing in it waits for somebody, and what its tool would
// touch at each use is dated ahead.
func TestWhatCommandsLeftIsMadeHarmless(t *testing.T) {
	k := stocks(t, filepath.Join(t.TempDir(), "stock"), disk.Ops{})
	other := wt.Self()
	if os.Geteuid() == 0 {
		other.UID, other.GID = 64124, 64124
	}
	n := layer.StockNote{Kind: layer.Checks, Base: "b", Made: time.Now()}
	s, release, err := k.Make(gittest.Context(t), stockID("a", "1"), n, other, layer.Stock{}, func(r layer.Room) error {
		in := func(name string) string { return filepath.Join(r.Cache.Upper, name) }
		return errors.Join(
			os.MkdirAll(in("go-build/ab"), 0o755), os.WriteFile(in("go-build/ab/x-a"), nil, 0o644), os.WriteFile(in("other"), nil, 0o644),
			os.WriteFile(in("suid"), nil, 0o755), os.Chmod(in("suid"), 0o755|os.ModeSetuid), unix.Mkfifo(in("pipe"), 0o666),
			os.Lchown(in("other"), int(other.UID), int(other.GID)), os.Mkdir(in("closed"), 0o000), os.Symlink("/etc/passwd", in("link")))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	stat := func(name string) (st unix.Stat_t) {
		t.Helper()
		if err := unix.Lstat(filepath.Join(s.Cache(), name), &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	for _, name := range []string{"", "other", "suid", "link", "closed", "go-build/ab/x-a"} {
		if st := stat(name); int(st.Uid) != os.Geteuid() || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&unix.S_ISUID != 0 {
			t.Errorf("%q belongs to uid %d, mode %o", name, st.Uid, st.Mode)
		}
	}
	if _, err := os.Lstat(filepath.Join(s.Cache(), "pipe")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a FIFO stays: %v", err)
	}
	if ahead, plain := stat("go-build/ab/x-a").Mtim.Sec, stat("other").Mtim.Sec; ahead < time.Now().AddDate(1, 0, 0).Unix() || plain > time.Now().Unix()+60 {
		t.Errorf("dated %d and %d", ahead, plain)
	}
	// It is good for its family, and for what is done by other commands with the same.
	for family, want := range map[string]bool{
		s.ID.Family: true, s.ID.Family[:16] + strings.Repeat("b", 16): true, strings.Repeat("b", 16) + s.ID.Family[16:]: false,
	} {
		got, release, err := k.Latest(family, anyServes)
		release()
		if err != nil || got.None() == want {
			t.Errorf("%s: %v, %v", family, got.ID, err)
		}
	}
}

func TestStocksGoWhenReplacedUnusedOrTooLargeAndNeverWhileTheyAreInUse(t *testing.T) {
	root, shown := filepath.Join(t.TempDir(), "stock"), ""
	k := stocks(t, root, disk.Ops{})
	k.Showing = func(each func(string)) error { each(shown); return nil }
	make := func(family, generation string, kind layer.StockKind, cache string) layer.Stock {
		t.Helper()
		s, err := leave(t, k, stockID(family, generation), kind, cache)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	trim := func(want ...string) {
		t.Helper()
		foretold, err := k.Surplus()
		if err != nil || len(foretold) != 0 && len(want) == 0 {
			t.Errorf("foretold %v, %v", foretold, err)
		}
		before, _ := k.All()
		if _, err := k.Trim(gittest.Context(t)); err != nil {
			t.Fatal(err)
		}
		left, err := k.All()
		if err != nil || len(before)-len(left) != len(foretold) {
			t.Errorf("foretold %d, %d of %d left, %v", len(foretold), len(left), len(before), err)
		}
		var names []string
		for _, s := range left {
			names = append(names, s.ID.Family[:1]+s.ID.Generation[:1])
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("left are %q, want %q", names, want)
		}
	}
	old := make("a", "1", layer.Checks, "x")
	_, release, err := k.Open(old.ID) // a check runs on it
	if err != nil {
		t.Fatal(err)
	}
	make("a", "2", layer.Checks, strings.Repeat("x", 400<<10))
	setup := make("b", "1", layer.Setup, "x")
	make("b", "2", layer.Setup, "x") // another branch's: both are of use
	trim("a1", "a2", "b1", "b2")
	release()
	trim("a2", "b1", "b2")

	shown = setup.ID.String()
	long := time.Now().Add(-2 * time.Hour)
	for _, id := range []layer.StockID{setup.ID, stockID("b", "2")} {
		if err := os.Chtimes(filepath.Join(root, id.String()), long, long); err != nil {
			t.Fatal(err)
		}
	}
	trim("a2", "b1")
	make("c", "1", layer.Checks, strings.Repeat("x", 800<<10))
	trim("b1", "c1") // a2 was used longest ago of those that nobody stands on

	leaveFor(t, k, stockID("c", "2"), "side")
	leaveFor(t, k, stockID("c", "3"), "side") // it takes the place of its own branch's, and of no other
	trim("b1", "c1", "c3")
}

// A note that something else wrote over is no reason to serve, and keeps nothing from going.
func TestAStockWhoseNoteCannotBeReadServesNothingAndGoes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "stock")
	k := stocks(t, root, disk.Ops{})
	sound, err := leave(t, k, stockID("a", "1"), layer.Checks, "x")
	if err != nil {
		t.Fatal(err)
	}
	broken, err := leave(t, k, stockID("a", "2"), layer.Checks, "x")
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(root, broken.ID.String())
	long := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.WriteFile(filepath.Join(at, "layer.json"), []byte("{"), 0o644), os.Chtimes(at, long, long)); err != nil {
		t.Fatal(err)
	}
	got, release, err := k.Latest(sound.ID.Family, anyServes)
	if release(); err != nil || got.ID != sound.ID {
		t.Errorf("%v, %v", got.ID, err)
	}
	if _, err := k.Trim(gittest.Context(t)); err != nil {
		t.Error(err)
	}
	if left, err := k.All(); err != nil || len(left) != 1 || left[0].ID != sound.ID {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestAStockThatLosesPowerAnywhereIsThereOrNot(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the loop runs as root")
	}
	old, id := stockID("a", "1"), stockID("a", "2")
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		root := filepath.Join(t.TempDir(), "stock")
		if _, err := leave(t, stocks(t, root, disk.Ops{}), old, layer.Checks, "cached"); err != nil {
			t.Fatal(err)
		}
		if _, err := disktest.Run(func() error {
			weak := stocks(t, root, c.Ops())
			if _, err := leave(t, weak, id, layer.Checks, "cached"); err != nil {
				return err
			}
			_, err := weak.Trim(gittest.Context(t))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		sound := stocks(t, root, disk.Ops{})
		there, err := sound.All()
		if err != nil || len(there) == 0 {
			t.Fatalf("the family is gone: %v", err)
		}
		if _, err := leave(t, sound, id, layer.Checks, "cached"); err != nil {
			t.Fatal(err)
		}
		s, release, err := sound.Latest(id.Family, anyServes)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if text, err := os.ReadFile(filepath.Join(s.Cache(), "f")); s.ID != id || err != nil || string(text) != "cached" {
			t.Errorf("%s holds %q, %v", s.ID, text, err)
		}
	})
	for _, op := range []string{"stock:folders", "stock:seal", "stock:note", "stock:commit", "stock:retire", "stock:remove"} {
		if !slices.Contains(seen, op) {
			t.Errorf("no %s among %q", op, seen)
		}
	}
}

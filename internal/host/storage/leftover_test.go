package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/leftover"
)

// part is whoever has left something.
type part func(context.Context) ([]leftover.Item, error)

func (p part) Left(ctx context.Context) ([]leftover.Item, error) { return p(ctx) }

func TestWhatACrashLeftHalfMadeGoesBeforeAnythingBegins(t *testing.T) {
	o := newOwned(t)
	runtime := t.TempDir()
	half := []string{"workspaces/.new-1/upper/a", "layers/.new-2/tree/b", "repos/x.git/bases/views/.new-3/c", "shown/d/e", "dirty/f", ".probe-4", "probe-5/g"}
	stays := []string{"workspaces/chg-00000001/h", "gone/1/it/i", "changes/chg-00000001/state.md.new"}
	for _, name := range slices.Concat(half, stays) {
		o.put(name, "x")
	}
	beside := filepath.Join(runtime, "out-1")
	if err := errors.Join(os.Mkdir(beside, 0o700), os.WriteFile(filepath.Join(beside, "z"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	o.Left = []leftover.Part{o.Workspaces}
	err := Begin(t.Context(), o.Ops, o.State, o.Workspaces, leftover.Names{Folder: runtime, Patterns: []string{"out-*"}, Ops: o.Ops, Op: "network:sweep"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range half {
		if o.has(name) {
			t.Errorf("%s is there", name)
		}
	}
	for _, name := range stays {
		if !o.has(name) {
			t.Errorf("%s is gone", name)
		}
	}
	if _, err := os.Lstat(beside); err == nil {
		t.Error("what lies outside the home's state is there")
	}
	if moved, _ := filepath.Glob(filepath.Join(o.State, "gone/*/it/z")); len(moved) > 0 { // it may be on another disk
		t.Errorf("what lies outside the home's state was moved into it: %q", moved)
	}
	// A folder was only moved, so that the start takes no time: the first round removes it.
	if moved, _ := filepath.Glob(filepath.Join(o.State, "gone/*/it/upper/a")); len(moved) != 1 {
		t.Errorf("moved aside: %q", moved)
	}
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.State, "gone/*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}

	ended, end := context.WithCancel(t.Context())
	end()
	o.put("dirty/again", "x")
	if err := Begin(ended, o.Ops, o.State, o.Workspaces); !errors.Is(err, context.Canceled) || !o.has("dirty/again") {
		t.Errorf("a start that was ended: %v", err)
	}
	broken := errors.New("broken")
	if err := Begin(t.Context(), o.Ops, o.State, part(func(context.Context) ([]leftover.Item, error) { return nil, broken })); !errors.Is(err, broken) {
		t.Errorf("a part that cannot tell: %v", err)
	}
}

// What every part tells is decided on in one place, and is the same to who looks, who collects and who leaves the machine.
func TestOneListOfLeftoversServesAll(t *testing.T) {
	o := newOwned(t)
	o.Retention.Grace = GraceDefault
	outside := t.TempDir()
	var removed []string
	item := func(path string, goes leftover.When, stays string) leftover.Item {
		return leftover.Item{Place: beneath.Place{Path: path, At: time.Now()}, What: "control group", Goes: goes, Stays: stays, Remove: func(context.Context) (bool, error) {
			removed = append(removed, filepath.Base(path))
			return true, nil
		}}
	}
	broken := errors.New("cannot tell")
	o.Left = []leftover.Part{
		part(func(context.Context) ([]leftover.Item, error) { return nil, broken }),
		part(func(context.Context) ([]leftover.Item, error) {
			return []leftover.Item{
				item(outside+"/begun", leftover.AtStart, ""), item(outside+"/young", leftover.InTime, ""), item(outside+"/now", leftover.AtOnce, ""),
				item(outside+"/theirs", leftover.AtOnce, "it is a person's"), item(o.State+"/inside", leftover.AtOnce, ""),
			}, nil
		}),
	}
	seen, err := o.Look(t.Context())
	if !errors.Is(err, broken) {
		t.Errorf("a part that cannot tell is not told: %v", err)
	}
	for _, row := range seen.Rows {
		if row.Kind == Orphans && (row.Count != 3 || row.Gone != 2) {
			t.Errorf("%d of %d would go, want 2 of 3", row.Gone, row.Count)
		}
	}
	if len(removed) > 0 {
		t.Errorf("looking removed %q", removed)
	}
	if !slices.ContainsFunc(seen.Notes, func(n string) bool { return strings.HasSuffix(n, "stays: it is a person's") }) {
		t.Errorf("notes: %q", seen.Notes)
	}
	if _, err := o.Collect(t.Context(), ann); !errors.Is(err, broken) {
		t.Error(err)
	}
	if want := []string{"now", "inside"}; !slices.Equal(removed, want) {
		t.Errorf("%q went, want %q", removed, want)
	}
	pieces, err := o.Machine(t.Context())
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	var goes []string
	for _, p := range pieces {
		goes = append(goes, p.What+" "+filepath.Base(p.Path))
	}
	if want := []string{"control group begun", "control group young", "control group now"}; !slices.Equal(goes, want) {
		t.Errorf("from the machine goes %q, want %q", goes, want)
	}
}

package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/image"
	"sallyport/internal/base/release"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite/sqlitetest"
)

// TestWhatNobodyRunsByAnyMoreIsLeftOver: five releases stay, and what somebody may yet say yes to.
func TestWhatNobodyRunsByAnyMoreIsLeftOver(t *testing.T) {
	d := &Daemon{Options: Options{Home: t.TempDir()}, db: sqlitetest.Open(t, filepath.Join(t.TempDir(), "db"))}
	t.Cleanup(func() { d.db.Close() })
	releases, images := candidate{d}.Releases(), candidate{d}.Images()
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

	var all []release.Release // the oldest first
	for n := range 10 {
		at := time.Duration(n) * time.Minute
		root, from := filepath.Join(t.TempDir(), "root"), t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, fmt.Sprint("usr", n)), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(from, release.Program), fmt.Append(nil, n), 0o755)
		i, err := images.Put(t.Context(), root, image.Image{Inputs: fmt.Sprint(n), Built: noon})
		if err != nil {
			t.Fatal(err)
		}
		r, err := releases.Put(from, release.Release{Build: fmt.Sprint(n), Image: i.Digest, Built: noon.Add(at)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	for _, r := range all[:2] { // the first is the previous one, the second is current
		if err := releases.Use(r.Digest); err != nil {
			t.Fatal(err)
		}
	}
	asked := change.Row{ID: id.NewChange(), State: change.AwaitingApproval, Request: request.Request{Kind: request.Swap}, Created: noon, Moved: noon}
	asked.Request.Project.Top = d.Home
	err := d.db.InTx(t.Context(), func(tx store.Tx) error {
		if err := tx.AddChange(t.Context(), asked); err != nil {
			return err
		}
		return tx.AddProposal(t.Context(), proposal.Proposal{Change: asked.ID, Number: 1, At: noon, Card: proposal.Card{Host: &proposal.Host{Release: all[2].Digest}}})
	})
	if err != nil {
		t.Fatal(err)
	}

	left := func() (what []string) {
		items, err := past{d}.Left(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			n := slices.IndexFunc(all, func(r release.Release) bool {
				return strings.HasSuffix(it.Path, r.Digest) || strings.HasSuffix(it.Path, r.Image)
			})
			what = append(what, fmt.Sprintf("%s %d", it.What, n))
			if gone, err := it.Remove(t.Context()); !gone || err != nil {
				t.Errorf("%s: %v %v", it.Path, gone, err)
			}
		}
		slices.Sort(what)
		return what
	}
	if got, want := left(), []string{"release 3", "release 4"}; !slices.Equal(got, want) {
		t.Errorf("left over are %q, not %q", got, want)
	}
	if got, want := left(), []string{"image 3", "image 4"}; !slices.Equal(got, want) {
		t.Errorf("then left over are %q, not %q", got, want)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("at last left over are %q", got)
	}
}

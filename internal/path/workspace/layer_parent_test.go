package workspace_test

import (
	"strconv"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/path/workspace"
)

func TestALayerKeepsTheOneItStandsOnUntilItsNoteNamesIt(t *testing.T) {
	h := newHistory(t)
	files := map[string]string{}
	for i := range 60 {
		files["d/"+strconv.Itoa(i)] = "text " + strconv.Itoa(i)
	}
	first := h.commit(files)
	files["d/1"] = "changed"
	second := h.commit(files)

	var m *workspace.Manager
	armed := false
	ops := disk.Ops{Around: func(op string, do func() error) error {
		if op == "layer:note" && armed { // what clearing up after another change does at any moment
			armed = false
			if _, err := m.Layers.Evict(t.Context(), 0, 0); err != nil {
				t.Error(err)
			}
		}
		return do()
	}}
	m = workspace.New(workspace.Config{Root: t.TempDir(), Strategy: workspace.Copy, Ops: ops})
	h.prepare(m, "chg-aaaaaaaa", first)
	if err := m.Remove(t.Context(), "chg-aaaaaaaa"); err != nil {
		t.Fatal(err)
	}
	armed = true
	if _, err := m.Prepare(t.Context(), h.spec("chg-bbbbbbbb", second)); err != nil {
		t.Error(err)
	}
	if armed {
		t.Error("no layer was made")
	}
}

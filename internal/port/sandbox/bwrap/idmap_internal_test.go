package bwrap

import (
	"os"
	"testing"

	"sallyport/internal/port/sandbox"
)

func TestIDMapsAreMadeOncePerOwnerAndBounded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root maps ids of others")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var m idmaps
	var s starter
	first, err := m.mapping(&s, self, idmap{to: sandbox.Owner{UID: 70000, GID: 70000}})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.mapping(&s, self, idmap{to: sandbox.Owner{UID: 70000, GID: 70000}}); err != nil || again != first {
		t.Errorf("%v, %v", again, err)
	}
	for i := range uint32(idmapsMax + 10) {
		if _, err := m.mapping(&s, self, idmap{to: sandbox.Owner{UID: 70001 + i, GID: 70001}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.open) != idmapsMax {
		t.Errorf("%d are open", len(m.open))
	}
}

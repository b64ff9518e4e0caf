package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
)

// chain returns n entries as a store appends them.
func chain(n int) []audit.Entry {
	var all []audit.Entry
	previous := ""
	for i := range n {
		e := audit.Entry{Seq: int64(i + 1), At: time.UnixMilli(int64(1e12 + i)).UTC(), Actor: audit.Actor{Kind: "person", Name: "alice", UID: 1000},
			Change: "chg-1", Subject: fmt.Sprint("apr-", i), Verb: "approved", Reason: "because", Digests: map[string]string{"tree": "t", "base": "b"}, Previous: previous}
		e.Hash = e.Sum()
		previous = e.Hash
		all = append(all, e)
	}
	return all
}

func TestAChainAsItWasWrittenIsGood(t *testing.T) {
	if err := errors.Join(audittest.Verify(chain(5)), audittest.Verify(nil)); err != nil {
		t.Error(err)
	}
}

func TestTamperingIsFoundAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func([]audit.Entry) []audit.Entry
		at     string // what the error names
	}{
		"another actor":  {func(a []audit.Entry) []audit.Entry { a[2].Actor.Name = "mallory"; return a }, "entry 3"},
		"another uid":    {func(a []audit.Entry) []audit.Entry { a[2].Actor.UID = 0; return a }, "entry 3"},
		"another time":   {func(a []audit.Entry) []audit.Entry { a[2].At = a[2].At.Add(time.Millisecond); return a }, "entry 3"},
		"another verb":   {func(a []audit.Entry) []audit.Entry { a[2].Verb = "refused"; return a }, "entry 3"},
		"no reason":      {func(a []audit.Entry) []audit.Entry { a[2].Reason = ""; return a }, "entry 3"},
		"another digest": {func(a []audit.Entry) []audit.Entry { a[2].Digests["tree"] = "x"; return a }, "entry 3"},
		"hashed anew":    {func(a []audit.Entry) []audit.Entry { a[2].Verb = "refused"; a[2].Hash = a[2].Sum(); return a }, "entry 4"},
		"one taken out":  {func(a []audit.Entry) []audit.Entry { return slices.Delete(a, 2, 3) }, "entry 3"},
		"the first gone": {func(a []audit.Entry) []audit.Entry { return a[1:] }, "entry 1"},
		"one twice":      {func(a []audit.Entry) []audit.Entry { return slices.Insert(a, 2, a[1]) }, "entry 2"},
		"two exchanged":  {func(a []audit.Entry) []audit.Entry { a[2], a[3] = a[3], a[2]; return a }, "entry 3"},
		"renumbered": {func(a []audit.Entry) []audit.Entry {
			a = slices.Delete(a, 2, 3)
			a[2].Seq = 3
			a[2].Hash = a[2].Sum()
			return a
		}, "entry 3"},
	} {
		err := audittest.Verify(c.tamper(chain(5)))
		if err == nil || !strings.HasPrefix(err.Error(), c.at+":") && !strings.HasPrefix(err.Error(), c.at+" ") {
			t.Errorf("%s: err = %v, want it at %s", name, err, c.at)
		}
	}
}

func TestAHashDoesNotDependOnHowATimeIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := audit.Entry{At: time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "ms")).UTC(), Verb: rapid.String().Draw(t, "verb"), Hash: "any"}
		other := e
		other.Hash = ""
		other.At = e.At.Add(time.Duration(rapid.Int64Range(0, 999_999).Draw(t, "ns"))).In(time.FixedZone("", rapid.IntRange(-50000, 50000).Draw(t, "zone")))
		if e.Sum() != other.Sum() {
			t.Fatalf("%v and %v have different hashes", e.At, other.At)
		}
		other.Reason = "x"
		if e.Sum() == other.Sum() {
			t.Fatal("different entries have one hash")
		}
	})
}

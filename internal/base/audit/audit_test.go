package audit_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/rapidtest"
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
	rapidtest.Check(t, func(t *rapid.T) {
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

// before is a log as it was written before entries named persons and their JSON was stored.
func before() []audit.Entry {
	all := []audit.Entry{
		{At: time.UnixMilli(1795000000123).UTC(), Actor: audit.Actor{Kind: "person", Name: "alice", UID: 1000}, Change: "chg-00000001", Subject: "apr-00000001", Verb: "approved",
			Reason: "<as> read & \u2028said", Digests: map[string]string{"tree": "t", "base": "b"}, Hash: "053b63900f72330590c74121ee73484b548821fa9aae895ad440fa3f9c3567be"},
		{At: time.UnixMilli(1795000000000).UTC(), Actor: audit.Host, Verb: "noted", Hash: "0a59b8eadd222f509d5f64efcbedd065e9a93bf0ed5662f1c3d7d7b0c3656164"},
		{At: time.UnixMilli(1795000000450).UTC(), Actor: audit.Actor{Kind: "agent", Name: "sh-abc12", UID: -1}, Change: "chg-00000001", Subject: "sh-abc12", Verb: "ended",
			Digests: map[string]string{}, Hash: "149b158c3f35e695fc38d7e5ff60ef3c5f7d6e0b5aaa11801b9968d886809b8c"},
	}
	for i := range all {
		all[i].Seq = int64(i + 1)
		if i > 0 {
			all[i].Previous = all[i-1].Hash
		}
	}
	return all
}

func TestALogFromBeforePersonsHoldsAndGoesOn(t *testing.T) {
	all := before()
	if err := audittest.Verify(all); err != nil {
		t.Fatal(err)
	}
	next := audit.Entry{Seq: 4, At: time.UnixMilli(1795000001000).UTC(), Previous: all[2].Hash, Verb: "approved",
		Actor: audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: "psn-alice000", Identity: "terminal:1000"}}.Seal()
	if err := audittest.Verify(append(all, next)); err != nil {
		t.Error(err)
	}
	all[0].Actor.Person = "psn-alice000" // what nobody wrote down then
	if err := audittest.Verify(all); err == nil || !strings.HasPrefix(err.Error(), "entry 1 ") {
		t.Errorf("an old entry that names a person: %v", err)
	}
}

// A later program may write an entry otherwise: what was stored is what the hash is of.
func TestAnEntryIsHeldAgainstTheJSONThatWasStored(t *testing.T) {
	e := chain(1)[0].Seal()
	later := strings.Replace(e.Stored, `"verb":"approved"`, `"group":"notes","verb":"approved"`, 1)
	for name, c := range map[string]struct {
		stored string
		verb   string
		good   bool
	}{
		"as this program writes it":             {e.Stored, "approved", true},
		"with a field that it does not know":    {later, "approved", true},
		"in another order":                      {`{"verb":"approved",` + strings.Replace(e.Stored[1:], `,"verb":"approved"`, "", 1), "approved", true},
		"and the columns say something else":    {later, "refused", false},
		"and the columns say less than it says": {later, "", false},
		"no JSON":                               {later[:20], "approved", false},
	} {
		now := e
		now.Stored, now.Verb = c.stored, c.verb
		now.Hash = fmt.Sprintf("%x", sha256.Sum256([]byte(c.stored)))
		if err := audittest.Verify([]audit.Entry{now}); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
		now.Hash = e.Hash
		if err := audittest.Verify([]audit.Entry{now}); (err == nil) != (c.stored == e.Stored && c.good) {
			t.Errorf("%s, under the hash of another: %v", name, err)
		}
	}
}

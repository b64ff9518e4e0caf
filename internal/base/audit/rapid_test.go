package audit_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/rapidtest"
)

func report(marks []audit.Mark, entries []audit.Entry) audit.Report {
	v := audit.NewVerifier(marks, nil)
	for _, e := range entries {
		v.Add(e)
	}
	return v.End()
}

// anew gives entries from one on the numbers and hashes of a good chain.
func anew(all []audit.Entry, from int) {
	for i := from; i < len(all); i++ {
		all[i].Seq, all[i].Previous = int64(i+1), ""
		if i > 0 {
			all[i].Previous = all[i-1].Hash
		}
		all[i].Hash = all[i].Sum()
	}
}

// alter changes one field of an entry.
func alter(t *rapid.T, e *audit.Entry) {
	other := rapid.StringMatching(`[a-z]{9}`).Draw(t, "text")
	switch rapid.IntRange(0, 8).Draw(t, "field") {
	case 0:
		e.Actor.Name = other
	case 1:
		e.Actor.UID += rapid.IntRange(1, 9).Draw(t, "uid")
	case 2:
		e.Actor.Kind = other
	case 3:
		e.Change = other
	case 4:
		e.Subject = other
	case 5:
		e.Verb = other
	case 6:
		e.Reason = other
	case 7:
		e.At = e.At.Add(rapid.SampledFrom([]time.Duration{-1, 1, 3600_000}).Draw(t, "ms") * time.Millisecond)
	case 8:
		e.Digests = map[string]string{"tree": other}
	}
}

// The marks are of some commits, and always of the last: that is what lies beside a database.
func TestRandomTamperingIsAlwaysFound(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		all := chain(rapid.IntRange(1, 30).Draw(t, "entries"))
		var marks []audit.Mark
		for i, e := range all {
			if i == len(all)-1 || rapid.Bool().Draw(t, "marked") {
				marks = append(marks, audit.Mark{Seq: e.Seq, Hash: e.Hash})
			}
		}
		if r := report(marks, all); len(r.Faults) > 0 || r.Newer != 0 || r.Entries != int64(len(all)) {
			t.Fatalf("a good log: %+v", r)
		}
		at := rapid.IntRange(0, len(all)-1).Draw(t, "at")
		bad := slices.Clone(all)
		switch rapid.IntRange(0, 5).Draw(t, "how") {
		case 0:
			alter(t, &bad[at])
		case 1:
			alter(t, &bad[at])
			bad[at].Hash = bad[at].Sum()
		case 2:
			alter(t, &bad[at])
			anew(bad, at)
		case 3:
			bad = slices.Delete(bad, at, rapid.IntRange(at+1, len(bad)).Draw(t, "to"))
		case 4:
			bad = slices.Delete(bad, at, rapid.IntRange(at+1, len(bad)).Draw(t, "to"))
			anew(bad, at)
		case 5:
			bad = slices.Insert(bad, at, bad[rapid.IntRange(0, len(bad)-1).Draw(t, "again")])
		}
		r := report(marks, bad)
		if len(r.Faults) == 0 {
			t.Fatal("nothing was found")
		}
		if r.Faults[0].Entry < 1 {
			t.Fatalf("no entry is named: %+v", r.Faults)
		}
	})
}

func TestAShorterRecordIsNoFaultAndALongerOneIs(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		all := chain(rapid.IntRange(2, 30).Draw(t, "entries"))
		known := rapid.IntRange(1, len(all)-1).Draw(t, "known")
		mark := func(i int) []audit.Mark { return []audit.Mark{{Seq: all[i].Seq, Hash: all[i].Hash}} }
		if r := report(mark(known-1), all); len(r.Faults) > 0 || r.Newer != int64(len(all)-known) {
			t.Fatalf("lag: %+v", r)
		}
		r := report(mark(len(all)-1), all[:known])
		if len(r.Faults) != 1 || r.Faults[0].Entry != int64(known+1) {
			t.Fatalf("truncation: %+v", r)
		}
	})
}

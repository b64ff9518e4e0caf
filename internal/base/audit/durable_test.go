package audit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk/disktest"
)

func TestTheHeadRecordIsOnTheDiskOnceItIsClosed(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		h, err := audit.OpenHead(filepath.Join(dir, audit.HeadName))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Note(mark(1)); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		disktest.Say("closed")
	})
	disktest.Ordered(t, calls, `fsync audit\.head`, `say closed`)
}

// mark is one that parses.
func mark(seq int64) audit.Mark {
	return audit.Mark{Seq: seq, Hash: strings.Repeat("0a", 32)}
}

func opened(t *testing.T, path string) *audit.Head {
	t.Helper()
	h, err := audit.OpenHead(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestAHeadRecordOnlyGrowsAndIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), audit.HeadName)
	first := opened(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if first.Last() != (audit.Mark{}) {
		t.Errorf("an empty one ends with %v", first.Last())
	}
	for _, m := range []audit.Mark{mark(1), mark(1), mark(2)} { // the same again is no line of its own
		if err := first.Note(m); err != nil {
			t.Fatal(err)
		}
	}

	again := opened(t, path) // as after a crash: nothing was closed
	if again.Last() != mark(2) {
		t.Errorf("it ends with %v", again.Last())
	}
	if err := again.Note(mark(3)); err != nil {
		t.Fatal(err)
	}
	if err := first.Note(mark(4)); err != nil { // even by one that knows nothing of the other
		t.Fatal(err)
	}
	marks, damaged, err := audit.ReadMarks(path)
	if err != nil || damaged != 0 || len(marks) != 4 || marks[2] != mark(3) {
		t.Errorf("marks %v, damaged %d, %v", marks, damaged, err)
	}
}

func TestALineThatACrashCutOffIsTakenAwayAndNoOther(t *testing.T) {
	whole := "1 " + mark(1).Hash + "\n"
	for name, c := range map[string]struct{ left, stays string }{
		"half a line behind a whole one":   {whole + "2 0a0a", whole},
		"half a line alone":                {"1 0a", ""},
		"a whole line without its end":     {whole + "2 " + mark(2).Hash, whole},
		"nothing to take away":             {whole, whole},
		"a line that is damaged but whole": {"what\n", "what\n"},
		// Not a line of ours: it is evidence, and stays.
		"no end of line within any line's length": {strings.Repeat("x", 300), strings.Repeat("x", 300)},
	} {
		path := filepath.Join(t.TempDir(), audit.HeadName)
		disktest.Put(t, path, c.left, 0o600)
		half, _, err := audit.ReadMarks(path) // one that is being written is not read as whole either
		if err != nil || len(half) > 1 {
			t.Errorf("%s: before it is mended it reads %v, %v", name, half, err)
		}
		last := audit.Mark{}
		if c.stays == whole {
			last = mark(1)
		}
		if h := opened(t, path); h.Last() != last {
			t.Errorf("%s: it ends with %v", name, h.Last())
		}
		if raw, err := os.ReadFile(path); err != nil || string(raw) != c.stays {
			t.Errorf("%s: it is %q, %v", name, raw, err)
		}
	}
}

func TestADamagedLineIsNamedAndTheOthersCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), audit.HeadName)
	text := "1 " + mark(1).Hash + "\n" + "2 nothing\n" + "x\n" + "4 " + mark(4).Hash + "\n" + "5 " + mark(5).Hash[:10]
	disktest.Put(t, path, text, 0o600)
	marks, damaged, err := audit.ReadMarks(path)
	if err != nil || damaged != 2 || len(marks) != 2 || marks[1] != mark(4) {
		t.Errorf("marks %v, damaged %d, %v", marks, damaged, err)
	}
	if marks, damaged, err := audit.ReadMarks(path + " that is absent"); err != nil || damaged != 0 || marks != nil {
		t.Errorf("one that is not there: %v, %d, %v", marks, damaged, err)
	}
}

func TestAMarkIsTakenInExactlyTheFormInWhichItIsPrinted(t *testing.T) {
	good := mark(7)
	if m, err := audit.ParseMark(good.String()); err != nil || m != good {
		t.Errorf("%v, %v", m, err)
	}
	for _, text := range []string{
		"", "7", "7:", ":" + good.Hash, "0:" + good.Hash, "-1:" + good.Hash, "7:" + good.Hash[:62], "7:" + good.Hash + "0a",
		"7:" + strings.ToUpper(good.Hash), "7:" + strings.Repeat("zz", 32), "7 " + good.Hash,
		"7:" + good.Hash + "zz", "99999999999999999999:" + good.Hash, "7a:" + good.Hash,
	} {
		if m, err := audit.ParseMark(text); err == nil {
			t.Errorf("%q is taken as %v", text, m)
		}
	}
}

// The faults that only what lies beside the database tells.
func TestWhatTheMarksKnowIsHeldAgainstTheLog(t *testing.T) {
	all := chain(6)
	marks := func(from []audit.Entry, seqs ...int) (out []audit.Mark) {
		for _, n := range seqs {
			out = append(out, audit.Mark{Seq: from[n-1].Seq, Hash: from[n-1].Hash})
		}
		return out
	}
	other := chain(6)
	other[2].Verb = "refused"
	anew(other, 2) // from entry 3 on another log, good in itself
	altered := chain(6)
	altered[3].Reason = "\xff" // JSON shows it as another character, so its hash alone would not tell
	altered[3].Hash = altered[3].Sum()
	altered[4].Previous = altered[3].Hash
	anew(altered, 4)
	for name, c := range map[string]struct {
		marks    []audit.Mark
		expected *audit.Mark
		log      []audit.Entry
		faults   []int64 // the entries they name
	}{
		"two marks that do not fit are one run": {marks(other, 2, 4, 6), nil, all, []int64{3}},
		"all is known":                          {marks(all, 2, 4, 6), nil, all, nil},
		"written anew behind a mark that fits":  {marks(all, 2, 4, 6), nil, other, []int64{3}},
		"cut off behind the last mark but one":  {marks(all, 2, 6), nil, all[:4], []int64{5}},
		"the record is gone":                    {nil, nil, all, []int64{6}},
		"kept elsewhere, and it fits":           {marks(all, 6), &marks(all, 3)[0], all, nil},
		"kept elsewhere, and it is the last":    {marks(all, 6), &marks(all, 6)[0], all, nil},
		"kept elsewhere, and another":           {marks(other, 6), &marks(all, 4)[0], other, []int64{4}},
		"kept elsewhere, and it is cut off":     {marks(all, 3), &marks(all, 5)[0], all[:3], []int64{4}},
		"a text that was never stored":          {marks(altered, 6), nil, altered, []int64{4}},
		"an empty log and an empty record":      {nil, nil, nil, nil},
		"an empty log, and a record that knows": {marks(all, 2), nil, nil, []int64{1}},
	} {
		v := audit.NewVerifier(c.marks, c.expected)
		for _, e := range c.log {
			v.Add(e)
		}
		r := v.End()
		if !slices.Equal(places(r), c.faults) || r.Faults == nil {
			t.Errorf("%s: %+v, want faults at %v", name, r.Faults, c.faults)
		}
	}

	v := audit.NewVerifier(marks(all, 6), nil)
	for i, e := range all {
		if i == 2 {
			v.Unreadable(e.Seq, os.ErrInvalid)
			continue
		}
		v.Add(e)
	}
	if r := v.End(); !slices.Equal(places(r), []int64{3}) || r.Entries != 6 || r.Since != 6 || r.Newer != 0 || r.Last != marks(all, 6)[0] {
		t.Errorf("an entry that cannot be read is one fault, and does not make the next one another: %+v", r)
	}
}

// places are the entries that a report's faults name.
func places(r audit.Report) (all []int64) {
	for _, f := range r.Faults {
		all = append(all, f.Entry)
	}
	return all
}

func TestAReportNamesEachEntryOnceAndSaysWhichWasReplacedWhereItIsKnown(t *testing.T) {
	replaced := func(i int) []audit.Entry { // one entry that is good in itself, and follows none
		all := chain(6)
		all[i].Previous = strings.Repeat("0", 64)
		for at := i; at < 6; at++ {
			if at > i {
				all[at].Previous = all[at-1].Hash
			}
			all[at].Hash = all[at].Sum()
		}
		return all
	}
	known := func(e audit.Entry) []audit.Mark { return []audit.Mark{{Seq: e.Seq, Hash: e.Hash}} }
	gap := slices.Delete(chain(6), 2, 4)
	altered := chain(6)
	altered[2].Verb, altered[3].Verb = "refused", "refused"
	for name, c := range map[string]struct {
		marks []audit.Mark
		log   []audit.Entry
		want  []string
	}{
		"the first":                  {known(replaced(0)[5]), replaced(0), []string{"entry 1 was replaced: it says that there was one before it"}},
		"behind one that is known":   {append(known(chain(6)[1]), known(replaced(2)[5])...), replaced(2), []string{"entry 3 was replaced: it does not follow entry 2"}},
		"behind one that is not":     {known(replaced(2)[5]), replaced(2), []string{"entry 3 does not follow entry 2: one of the two was replaced"}},
		"another than the record's":  {append(known(chain(6)[1]), known(replaced(2)[5])...), chain(6), []string{"entries 3 to 6 are not what was written: the head record knows another entry 6"}},
		"a gap is one fault":         {known(chain(6)[5]), gap, []string{"entries 3 to 4 are missing"}},
		"two that were only altered": {known(chain(6)[5]), altered, []string{`entry 3 (refused, "apr-2") was altered`, `entry 4 (refused, "apr-3") was altered`}},
	} {
		var said []string
		for _, f := range report(c.marks, c.log).Faults {
			said = append(said, f.Text)
		}
		if !slices.Equal(said, c.want) {
			t.Errorf("%s: %q", name, said)
		}
	}

	v := audit.NewVerifier([]audit.Mark{mark(3)}, nil)
	v.Unreadable(1, os.ErrInvalid)
	v.Unreadable(3, os.ErrInvalid) // 2 is not there
	v.Fault(3, "said before")
	if r := v.End(); !slices.Equal(places(r), []int64{1, 2, 3}) || r.Last != (audit.Mark{Seq: 3}) || r.Entries != 2 {
		t.Errorf("%+v", r)
	}
	for i := range int64(2 * audit.FaultsMax) {
		v.Fault(10+i, "one of many")
	}
	if r := v.End(); len(r.Faults) != audit.FaultsMax {
		t.Errorf("%d faults are told", len(r.Faults))
	}
}

func TestAHeadRecordThatCannotBeUsedIsAnError(t *testing.T) {
	folder := t.TempDir()
	if h, err := audit.OpenHead(folder); err == nil {
		t.Errorf("a folder is opened as one: %v", h)
	}
	if _, _, err := audit.ReadMarks(folder); err == nil {
		t.Error("a folder is read as one")
	}
	h := opened(t, filepath.Join(folder, audit.HeadName))
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Note(mark(1)); err == nil || h.Last() != (audit.Mark{}) {
		t.Errorf("a mark that was not written: %v, and it ends with %v", err, h.Last())
	}
}

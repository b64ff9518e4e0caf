package audit

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Fault is one thing that is wrong with the log.
type Fault struct {
	Entry int64  `json:"entry"` // the first entry that is concerned
	Text  string `json:"text"`  // what is wrong, naming every entry
}

// Report is what a whole reading of the log found.
type Report struct {
	Entries int64   `json:"entries"`
	Last    Mark    `json:"last"`   // the last entry; keep it elsewhere, and nothing before it can be replaced unseen
	Since   int64   `json:"since"`  // entry with which the head record begins; 0 = it is empty
	Newer   int64   `json:"newer"`  // entries at the end that the head record does not know yet
	Faults  []Fault `json:"faults"` // in the order of the entries; at most FaultsMax
}

// FaultsMax bounds the faults of one report; what comes behind them is not named.
const FaultsMax = 100

// Verifier reads a log from its first entry to its last. It holds one entry at a time.
type Verifier struct {
	marks    map[int64][]Mark
	top      int64 // of the marks
	expected *Mark
	report   Report
	next     int64 // the entry that must come
	vouched  int64 // the last entry whose mark fits
	named    map[int64]bool
}

// NewVerifier returns one that begins at entry 1. marks are the head record's; expected is
// a mark that somebody kept elsewhere, or nil.
func NewVerifier(marks []Mark, expected *Mark) *Verifier {
	v := &Verifier{marks: map[int64][]Mark{}, expected: expected, next: 1, named: map[int64]bool{}}
	for _, m := range marks {
		v.marks[m.Seq] = append(v.marks[m.Seq], m)
		v.top = max(v.top, m.Seq)
	}
	if len(marks) > 0 {
		v.report.Since = marks[0].Seq
	}
	return v
}

// Fault adds one that was found elsewhere. An entry is named once.
func (v *Verifier) Fault(entry int64, format string, args ...any) {
	if v.named[entry] || len(v.report.Faults) >= FaultsMax {
		return
	}
	v.named[entry] = true
	v.report.Faults = append(v.report.Faults, Fault{Entry: entry, Text: fmt.Sprintf(format, args...)})
}

// Unreadable says that the row of an entry cannot be read as one.
func (v *Verifier) Unreadable(seq int64, why error) {
	v.place(seq)
	v.Fault(seq, "entry %d was altered: it cannot be read (%v)", seq, why)
	v.report.Entries++
	v.report.Last = Mark{Seq: seq}
}

// Add takes the entry that stands behind the last one.
func (v *Verifier) Add(e Entry) {
	follows := v.place(e.Seq)
	whole := e.Intact()
	if !whole {
		v.Fault(e.Seq, "entry %d (%s, %q) was altered", e.Seq, e.Verb, e.Subject)
	}
	if whole && follows && e.Previous != v.report.Last.Hash {
		v.loose(e.Seq)
	}
	v.compare(e)
	v.report.Entries++
	v.report.Last = Mark{Seq: e.Seq, Hash: e.Hash}
}

// loose says that an entry does not name the hash of the one before it, as far as it is known which of them is wrong.
func (v *Verifier) loose(seq int64) {
	before := seq - 1
	switch {
	case before == 0:
		v.Fault(seq, "entry 1 was replaced: it says that there was one before it")
	case v.vouched == before:
		v.Fault(seq, "entry %d was replaced: it does not follow entry %d", seq, before)
	case !v.named[before]:
		v.Fault(seq, "entry %d does not follow entry %d: one of the two was replaced", seq, before)
	}
}

// place looks at an entry's number, and reports whether it is the one that must come.
func (v *Verifier) place(seq int64) bool {
	expected := v.next
	v.next = seq + 1
	switch {
	case seq > expected:
		v.Fault(expected, "%s missing", span(expected, seq-1))
	case seq < expected:
		v.Fault(seq, "entry %d stands where entry %d belongs", seq, expected)
	}
	return seq == expected
}

// compare holds an entry against what was written down beside the database.
func (v *Verifier) compare(e Entry) {
	if x := v.expected; x != nil && x.Seq == e.Seq && x.Hash != e.Hash {
		v.Fault(e.Seq, "entry %d is not the expected one: somebody replaced it, or an entry before it", e.Seq)
	}
	for _, m := range v.marks[e.Seq] {
		if m.Hash == e.Hash {
			v.vouched = e.Seq
			continue
		}
		v.Fault(v.vouched+1, "%s not what was written: the head record knows another entry %d", span(v.vouched+1, e.Seq), e.Seq)
	}
}

// End returns the report.
func (v *Verifier) End() Report {
	last := v.report.Last.Seq
	if v.top > last {
		v.Fault(v.next, "%s missing at the end", span(v.next, v.top))
	}
	if x := v.expected; x != nil && x.Seq > last {
		v.Fault(v.next, "%s missing at the end", span(v.next, x.Seq))
	}
	if v.top == 0 && v.report.Entries > 0 {
		v.Fault(last, "entries after %d may be missing: the head record is gone", last)
	}
	v.report.Newer = max(last-v.top, 0)
	if v.report.Faults == nil {
		v.report.Faults = []Fault{}
	}
	return v.report
}

// span names one entry or a run of them, with the verb that follows.
func span(first, last int64) string {
	if first >= last {
		return fmt.Sprintf("entry %d is", first)
	}
	return fmt.Sprintf("entries %d to %d are", first, last)
}

// Intact reports whether an entry is what its hash was made of. Text that is not UTF-8 was never
// stored, and JSON would show it as something else. Where the JSON of that hash is stored, the hash is that of what is
// stored, whatever this program would write, and the columns must say the same.
func (e Entry) Intact() bool {
	for _, s := range []string{e.Actor.Kind, e.Actor.Name, string(e.Actor.Person), e.Actor.Identity, e.Change, e.Subject, e.Verb, e.Reason, e.Previous} {
		if !utf8.ValidString(s) {
			return false
		}
	}
	if e.Stored == "" {
		return e.Hash == e.Sum()
	}
	var said Entry
	if err := json.Unmarshal([]byte(e.Stored), &said); err != nil {
		return false
	}
	return e.Hash == sum(e.Stored) && said.form() == e.form()
}

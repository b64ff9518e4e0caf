package metric

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"sallyport/internal/base/id"
)

// scrape is what a scraper reads.
func scrape(t testing.TB, s *Set) string {
	t.Helper()
	families, err := s.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return "\n" + out.String()
}

// busy hands n of everything to a set.
func busy(s *Set, n int) {
	for i := range n {
		of := id.Change(fmt.Sprintf("chg-%08d", i))
		c := s.Taking(of, triggers[i%len(triggers)])
		c.Frozen()
		c.Diffed(int64(i))
		c.Judged(i)
		c.Done(words[i%len(words)], nil)
		s.Paused(of, time.Duration(i), nil)
		s.Resumed(of, time.Duration(i), nil)
		s.Handled(of)(i, time.Duration(i))
		s.Held(of, int64(i))
		s.Reverted(of, nil)
		s.SecretLookup(i%2 == 0)
		s.SessionRuns()()
		s.Stands()()
		s.SessionWaits()()
		s.Moving(of, "landed")
		s.Moved(of, states[i%len(states)], i%2 == 0, i%2 == 0)
	}
}

func TestANilSetCountsNothing(t *testing.T) {
	var s *Set
	busy(s, 2)
	if a, r := s.Alerts(), s.Report(); a != nil || !reflect.DeepEqual(r, Report{}) {
		t.Errorf("%v %v", a, r)
	}
	if _, ok := s.Of(change); ok {
		t.Error("it has figures")
	}
	if f, err := s.Gather(); f != nil || err != nil {
		t.Errorf("%v %v", f, err)
	}
}

func TestACheckpointIsMeasuredByPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		c := s.Taking(change, "changes")
		time.Sleep(7 * time.Millisecond)
		c.Frozen()
		time.Sleep(20 * time.Millisecond)
		c.Diffed(4096)
		time.Sleep(300 * time.Millisecond)
		c.Judged(3)
		time.Sleep(time.Millisecond)
		c.Done("invalid", nil)
		want := map[Measure]time.Duration{
			Checkpoint: 328 * time.Millisecond, Frozen: 321 * time.Millisecond, Diff: 20 * time.Millisecond,
			Validation: 300 * time.Millisecond, File: 100 * time.Millisecond,
		}
		for _, row := range s.Report().Rows {
			if row.Max != want[row.Measure] || row.Count != min(int64(want[row.Measure]), 1) {
				t.Errorf("%s: %d, %s, want %s", row.Measure, row.Count, row.Max, want[row.Measure])
			}
		}
		f, _ := s.Of(change)
		if f.Invalid != 1 || f.UpperBytes != 4096 || f.Last != 328*time.Millisecond {
			t.Errorf("figures %+v", f)
		}
	})
}

func TestACheckpointThatCouldNotBeTakenIsCountedAsThat(t *testing.T) {
	s := New(Options{})
	s.Taking(change, "end").Done("", errors.New("full disk"))
	if text := scrape(t, s); !strings.Contains(text, "\n"+`sallyport_checkpoints_total{trigger="end",verdict="failed"} 1`+"\n") {
		t.Error("it is not in the scrape")
	}
	f, _ := s.Of(change)
	if f.Failed != 1 || f.Valid+f.Invalid != 0 {
		t.Errorf("%+v", f)
	}
	for _, row := range s.Report().Rows {
		if (row.Count == 1) != (row.Measure == Checkpoint) {
			t.Errorf("%s has %d samples: a phase that did not end was measured", row.Measure, row.Count)
		}
	}
}

func TestALandingIsCountedOnceAndOnlyWhenItIsCommitted(t *testing.T) {
	s := New(Options{})
	s.Moving(change, "landed") // its transaction went wrong
	s.Moving(change, "landed")
	if text := scrape(t, s); !strings.Contains(text, "\nsallyport_landings_total 0\n") {
		t.Error("counted before it was committed")
	}
	s.Moved(change, "finalized", false, true)
	s.Moved(change, "finalized", false, true) // told twice
	s.Moving("chg-00000002", "unchanged")
	s.Moved("chg-00000002", "finalized", false, true) // nothing to land
	s.Moving("chg-00000003", "landed")
	s.Moved("chg-00000003", "finalized", true, true)
	text := scrape(t, s)
	for _, want := range []string{"sallyport_landings_total 2", "sallyport_rollbacks_total 1", `sallyport_change_moves_total{state="finalized"} 4`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %q", want)
		}
	}
}

func TestSessionsThatRunAndWaitAreCountedUntilTheyAreOver(t *testing.T) {
	s := New(Options{})
	running, waiting := s.SessionRuns(), s.SessionWaits()
	s.SessionWaits()
	waiting()
	waiting() // told twice
	if r := s.Report(); r.Running != 1 || r.Waiting != 1 {
		t.Errorf("%d run, %d wait", r.Running, r.Waiting)
	}
	running()
	if r := s.Report(); r.Running != 0 {
		t.Errorf("%d run", r.Running)
	}
}

func TestFiguresAreKeptOfTheLastChangesAndEndedOnesGoFirst(t *testing.T) {
	s := New(Options{})
	s.Upper("chg-working0", 7)
	s.Upper("chg-ended000", 7)
	s.Moved("chg-ended000", "failed", false, true)
	for i := range changesMax - 1 {
		s.Upper(id.Change(fmt.Sprintf("chg-%08d", i)), 1)
	}
	if _, ok := s.Of("chg-ended000"); ok || len(s.figures.of) != changesMax {
		t.Errorf("the ended one is there %t, %d are kept", ok, len(s.figures.of))
	}
	if _, ok := s.Of("chg-working0"); !ok {
		t.Error("one that works went before one that ended")
	}
	s.Upper("chg-working0", 8) // touched: the one that was quiet for longest goes
	s.Upper("chg-another0", 1)
	if _, ok := s.Of("chg-00000000"); ok {
		t.Error("one that was touched lately went first")
	}
	if got, want := s.Report().UpperBytes, int64(8+changesMax-1); got != want {
		t.Errorf("%d bytes in all, want %d", got, want)
	}
}

func TestSumsAreThoseOfTheChangesThatAreKept(t *testing.T) {
	s := New(Options{})
	busy(s, 700)
	s.Handled("chg-00000699")(12, 1)
	s.Handled("chg-00000698")(30, 1)
	s.Handled("chg-00000698")(5, 1)
	kept := s.figures.totals()
	s.figures.stale = true
	if counted := s.figures.totals(); kept != counted || kept.queue == 0 || kept.upper == 0 {
		t.Errorf("kept %+v, counted %+v", kept, counted)
	}
}

func TestAScrapeNeverCarriesWhatASetIsHanded(t *testing.T) {
	s := New(Options{})
	const evil = "EVIL\"}\n/home/me/secret \x1b[31m"
	c := s.Taking(evil, evil)
	c.Diffed(1)
	c.Judged(1)
	c.Done(evil, nil)
	s.Taking(evil, evil).Done(evil, errors.New(evil))
	s.Paused(evil, time.Minute, errors.New(evil))
	s.Resumed(evil, time.Minute, errors.New(evil))
	s.Reverted(evil, errors.New(evil))
	s.Handled(evil)(9999, time.Minute)
	s.Upper(evil, 9<<30)
	s.Held(evil, 9<<30)
	s.Moving(evil, evil)
	s.Moved(evil, evil, true, false)
	text := scrape(t, s)
	for _, part := range []string{"EVIL", "evil", "home", "secret ", "\x1b", "chg-"} {
		if strings.Contains(text, part) {
			t.Errorf("a scrape carries %q", part)
		}
	}
	for _, want := range []string{`{trigger="other",verdict="other"} 1`, `{trigger="other",verdict="failed"} 1`, `moves_total{state="other"} 1`, `sallyport_alert{alert="disk_change"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if r := s.Report(); strings.Contains(fmt.Sprint(r.Counts), "EVIL") {
		t.Error("a count is named by what was handed in")
	}
}

func TestAScrapeIsBoundedHoweverMuchWasMeasured(t *testing.T) {
	few, many := New(Options{}), New(Options{})
	busy(few, 300)
	busy(many, 10_000)
	lines := func(s *Set) int { return strings.Count(scrape(t, s), "\n") }
	if a, b := lines(few), lines(many); a != b || b > 400 {
		t.Errorf("%d lines after 300 of each, %d after 10,000", a, b)
	}
	if size := len(scrape(t, many)); size > 32<<10 {
		t.Errorf("a scrape has %d bytes", size)
	}
	for i := range many.windows {
		if n := cap(many.windows[i].samples); n > 2*windowMax {
			t.Errorf("measure %d keeps %d samples", i, n)
		}
	}
	per := testing.AllocsPerRun(20, func() { many.Gather() }) // scrape has checked it
	if base := testing.AllocsPerRun(20, func() { few.Gather() }); per > base+100 || per > 3000 {
		t.Errorf("a scrape allocates %.0f times after 10,000 of each, %.0f after 300", per, base)
	}
	if per := testing.AllocsPerRun(100, func() { many.Paused(change, 1, nil) }); per > 4 {
		t.Errorf("recording allocates %.0f times", per)
	}
}

func TestNothingRunsWhenNobodyMeasures(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := New(Options{})
	busy(s, 100)
	scrape(t, s)
	s.Report()
}

func TestTheKernelSaysWhatTheDaemonHolds(t *testing.T) {
	p, err := readProcess()
	if err != nil {
		t.Fatal(err)
	}
	if p.ResidentBytes < 1<<20 || p.ResidentBytes > 1<<40 || p.Descriptors < 3 {
		t.Errorf("%+v", p)
	}
}

func BenchmarkRecordAnEvent(b *testing.B) {
	s := New(Options{})
	busy(s, 300)
	handled := s.Handled(change)
	b.ReportAllocs()
	for b.Loop() {
		handled(3, time.Millisecond)
	}
}

func BenchmarkScrape(b *testing.B) {
	s := New(Options{})
	busy(s, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

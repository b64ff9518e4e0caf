package metric

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
)

const change = id.Change("chg-0a1b2c3d")

// heard is a Set whose alerts are kept in words: "+name" when raised, "-name" when over.
func heard(process ...Process) (*Set, func() string) {
	var mu sync.Mutex
	var said []string
	s := New(Options{
		Process: func() (Process, error) {
			if len(process) == 0 {
				return Process{}, nil
			}
			p := process[0]
			if len(process) > 1 {
				process = process[1:]
			}
			return p, nil
		},
		Alert: func(a Alert) {
			mu.Lock()
			defer mu.Unlock()
			sign := "+"
			if a.Cleared {
				sign = "-"
			}
			said = append(said, sign+a.Name)
		},
	})
	return s, func() string {
		mu.Lock()
		defer mu.Unlock()
		out := strings.Join(said, " ")
		said = nil
		return out
	}
}

func TestEachAlertIsRaisedOnceAndClearedWithHysteresis(t *testing.T) {
	type step struct {
		do   func(s *Set)
		want string // told by it
	}
	checkpoint := func(took time.Duration) func(s *Set) {
		return func(s *Set) { s.record(func() { s.observe(Checkpoint, took) }) }
	}
	verdict := func(times int, word string) func(s *Set) {
		return func(s *Set) {
			for range times {
				s.Taking(change, "interval").Done(word, nil)
			}
		}
	}
	upper := func(bytes int64, of id.Change) func(s *Set) { return func(s *Set) { s.Upper(of, bytes) } }
	queue := func(n int) func(s *Set) { return func(s *Set) { s.Handled(change)(n, 0) } }
	for name, steps := range map[string][]step{
		"three slow checkpoints in a row": {
			{checkpoint(3 * time.Second), "+checkpoint_over_maximum"},
			{checkpoint(3 * time.Second), ""},
			{checkpoint(time.Second), ""}, // not in a row
			{checkpoint(3 * time.Second), ""},
			{checkpoint(3 * time.Second), ""},
			{checkpoint(3 * time.Second), "+checkpoint_slow_repeatedly"},
			{checkpoint(3 * time.Second), ""},
			{checkpoint(2 * time.Second), ""}, // exactly the limit is within
			{checkpoint(2 * time.Second), ""},
			{checkpoint(2 * time.Second), "-checkpoint_slow_repeatedly"},
			{checkpoint(time.Second), ""},
			{checkpoint(time.Second), "-checkpoint_over_maximum"},
		},
		"a rate needs twenty verdicts": {
			{verdict(19, "invalid"), ""},
			{verdict(1, "invalid"), "+validation_failures"},
			{verdict(100, "valid"), "-validation_failures"},
		},
		"a rate of exactly a tenth is within": {
			{verdict(90, "valid"), ""},
			{verdict(10, "invalid"), ""},
			{verdict(1, "invalid"), "+validation_failures"}, // a valid one left the window
			{verdict(90, "valid"), ""},                      // 10 of 100 keep it
			{verdict(1, "valid"), ""},                       // 9
			{verdict(1, "valid"), "-validation_failures"},   // 8
		},
		"what could not be judged has failed":  {{verdict(17, "valid"), ""}, {verdict(3, "novel"), "+validation_failures"}},
		"what nobody was to judge did not":     {{verdict(40, "skipped"), ""}},
		"disk of one change":                   {{upper(858_993_459, change), ""}, {upper(858_993_460, change), "+disk_change"}, {upper(800<<20, change), ""}, {upper(700<<20, change), "-disk_change"}},
		"disk of all, and its end with theirs": {{upper(800<<20, change), ""}, {all(12, 800<<20), "+disk_all"}, {func(s *Set) { end(s, 12) }, "-disk_all"}},
		"memory of one watch":                  {{func(s *Set) { s.Held(change, 41<<20) }, "+memory_change"}, {func(s *Set) { s.Held(change, 36<<20) }, ""}, {func(s *Set) { s.Held(change, 1) }, "-memory_change"}},
		"the queue":                            {{queue(1000), ""}, {queue(1001), "+event_queue"}, {queue(900), ""}, {queue(5000), ""}, {queue(800), "-event_queue"}},
	} {
		s, told := heard()
		for i, step := range steps {
			step.do(s)
			if got := told(); got != step.want {
				t.Errorf("%s, step %d: told %q, want %q", name, i, got, step.want)
			}
		}
	}
}

// all has n changes hold so much each.
func all(n int, bytes int64) func(s *Set) {
	return func(s *Set) {
		for i := range n {
			s.Upper(id.Change(fmt.Sprintf("chg-%08d", i)), bytes)
		}
	}
}

func end(s *Set, n int) {
	for i := range n {
		s.Moved(id.Change(fmt.Sprintf("chg-%08d", i)), "cancelled", false, true)
	}
}

func TestEveryMeasureOverItsMaximumAlertsAtTheFirstMissAndIsCalmAfterFiveWithin(t *testing.T) {
	promised := 0
	for _, st := range standards {
		s, told := heard()
		once := func(d time.Duration) string {
			s.record(func() { s.observe(st.Measure, d) })
			return told()
		}
		if st.maximum == 0 {
			if got := once(time.Hour); got != "" {
				t.Errorf("%s promises nothing and tells %q", st.Measure, got)
			}
			continue
		}
		promised++
		name := string(st.Measure) + "_over_maximum"
		if got := once(st.maximum); got != "" {
			t.Errorf("%s at its maximum tells %q", st.Measure, got)
		}
		if got := once(st.maximum + 1); got != "+"+name {
			t.Errorf("%s over its maximum tells %q", st.Measure, got)
		}
		for i := range recentMax - 1 {
			if got := once(0); got != "" {
				t.Errorf("%s, %d after: %q", st.Measure, i, got)
			}
		}
		if got := once(0); got != "-"+name {
			t.Errorf("%s within again tells %q", st.Measure, got)
		}
	}
	if promised != 6 {
		t.Errorf("%d measures have a maximum", promised)
	}
}

func TestTheDaemonsOwnMemoryAndDescriptorsAreJudgedWhenSomebodyReads(t *testing.T) {
	s, told := heard(Process{ResidentBytes: 401 << 20}, Process{ResidentBytes: 100 << 20, Descriptors: 8001}, Process{})
	for i, want := range []string{"+memory_all", "-memory_all +descriptors_all", "-descriptors_all"} {
		s.Alerts()
		if got := told(); got != want {
			t.Errorf("look %d: %q, want %q", i, got, want)
		}
	}
	s, told = heard(Process{ResidentBytes: 401 << 20})
	s.Alerts()
	s.Process = func() (Process, error) { return Process{}, errors.New("no /proc") }
	if s.Alerts(); told() != "+memory_all" {
		t.Error("what could not be read cleared an alert")
	}
}

func TestAnAlertSaysWhatIsOverWhichLimitSinceWhenAndOfWhom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := heard()
		began := time.Now()
		s.Upper(change, 1000<<20)
		time.Sleep(3 * time.Minute)
		s.Upper("chg-ffffffff", 1010<<20)
		a := s.Alerts()
		if len(a) != 1 {
			t.Fatalf("alerts %+v", a)
		}
		want := Alert{Name: "disk_change", Text: "one change takes 1010 MiB of the disk; the alert is at 819 MiB (chg-ffffffff)",
			Since: began, Lasted: 3 * time.Minute, Change: "chg-ffffffff", Figure: 1010 << 20, Limit: 0.8 * (1 << 30), Unit: "bytes"}
		if a[0] != want {
			t.Errorf("got  %+v\nwant %+v", a[0], want)
		}
	})
}

func TestAReadingOfAQueueIsForgottenWhenItSaysNothingAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, told := heard()
		s.Handled(change)(4000, time.Millisecond)
		time.Sleep(queueFor)
		if s.Alerts(); told() != "+event_queue" {
			t.Error("forgotten too early")
		}
		time.Sleep(1)
		if s.Alerts(); told() != "-event_queue" {
			t.Error("an agent that fell silent keeps its alert")
		}
	})
}

func TestAClockThatJumpsRaisesAndClearsNothing(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // no monotonic reading: the worst of clocks
	s, told := heard()
	s.Now = func() time.Time { return at }
	s.record(func() { s.observe(Diff, 6*time.Second) })
	if got := told(); got != "+diff_over_maximum" {
		t.Fatalf("told %q", got)
	}
	for _, jump := range []time.Duration{-365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour, -time.Second} {
		at = at.Add(jump)
		s.record(func() { s.observe(Checkpoint, time.Second) })
		if a := s.Alerts(); len(a) != 1 || a[0].Lasted < 0 || told() != "" {
			t.Errorf("after a jump of %s: %+v", jump, a)
		}
	}
	// A length of time that was taken from two wall clocks may be less than nothing.
	s.Handled(change)(1, -time.Hour)
	s.Paused(change, -1, nil)
	r := s.Report()
	for _, row := range r.Rows {
		if (row.Measure == Event || row.Measure == Pause) && row.Count != 0 {
			t.Errorf("%s counts what cannot be", row.Measure)
		}
	}
	if text := scrape(t, s); !strings.Contains(text, "\nsallyport_samples_refused_total 2\n") {
		t.Error("what cannot be is not told")
	}
}

func TestWhoHearsAnAlertMayAskTheSetAndHearsAllInOrder(t *testing.T) {
	var mu sync.Mutex
	up, said := map[string]bool{}, 0
	var s *Set
	s = New(Options{Alert: func(a Alert) {
		s.Reverted(change, nil) // records, reads
		s.Report()
		mu.Lock()
		defer mu.Unlock()
		if said++; up[a.Name] == !a.Cleared {
			t.Errorf("%s is told twice: cleared %t", a.Name, a.Cleared)
		}
		up[a.Name] = !a.Cleared
	}})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 200 {
				s.Upper(change, int64(i%2)<<30)
				s.Handled(change)(i%3*1000, time.Duration(i%5)*20*time.Millisecond)
				s.Alerts()
			}
		})
	}
	group.Wait()
	mu.Lock()
	defer mu.Unlock()
	standing := map[string]bool{}
	for _, a := range s.Alerts() {
		standing[a.Name] = true
	}
	for name, raised := range up {
		if raised != standing[name] {
			t.Errorf("%s was told as raised %t and is %t", name, raised, standing[name])
		}
	}
	if said < 4 {
		t.Errorf("only %d were told", said)
	}
}

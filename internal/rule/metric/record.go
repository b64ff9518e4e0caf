package metric

import (
	"slices"
	"time"

	"sallyport/internal/base/id"
)

// known returns a word if it is listed; a label never carries anything else.
func known(word string, list []string) string {
	if slices.Contains(list, word) {
		return word
	}
	return other
}

// result is how something ended, as a label.
func result(err error) string {
	if err != nil {
		return failedWord
	}
	return okWord
}

// Taking is the stopwatch of one checkpoint. Frozen, Diffed and Judged each end a phase;
// Done ends it, however it went. A nil Taking measures nothing.
type Taking struct {
	set             *Set
	change          id.Change
	trigger         string
	began, at       time.Time
	frozen          time.Time // zero: nothing ran
	diff, judged    time.Duration
	files           int
	upper           int64 // -1: not known
	diffed, decided bool
}

// Taking starts the stopwatch of a checkpoint.
func (s *Set) Taking(change id.Change, trigger string) *Taking {
	if s == nil {
		return nil
	}
	now := time.Now()
	return &Taking{set: s, change: change, trigger: trigger, began: now, at: now, upper: -1}
}

// Frozen says that the session stands.
func (t *Taking) Frozen() {
	if t != nil {
		t.at = time.Now()
		t.frozen = t.at
	}
}

// Diffed says that the workspace was walked, read and compared, and how many bytes the
// agent has there.
func (t *Taking) Diffed(upperBytes int64) {
	if t != nil {
		now := time.Now()
		t.diff, t.diffed, t.at, t.upper = now.Sub(t.at), true, now, upperBytes
	}
}

// Judged says that so many files were judged.
func (t *Taking) Judged(files int) {
	if t != nil {
		now := time.Now()
		t.judged, t.decided, t.files, t.at = now.Sub(t.at), true, files, now
	}
}

// Done says that the session runs again and what the verdict is; with an error there is none.
func (t *Taking) Done(verdict string, err error) {
	if t == nil {
		return
	}
	now := time.Now()
	t.set.record(func() { t.record(now, verdict, err) })
}

func (t *Taking) record(now time.Time, verdict string, err error) {
	s, whole := t.set, now.Sub(t.began)
	s.observe(Checkpoint, whole)
	if !t.frozen.IsZero() {
		s.observe(Frozen, now.Sub(t.frozen))
	}
	if t.diffed {
		s.observe(Diff, t.diff)
	}
	word := known(verdict, words)
	if t.decided && word != skippedWord {
		s.observe(Validation, t.judged)
		s.observe(File, t.judged/time.Duration(max(t.files, 1)))
	}
	f := s.figures.at(t.change)
	f.Last, f.Longest = whole, max(f.Longest, whole)
	if t.upper >= 0 {
		s.upperOf(t.change, t.upper)
	}
	switch {
	case err != nil:
		word = failedWord
		f.Failed++
	case word == validWord:
		f.Valid++
	case word == skippedWord:
		f.Skipped++
	default:
		f.Invalid++
	}
	if word != skippedWord { // nobody was asked
		s.verdicts.add(word != validWord) // what is not known to be valid has failed
	}
	s.count("checkpoints "+word, s.checkpoints.WithLabelValues(known(t.trigger, triggers), word))
}

// Stands says that a session stands for a checkpoint and what follows from it, until what is
// returned is called.
func (s *Set) Stands() (over func()) {
	began := time.Now()
	return s.once(func() { s.observe(Frozen, time.Since(began)) })
}

// Paused records how long it took until a session stood, or that it did not come to stand.
func (s *Set) Paused(change id.Change, took time.Duration, err error) {
	s.record(func() {
		s.observe(Pause, took)
		f := s.figures.at(change)
		f.Pauses++
		if err != nil {
			f.PausesFailed++
		}
		s.count("pauses "+result(err), s.pauses.WithLabelValues(result(err)))
	})
}

// Resumed records how long it took until a session ran again, or that it does not.
func (s *Set) Resumed(change id.Change, took time.Duration, err error) {
	s.record(func() {
		s.observe(Resume, took)
		s.figures.at(change)
		s.count("resumes "+result(err), s.resumes.WithLabelValues(result(err)))
	})
}

// Handled returns what a watch calls after each reading of a change's queue: with how many
// events it found there, and how long it took until they were known.
func (s *Set) Handled(change id.Change) func(events int, took time.Duration) {
	return func(events int, took time.Duration) {
		s.record(func() {
			s.observe(Event, took)
			f := s.figures.at(change)
			f.Events += int64(max(events, 0))
			f.EventLongest = max(f.EventLongest, took)
			s.figures.queue(f, max(events, 0))
		})
	}
}

// Upper says how many bytes the agent of a change has on disk.
func (s *Set) Upper(change id.Change, bytes int64) {
	s.record(func() { s.upperOf(change, bytes) })
}

func (s *Set) upperOf(change id.Change, bytes int64) {
	f := s.figures.at(change)
	f.UpperBytes = max(bytes, 0)
	f.UpperMaxBytes = max(f.UpperMaxBytes, f.UpperBytes)
	s.figures.stale = true
}

// Held says how many bytes of memory watching a change takes.
func (s *Set) Held(change id.Change, bytes int64) {
	s.record(func() {
		s.figures.at(change).MemoryBytes = max(bytes, 0)
		s.figures.stale = true
	})
}

// Reverted records that something was put back under an agent, or that it could not be.
func (s *Set) Reverted(change id.Change, err error) {
	s.record(func() {
		if err == nil {
			s.figures.at(change).Reverts++
		}
		s.count("reverts "+result(err), s.reverts.WithLabelValues(result(err)))
	})
}

// SecretLookup records whether a scan's result was known already.
func (s *Set) SecretLookup(hit bool) {
	word := "miss"
	if hit {
		word = "hit"
	}
	s.record(func() { s.count("secret lookups "+word, s.lookups.WithLabelValues(word)) })
}

// SessionWaits says that a session waits for a place, until what is returned is called.
func (s *Set) SessionWaits() (over func()) {
	s.record(func() { s.waiting++ })
	return s.once(func() { s.waiting-- })
}

// SessionRuns says that a session runs, until what is returned is called.
func (s *Set) SessionRuns() (over func()) {
	s.record(func() { s.running++ })
	return s.once(func() { s.running-- })
}

// once returns a function that records at its first call only.
func (s *Set) once(do func()) func() {
	done := false
	return func() {
		s.record(func() {
			if !done {
				done = true
				do()
			}
		})
	}
}

// Moving notes by which event a change is moved, before that is committed.
func (s *Set) Moving(change id.Change, event string) {
	s.record(func() { s.figures.at(change).event = event })
}

// Moved records, once it is committed, that a change came to a state, by the event noted
// last. A final state gives back what the change held; revert says that landing it undoes another.
func (s *Set) Moved(change id.Change, state string, revert, final bool) {
	s.record(func() {
		f := s.figures.at(change)
		event := f.event
		f.event, f.Ended = "", final
		if final {
			f.QueueDepth, f.UpperBytes, f.MemoryBytes, f.Shares = 0, 0, 0, Shares{}
			s.figures.stale = true
		}
		s.moves.WithLabelValues(known(state, states)).Inc()
		if event != "landed" {
			return
		}
		s.count("landings", s.landings)
		if revert {
			s.count("rollbacks", s.rollbacks)
		}
	})
}

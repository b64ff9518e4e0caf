package storage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// What goes by its age is gone for good, and a machine may begin with a clock that stands years off until the network has set it.
const (
	leapMax      = 7 * 24 * time.Hour // since the last sweep: a clock that shows more may be wrong
	settledAfter = 12 * time.Hour     // by which a clock that is wrong has been set
	sweptName    = "swept"            // in .state
)

// swept is what the sweeps know of the clock.
type swept struct {
	At      time.Time `json:"at"`               // UTC; by which the last sweep went
	Doubted time.Time `json:"doubted,omitzero"` // UTC; what the clock showed when it was first not believed
}

// next says by which time a sweep goes that begins now, and what is known after it. By a clock that has leapt nothing is older than it was
// at the last sweep, until it has gone on for a while. With no sweep before it the clock is believed.
func (s swept) next(now time.Time) swept {
	now = now.UTC()
	switch {
	case s.At.IsZero() || now.Sub(s.At) <= leapMax:
	case s.Doubted.IsZero() || now.Before(s.Doubted):
		return swept{At: s.At, Doubted: now}
	case now.Sub(s.Doubted) < settledAfter:
		return s
	}
	return swept{At: now}
}

// clock is by which time the sweep goes that begins now. What cannot be written is known as long as this process lives.
func (s *Steward) clock(now time.Time) (time.Time, error) {
	path := filepath.Join(s.State, sweptName)
	if s.swept.At.IsZero() {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(raw, &s.swept)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.swept = swept{}
			s.Log.Warn("when the last sweep was cannot be read, so the clock is believed", "file", path, "error", err)
		}
	}
	s.swept = s.swept.next(now)
	if !s.swept.Doubted.IsZero() {
		s.Log.Info("the clock has gone on by more than a week since the last sweep: what goes by its age stays for some hours more", "last", s.swept.At)
	}
	raw, err := json.Marshal(s.swept)
	if err != nil {
		return s.swept.At, err
	}
	if err = whole.SetFile(s.Ops, "sweep:clock", path, append(raw, '\n')); err != nil {
		err = problem.Errorf(problem.Unavailable, "df -h "+s.State, "write when the last sweep was: %w", err)
	}
	return s.swept.At, err
}

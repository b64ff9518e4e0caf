package audit

import (
	"fmt"

	"sallyport/internal/problem"
)

// ErrBroken says that audit entries are not what was appended.
var ErrBroken = problem.New(problem.Internal, "the audit log is not as it was written")

// Verify checks that entries are a gapless run, oldest first, each bound to the one
// before. previous is the hash of the entry before the first; "" if the run begins at 1.
// The error names the first entry that does not fit.
func Verify(previous string, entries []Entry) error {
	for i, e := range entries {
		switch {
		case i == 0 && previous == "" && e.Seq != 1, i > 0 && e.Seq != entries[i-1].Seq+1:
			return fmt.Errorf("entry %d: an entry is missing before it: %w", e.Seq, ErrBroken)
		case e.Previous != previous:
			return fmt.Errorf("entry %d: it does not follow the entry before it: %w", e.Seq, ErrBroken)
		case e.Hash != e.Sum():
			return fmt.Errorf("entry %d (%s, %q): it was altered: %w", e.Seq, e.Verb, e.Subject, ErrBroken)
		}
		previous = e.Hash
	}
	return nil
}

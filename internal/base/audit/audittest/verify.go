// Package audittest says whether a log is as it was written.
package audittest

import (
	"errors"

	"sallyport/internal/base/audit"
)

// Verify reads a whole log, oldest first, with a head record that knows its last entry. The error is the first fault.
func Verify(entries []audit.Entry) error {
	var marks []audit.Mark
	if n := len(entries); n > 0 {
		marks = append(marks, audit.Mark{Seq: entries[n-1].Seq, Hash: entries[n-1].Hash})
	}
	v := audit.NewVerifier(marks, nil)
	for _, e := range entries {
		v.Add(e)
	}
	if faults := v.End().Faults; len(faults) > 0 {
		return errors.New(faults[0].Text)
	}
	return nil
}

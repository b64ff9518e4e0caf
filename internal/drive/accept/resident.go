package accept

import (
	"context"

	"sallyport/internal/base/problem"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

const (
	// UIDsPerHome is how many uids a home uses for its sandboxes before it starts again from the first.
	UIDsPerHome = 1 << 16
	// ResidentsMax is how many of them belong to groups for good: the last ones, but for the very last.
	ResidentsMax = 1 << 12
)

// Reside returns the uid of a group's sandboxes, also of those in which an agent changes what it runs; the first time it gives it one.
// first is the home's first uid. Errors: problem.Refused if there is none left.
func Reside(ctx context.Context, tx store.Tx, first uint32, of group.Folder) (uint32, error) {
	uid, ok, err := tx.Resident(ctx, of)
	if err != nil || ok {
		return uid, err
	}
	n, err := tx.CountResidents(ctx)
	if err != nil {
		return 0, err
	}
	if n >= ResidentsMax {
		return 0, problem.Errorf(problem.Refused, "sallyport group list", "a home has at most %d groups", ResidentsMax)
	}
	uid = first + UIDsPerHome - 2 - uint32(n)
	return uid, tx.PutResident(ctx, of, uid)
}

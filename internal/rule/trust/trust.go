package trust

import (
	"context"
	"time"
)

// Trust is the owner's yes to exactly one repository's own words (SM-925). A repository has one at most:
// other words, be it by a character, are not trusted.
type Trust struct {
	Repository string    `json:"repository"` // its git directory that all work trees share; absolute
	Digest     string    `json:"digest"`     // of Words
	Words      Target    `json:"words"`
	By         string    `json:"by"` // login name
	UID        int       `json:"uid"`
	At         time.Time `json:"at"` // UTC
}

// Covers reports whether tr is a yes to t.
func (tr Trust) Covers(t Target) bool { return t.Proposed && tr.Digest == t.Digest() }

// Tx is what trust asks of a transaction.
type Tx interface {
	// PutTrust stores the trust in a repository's words, in the place of any earlier one.
	PutTrust(ctx context.Context, t Trust) error
	// Trust returns a repository's; false if nothing of it is trusted.
	Trust(ctx context.Context, repository string) (Trust, bool, error)
	// DropTrust takes it back; false if there was none.
	DropTrust(ctx context.Context, repository string) (bool, error)
}

// Words are all that is said of how one repository's code is restarted and probed.
type Words struct {
	Repository string  // work tree; absolute
	Commit     string  // at which the repository's own words were read
	Home       *Target // stands in the home's file, and then nothing else counts
	Proposed   *Target // the repository's own words; nil if it proposes nothing
	Trust      *Trust  // what was trusted last, which may be other words
}

// Trusted reports whether exactly what is proposed is trusted.
func (w Words) Trusted() bool {
	return w.Proposed != nil && w.Trust != nil && w.Trust.Covers(*w.Proposed)
}

// Counts returns the target that is used; false if there is none that may be.
func (w Words) Counts() (Target, bool) {
	switch {
	case w.Home != nil:
		return *w.Home, true
	case w.Trusted():
		return *w.Proposed, true
	}
	return Target{}, false
}

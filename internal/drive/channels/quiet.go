package channels

import (
	"context"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// latersMax is in how many places of a quiet trial it is told that something is to be said again. Strangers fill no disk.
const latersMax = 100

// laters are the places in which that was told.
type laters struct {
	mu   sync.Mutex
	told map[id.Conversation]bool
}

// news reports whether it is to be told in a place.
func (l *laters) news(where id.Conversation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.told[where] && len(l.told) < latersMax
}

func (l *laters) note(where id.Conversation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil {
		l.told = map[id.Conversation]bool{}
	}
	l.told[where] = true
}

// quiet is a host that lets nobody in: what it wrote about strangers and places would not come back with the old schema, while what came in
// would, and the platform hands nothing over twice. So it drops that, and says so.
type quiet struct{ *Channels }

// why is the reason, as a clause; "" = it is not quiet.
func (c quiet) why() string {
	if c.Quiet == nil {
		return ""
	}
	return c.Quiet()
}

// again drops what was said, and has its sender say it again: once in a place.
func (c quiet) again(ctx context.Context, tx store.Tx, s said, why, what string) error {
	if err := c.drop(ctx, tx, s, why); err != nil || s.flood || !c.later.news(s.where.ID) {
		return err
	}
	tx.After(func() { c.later.note(s.where.ID) })
	return c.notice(ctx, tx, s.where.ID, strings.ToUpper(why[:1])+why[1:]+". "+what)
}

// sayAgain is what somebody is told whose words would have somebody let in, or asked.
const sayAgain = "What you said was not taken in: say it again after that."

// code leaves a code as it is that would link an account; false if it is none.
func (c quiet) code(ctx context.Context, tx store.Tx, s said, code person.LinkCode) (bool, error) {
	why := c.why()
	if why == "" {
		return false, nil
	}
	good, err := tx.Codes(ctx, ledger.Now())
	if err != nil || !slices.Contains(good, code.Hash()) {
		return false, err
	}
	return true, c.again(ctx, tx, s, why, "Your account was not linked: send the code again after that. If it is good no more by then: sallyport person link")
}

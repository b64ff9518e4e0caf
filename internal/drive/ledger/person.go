package ledger

import (
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/store"
)

// NotePerson writes down what became of somebody whom the home knows, and by whom.
func NotePerson(ctx context.Context, tx store.Tx, by audit.Actor, who id.Person, verb, reason string) error {
	err := tx.AppendEntry(ctx, audit.Entry{At: Now(), Actor: by, Subject: string(who), Verb: verb, Reason: reason})
	if err != nil {
		return fmt.Errorf("write down what became of %s: %w", who, err)
	}
	return nil
}

package channel

import (
	"context"
	"fmt"
)

// Alone refuses a message that is for somebody alone, in another place than theirs. Errors: ErrDead; as of Driver.Direct.
func Alone(ctx context.Context, d Driver, m Message) error {
	if m.Account == "" {
		return nil
	}
	to, err := d.Direct(ctx, m.Account)
	if err == nil && to != m.Place {
		err = fmt.Errorf("%w: %s is not alone in %s", ErrDead, m.Account, m.Place)
	}
	return err
}

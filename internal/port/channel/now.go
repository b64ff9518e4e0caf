package channel

import (
	"context"
	"sync"
)

// Now is what messages go out by: a session, or its token. The zero value is none.
type Now[T comparable] struct {
	mu sync.Mutex
	is T
}

// Set has messages go out by it from now on; by none, where it is the zero value.
func (n *Now[T]) Set(is T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.is = is
}

// Session returns it. Errors: ErrAway if there is none.
func (n *Now[T]) Session() (T, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.is == *new(T) {
		return n.is, ErrAway
	}
	return n.is, nil
}

// While runs a session, and takes away at its end what there was of it. It returns nil once ctx has ended.
func (n *Now[T]) While(ctx context.Context, session func() error) error {
	err := session()
	var none T
	n.Set(none)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

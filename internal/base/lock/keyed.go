package lock

import (
	"context"
	"sync"
)

// Keyed lets one at a time, within this process, work on a thing that has a name. The zero value is ready.
type Keyed[K comparable] struct {
	mu    sync.Mutex
	taken map[K]chan struct{} // → closed when it is given back
}

// Take waits until nobody else has key, and returns what gives it back, to be called once. Errors: ctx's cause.
func (k *Keyed[K]) Take(ctx context.Context, key K) (release func(), err error) {
	for {
		k.mu.Lock()
		other, taken := k.taken[key]
		if !taken {
			if k.taken == nil {
				k.taken = map[K]chan struct{}{}
			}
			mine := make(chan struct{})
			k.taken[key] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.taken, key)
				close(mine)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Alone runs do while nobody else has key. Errors: do's, and ctx's cause.
func (k *Keyed[K]) Alone(ctx context.Context, key K, do func() error) error {
	release, err := k.Take(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

package lock

import "sync"

// Pins counts who holds things that have names, within this process: what is held is not removed. The zero value is ready.
type Pins[K comparable] struct {
	mu   sync.Mutex
	held map[K]int
}

// Hold keeps a thing until release is called, once.
func (p *Pins[K]) Hold(key K) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = map[K]int{}
	}
	p.held[key]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held[key]--; p.held[key] == 0 {
			delete(p.held, key)
		}
	}
}

// Held reports whether somebody holds a thing.
func (p *Pins[K]) Held(key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[key] > 0
}

// Still runs do while nobody can begin to hold anything; held tells what is held meanwhile.
func (p *Pins[K]) Still(do func(held func(K) bool) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return do(func(key K) bool { return p.held[key] > 0 })
}

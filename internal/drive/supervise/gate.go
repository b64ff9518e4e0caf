package supervise

import (
	"context"
	"sync"
)

const (
	validationsMax = 3 // checkpoints that are judged at the same time (SV-095)
	crowdMax       = 6 // that wait; more, and an agent stands while its own waits
)

// gate lets a few in at a time, the urgent first. The zero value is ready.
type gate struct {
	mu      sync.Mutex
	inside  int
	waiting [2][]chan struct{} // urgent, and not
}

// pass runs do inside; it waits for its turn, and not at all if ctx has ended.
func (g *gate) pass(ctx context.Context, urgent bool, do func() error) error {
	if err := g.enter(ctx, urgent); err != nil {
		return err
	}
	defer g.leave()
	return do()
}

func (g *gate) enter(ctx context.Context, urgent bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	line := 1
	if urgent {
		line = 0
	}
	g.mu.Lock()
	if g.inside < validationsMax {
		g.inside++
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.waiting[line] = append(g.waiting[line], turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	for i, w := range g.waiting[line] {
		if w == turn {
			g.waiting[line] = append(g.waiting[line][:i], g.waiting[line][i+1:]...)
			g.mu.Unlock()
			return context.Cause(ctx)
		}
	}
	g.mu.Unlock()
	g.leave() // its turn had come
	return context.Cause(ctx)
}

// leave gives the place to whoever is next.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for line := range g.waiting {
		if len(g.waiting[line]) > 0 {
			close(g.waiting[line][0])
			g.waiting[line] = g.waiting[line][1:]
			return
		}
	}
	g.inside--
}

// crowded reports whether so many wait that an agent whose checkpoint can wait is to stand meanwhile.
func (g *gate) crowded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting[0])+len(g.waiting[1]) >= crowdMax
}

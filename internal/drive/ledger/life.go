package ledger

import (
	"context"
	"time"
)

// Begin says until when what runs beside the steps may go on.
func (l *Ledger) Begin(life context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life = life
}

// Aside runs do beside the steps; Run returns only once it has ended. Nothing begins once the daemon is ending.
func (l *Ledger) Aside(do func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if life := l.life; life.Err() == nil {
		l.asides.Go(func() { do(life) })
	}
}

// EndAsides waits for what runs beside the steps; the life has ended.
func (l *Ledger) EndAsides() {
	l.mu.Lock() // whoever was about to begin has begun
	l.mu.Unlock()
	l.asides.Wait()
}

// Lasting is a context for what goes on when a person's call or a cancelled step has ended, but
// not when the daemon does: the next one finds what is left to do.
func (l *Ledger) Lasting() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.life
}

// Now is the time as stored: UTC, whole milliseconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

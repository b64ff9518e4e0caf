package trial

import (
	"time"

	"sallyport/internal/rule/trust"
)

// Terms are what a landing has to go through before it counts, known before anything moves (law 3).
type Terms struct {
	Target   trust.Target
	Length   time.Duration // how long a person has to confirm; 0 = nobody is asked
	Unproven string        // of a target that is proposed and that nobody trusts
}

// None reports whether a landing counts at once.
func (t Terms) None() bool { return t.Length == 0 && t.Target.None() }

// Package disktest loses power at any named operation.
//
// Crash is for code in the test's own process: it panics instead of doing an
// operation, or just after it. Killer is for a real process: it sends itself
// SIGKILL. Both count operations from 0 in the order in which they begin. Put writes what a
// test begins with.
package disktest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"sallyport/internal/base/disk"
)

// power is what a crash panics with. Nothing but Run can tell it from a real panic.
type power struct{ at string }

func (p power) String() string { return "power lost " + p.at }

// Crash loses power once: before operation number At, or after it. From then on
// every further operation panics too, for the machine is off. Safe for many goroutines.
type Crash struct {
	At    int  // from 0; a negative one never crashes
	After bool // the operation is done, and nobody hears of it

	mu    sync.Mutex
	names []string
	down  bool
}

// Ops returns operations that lose power where c says.
func (c *Crash) Ops() disk.Ops { return disk.Ops{Around: c.around} }

// Seen returns the names of the operations that were begun, in order, the fatal one included.
func (c *Crash) Seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.names)
}

// Crashed reports whether power was lost.
func (c *Crash) Crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

func (c *Crash) around(op string, do func() error) error {
	if n := c.begin(op); n == c.At && c.After {
		err := do()
		c.mu.Lock()
		c.down = true
		c.mu.Unlock()
		if err != nil {
			err = fmt.Errorf("%s failed by itself: %w", op, err)
			panic(power{at: err.Error()})
		}
		panic(power{at: "after " + op})
	}
	return do()
}

// begin counts one operation, and panics if it must not be done.
func (c *Crash) begin(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		panic(power{at: "earlier; " + op + " was not done"})
	}
	n := len(c.names)
	c.names = append(c.names, op)
	if n == c.At && !c.After {
		c.down = true
		panic(power{at: "before " + op})
	}
	return n
}

// Run runs do and reports whether it ended by loss of power; any other panic goes on.
func Run(do func() error) (crashed bool, err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case power:
			crashed, err = true, nil
		default:
			panic(v)
		}
	}()
	return false, do()
}

// Everywhere calls try once without a crash, and then with power lost before and after each of the Points of that whole
// run, each as a subtest. It returns the names of the whole run. try must start from nothing each time and check what it
// finds after the crash.
func Everywhere(t *testing.T, try func(t *testing.T, c *Crash)) []string {
	t.Helper()
	whole := &Crash{At: -1}
	if !t.Run("whole", func(t *testing.T) { try(t, whole) }) {
		t.Fatalf("a whole run failed: operations were %q", whole.Seen())
	}

	for _, at := range Points(t, whole.Seen()) {
		for _, after := range []bool{false, true} {
			c := &Crash{At: at, After: after}
			ok := t.Run(c.name(), func(t *testing.T) {
				try(t, c)
				if c.Crashed() {
					t.Logf("lost power at %s", c.names[at])
				}
			})
			if !ok {
				t.Fatalf("stopped at the first failure: operations were %q", c.Seen())
			}
		}
	}
	return whole.Seen()
}

func (c *Crash) name() string {
	if c.After {
		return fmt.Sprintf("after_%d", c.At)
	}
	return fmt.Sprintf("before_%d", c.At)
}

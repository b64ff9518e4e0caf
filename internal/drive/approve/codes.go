package approve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/code"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// Codes are what changes of the host are confirmed with (SM-923), from the yes that completes an approval until the change has landed or
// ended. They are in memory alone: a daemon that ends forgets them, and then a person approves again. A plain code is there until it was
// given, once, to the person whose yes it was; from then on there is only its hash. The zero value is ready.
type Codes struct {
	mu sync.Mutex
	of map[id.Change]*kept
}

// kept is one of them.
type kept struct {
	hash    code.Hash
	plain   *string       // until somebody gives it; behind a pointer, so that nothing prints it
	to      id.Person     // whose yes completed the approval
	settled chan struct{} // closed once it was given, or cannot be
	over    bool          // settled is closed
	lost    string        // why it could not be given; "" = it was
}

// settle says what became of giving it; the first word counts. It is called with mu held.
func (k *kept) settle(lost string) {
	if k.over {
		return
	}
	k.over, k.lost = true, lost
	close(k.settled)
}

// GiveTime is how long a landing waits until the code was given.
const GiveTime = 2 * time.Minute

// ErrUngiven says that a change of the host cannot land, because nobody could confirm it.
var ErrUngiven = problem.New(problem.Refused, "the code that it is confirmed with could not be given to you")

// keep has a code wait to be given to somebody. One that the change had before counts no more.
func (c *Codes) keep(of id.Change, plain string, hash code.Hash, to audit.Actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[id.Change]*kept{}
	}
	c.of[of] = &kept{hash: hash, plain: &plain, to: to.Person, settled: make(chan struct{})}
}

// Give has hand hand over the code of a change to by, if it is theirs and was not given yet, and returns where that was; false if none was
// given. What hand cannot hand over is lost: the landing is refused, and says why.
func (c *Codes) Give(of id.Change, by audit.Actor, hand func(plain string) (where string, err error)) (where string, given bool) {
	k, plain := c.begin(of, by)
	if k == nil {
		return "", false
	}
	where, err := hand(plain)

	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		k.settle(problem.Of(err).Text)
	}
	k.settle("")
	return where, k.lost == ""
}

// begin takes the plain code out for who gives it; nil if there is none for by.
func (c *Codes) begin(of id.Change, by audit.Actor) (k *kept, plain string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k = c.of[of]
	if k == nil || k.plain == nil || k.over || by.Kind != "person" || by.Person == "" || by.Person != k.to {
		return nil, ""
	}
	plain, k.plain = *k.plain, nil
	return k, plain
}

// Take returns what the keeper is to know of the code of a change, once a person has the code. It may be taken again until Forget. Errors:
// ErrUngiven (refused) if there is none, as after a restart, or if it could not be given: then the change is to be approved again; the end
// of ctx.
func (c *Codes) Take(ctx context.Context, of id.Change) (code.Hash, error) {
	c.mu.Lock()
	k := c.of[of]
	c.mu.Unlock()
	if k == nil {
		return code.Hash{}, ungiven(of, "sallyport was started again since then, and keeps none on disk")
	}
	late := time.NewTimer(GiveTime)
	defer late.Stop()
	select {
	case <-k.settled:
	case <-ctx.Done():
		return code.Hash{}, context.Cause(ctx)
	case <-late.C:
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	k.settle(fmt.Sprintf("nothing took it within %s", GiveTime))
	k.plain = nil
	if k.lost != "" {
		return code.Hash{}, ungiven(of, k.lost)
	}
	return k.hash, nil
}

// ungiven says why there is no code.
func ungiven(of id.Change, why string) error {
	return problem.Case(ErrUngiven, "sallyport approve "+string(of),
		"%s was approved, and the code that it is confirmed with could not be given to you: %s", of, why)
}

// Any reports whether somebody may know a code by now, so that words which look like one are to be kept nowhere.
func (c *Codes) Any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.of) > 0
}

// Forget lets the code of a change go: the change is approved anew, or has come to its end.
func (c *Codes) Forget(of id.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, of)
}

package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/port/sandbox"
)

// tried is what the sandbox was found to hold when it was last tried.
type tried struct {
	mu  sync.Mutex
	now api.Sandbox
}

func (t *tried) set(r sandbox.Report, err error) {
	now := api.Sandbox{Works: err == nil}
	if err != nil {
		of := problem.Of(err)
		now.Problem, now.Next = of.Text, of.Next
	} else {
		now.Policy = policyOf(r)
	}
	t.mu.Lock()
	t.now = now
	t.mu.Unlock()
}

// policyOf is a report in words.
func policyOf(r sandbox.Report) string {
	uid := "the user's own uid"
	if r.OwnUID {
		uid = "a uid of its own"
	}
	return fmt.Sprintf("%s: %s, no privileges, no network, no files of this machine but its programs, system calls filtered, memory limited by %s, frozen by %s",
		r.Driver, uid, r.Memory, r.Freezer)
}

// Sandbox says what held when the daemon started or a doctor last tried.
func (d *Daemon) Sandbox() api.Sandbox {
	d.tried.mu.Lock()
	defer d.tried.mu.Unlock()
	return d.tried.now
}

// selfTest tries all that must fail in a sandbox, and sums it up in one line.
func (d *Daemon) selfTest(ctx context.Context) ([]api.Try, api.Check) {
	tries, err := d.sandbox.SelfTest(ctx)
	if err != nil {
		return []api.Try{}, asked("self-test", true, "", err)
	}
	out := make([]api.Try, 0, len(tries))
	var worked, unproven []string
	for _, t := range tries {
		out = append(out, api.Try(t))
		switch {
		case !t.Held:
			worked = append(worked, t.Name)
		case t.Control == "":
			unproven = append(unproven, t.Name)
		}
	}
	c := api.Check{Name: "self-test", OK: len(worked) == 0, Needed: true}
	switch {
	case len(worked) > 0:
		c.Detail = "a program in a sandbox can " + strings.Join(worked, "; ")
		c.Fix = "sallyport doctor --self-test"
	case len(unproven) > 0:
		c.Detail = fmt.Sprintf("a program in a sandbox tried %d ways out, and each was refused; outside, the same attempts work, except what this machine forbids everybody: %s",
			len(out), strings.Join(unproven, "; "))
	default:
		c.Detail = fmt.Sprintf("a program in a sandbox tried %d ways out, and each was refused; outside, the same attempts work", len(out))
	}
	return out, c
}

package live

import (
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/budget"
)

// Subject is whatever sessions and commands run for, as far as their sandboxes need to know it: what it is counted under, whose its
// files are, which agent works for it, and what the person who asked lets that agent see and reach.
type Subject struct {
	ID    id.Subject    // under which keys are held, and under which what it uses and asks for is counted
	Owner sandbox.Owner // of its writable files

	Agent string            // as it was asked for; "" = none
	Model string            // that the person chose; "" = as the home says
	Bases map[string]string // where the model's endpoint is, as the person's environment had it, by the name of the variable
	Env   map[string]string // what the home's env: for the agent refers to, as the person's environment had it
	Keyed bool              // a key went with it: its model is not asked without one later

	Path      string               // the person's PATH
	Home      string               // the person's home folder; never shown
	Top       string               // the person's repository; "" = none
	Shares    []string             // absolute paths on the host, beside the home's
	Profiles  []string             // beside the home's
	Egress    []string             // hosts, or registries, beside what the home lets every sandbox reach
	Timeout   time.Duration        // 0 = the home's
	DiskBytes int64                // that its files may take
	Door      func() (over func()) // told of each request to its model that goes out, until it is over; nil = nobody is
	Waits     func(time.Duration)  // told for how long its model's endpoint bids wait; nil = nobody is
	Moved     func()               // told now and then that a request to its model moves; nil = nobody is
	Webless   bool                 // its agent reaches its model, and nothing else whatever the home lets others reach (SM-041)
	SetUp     bool                 // a setup has left something for its sandboxes, or leaves it now

	Group  string                              // for which it runs; "" = none
	Budget func() (l budget.Limits, err error) // of that group alone, as they are now, beside the home's; nil = none

	Asking  string // the command that asks for its agent anew
	GoingOn string // the command that lets it go on once it has its key
}

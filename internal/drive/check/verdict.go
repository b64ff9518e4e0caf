package check

import (
	"fmt"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/proposal"
)

// Verdict is what came of the checks of one tree.
type Verdict struct {
	Tree    git.OID
	Policy  string // digest of what it was judged by
	Results []proposal.CheckResult
	Why     error // it failed
	Err     error // it could not be found out
}

// Failed names the check that failed.
func (v Verdict) Failed() string {
	r := v.Results[len(v.Results)-1]
	return fmt.Sprintf("the check %q failed: %s", r.Command, r.Why)
}

// Remember keeps what the checks said of the last tree of a session, so that the same is not asked of it twice.
func (c *Checker) Remember(change id.Change, v Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts[change] = v
}

// Recall returns what is known of exactly this tree by exactly these rules, once.
func (c *Checker) Recall(change id.Change, o grounds.Offer) (v Verdict, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok = c.verdicts[change]
	delete(c.verdicts, change)
	return v, ok && v.Tree == o.Tree && v.Policy == o.Policy
}

// Forget is for a change that nobody will be asked about.
func (c *Checker) Forget(change id.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.verdicts, change)
}

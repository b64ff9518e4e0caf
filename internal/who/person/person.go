// Package person says who somebody is and what they may decide.
package person

import (
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
)

// Owner is the user who made the home; the strongest role.
type Owner struct {
	UID  int    `json:"uid"`
	Name string `json:"name"`
}

// ErrNotOwner refuses somebody who is not entitled.
var ErrNotOwner = problem.New(problem.Denied, "only the owner of this home may decide")

// MayDecide returns nil if who is the owner, read at the moment of use. In a home without
// an owner nobody may, not even the user whose number is 0.
func (o Owner) MayDecide(who audit.Actor) error {
	if o.Name == "" || who.Kind != "person" || who.UID != o.UID {
		return fmt.Errorf("%q is not %q: %w", who.Name, o.Name, ErrNotOwner)
	}
	return nil
}

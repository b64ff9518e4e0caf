package api

import (
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// personBytesMax bounds a person's name, and an account.
const personBytesMax = 300

// checkPerson refuses what is neither the id of a person nor may be a name. Errors: problem.Usage.
func checkPerson(name string) error {
	switch kind := id.KindOf(name); {
	case kind != "" && kind != "person":
		return problem.Errorf(problem.Usage, "sallyport person list", "%.80q is the id of %s; a person was wanted", name, kind)
	case name == "" || len(name) > personBytesMax:
		return problem.Errorf(problem.Usage, "sallyport person list", "%.80q is no name of a person", name)
	}
	return nil
}

// Person is somebody whom the home knows.
type Person struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Roles     []Role    `json:"roles"`
	Accounts  []Account `json:"accounts"`
	Reachable bool      `json:"reachable"` // a card comes to them
}

// Role is what a person is in the home.
type Role struct {
	Role  string `json:"role"`            // owner, global_admin, group_admin, member
	Group string `json:"group,omitempty"` // of group_admin and member
}

// Account is one by which a platform knows a person.
type Account struct {
	Identity string `json:"identity"` // platform:account, as the platform authenticates it
	Label    string `json:"label,omitempty"`
	Direct   bool   `json:"direct"` // they have been alone with the assistant there, and are reached
}

// NewPerson is somebody who is to be known.
type NewPerson struct {
	Name string `json:"name"`
	UID  *int   `json:"uid,omitempty"` // at the terminal; nil = they are none of its users
}

// LinkCode is shown once: only its hash is kept.
type LinkCode struct {
	Person   Person    `json:"person"`
	Code     string    `json:"code"`
	Expires  time.Time `json:"expires"`
	Channels []string  `json:"channels"` // where it can be sent
}

// SetRole gives somebody a role, or takes it.
type SetRole struct {
	Person string `path:"name" json:"-"`
	Role   string `json:"role"`
	Group  string `json:"group,omitempty"`
	Remove bool   `json:"remove,omitempty"`
}

// Unlink takes an account from who has it.
type Unlink struct {
	Identity string `json:"identity"`
}

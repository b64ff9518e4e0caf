package api

import "time"

// Daemon is what a running daemon says of itself.
type Daemon struct {
	PID     int       `json:"pid"`
	Build   string    `json:"build"`
	API     int       `json:"api"`
	Home    string    `json:"home"`
	Started time.Time `json:"started"`
	Working int       `json:"working"` // changes that something is being done for
	Waiting int       `json:"waiting"` // changes that wait for a person
	Alerts  []Alert   `json:"alerts,omitempty"`
}

// Check is one line of a doctor's report.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it nothing runs; otherwise something is slower or absent
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Doctor is what works on this machine, for this home.
type Doctor struct {
	Checks   []Check `json:"checks"`
	Driver   string  `json:"driver"`   // of the sandbox
	Strategy string  `json:"strategy"` // how workspaces are copied
	Freezer  string  `json:"freezer"`
	Memory   string  `json:"memory"` // what limits it
	OwnUID   bool    `json:"own_uid"`
}

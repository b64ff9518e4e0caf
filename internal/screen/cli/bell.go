package cli

import (
	"fmt"

	"sallyport/internal/door/api"
)

// bell rings a terminal's bell: something waits for a person, was rolled back or failed.
func (a *app) bell() {
	if onTerminal(a.Err) && !a.json {
		fmt.Fprint(a.Err, "\a")
	}
}

// calls reports whether a change that comes into a state calls for a person who looked away.
func calls(state string) bool {
	switch state {
	case api.AwaitingApproval, api.Blocked, api.RolledBack, api.Failed, api.RollbackFailed:
		return true
	}
	return false
}

// ring rings for a state that a change has come into while it was watched; how it stands at first is no news.
func (f *following) ring(n api.Notice) {
	if n.Kind != api.NoticeState {
		return
	}
	if f.state != "" && f.state != n.State && calls(n.State) {
		f.bell()
	}
	f.state = n.State
}

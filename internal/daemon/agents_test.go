package daemon

import (
	"path/filepath"
	"testing"

	"sallyport/internal/door/api"
	"sallyport/internal/port/agent"
)

// What a shell finds says nothing of groups, for which the daemon's own PATH counts. What an image lacks has a line of its own.
func TestWhatGroupsFindIsLookedForInTheDaemonsOwnPath(t *testing.T) {
	here := t.TempDir()
	writeFile(t, filepath.Join(here, "tulip"), []byte("#!/bin/sh\n"), 0o755)
	t.Setenv("PATH", "/nowhere:"+here)
	d := &Daemon{}
	for _, test := range []struct {
		programs    []string
		image, want string
	}{
		{[]string{"tulip"}, "", api.AgentFound},
		{[]string{"rose", "tulip"}, "", api.AgentFound},
		{[]string{"rose"}, "", api.AgentAbsent},
		{[]string{"rose"}, "0123", ""},
	} {
		d.image, d.Home = test.image, t.TempDir()
		if got := (candidate{d}).inGroups(agent.Known{Programs: test.programs}); got != test.want {
			t.Errorf("%v with image %q: %q, want %q", test.programs, test.image, got, test.want)
		}
	}
}

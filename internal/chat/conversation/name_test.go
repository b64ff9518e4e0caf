package conversation

import "testing"

func TestAChannelHasANameThatIsNotTheHosts(t *testing.T) {
	for name, want := range map[string]bool{"irc": true, "work-2": true, Terminal: false, Dev: false, "agent": false, "host": false, "home": false, "all": false, "": false, "a:b": false, "A": false, "2a": false, "~x": false} {
		if _, err := ParseName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

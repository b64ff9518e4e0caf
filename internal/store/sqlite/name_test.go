package sqlite

import "testing"

// A test that has a process die at a commit names it, whoever else is in it.
func TestACommitIsNamedByAllThatItHolds(t *testing.T) {
	for want, verbs := range map[string][]string{
		"db:landed":            {"landed", "landed"},
		"db:claim+rolled_back": {"rolled back", "claim"},
		"db:_as_it____so_":     {"Äas itßöü so:"},
		"db:commit":            {"a", "b", "c", "d", "e", "f", "g", "h", "i"},
		"db:a+b+c+d+e+f+g+h":   {"d", "c", "h", "g", "b", "f", "e", "a", "d"},
		"db:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
	} {
		if got := name(verbs); got != want {
			t.Errorf("%q is named %s, want %s", verbs, got, want)
		}
	}
	if got := name(nil); got != "db:commit" {
		t.Errorf("nothing is named %s", got)
	}
}

package client

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/base/problem"
)

func TestAProjectIsNoHome(t *testing.T) {
	for _, test := range []struct {
		has     []string
		refused bool
	}{
		{nil, false},
		{[]string{".git"}, true},
		{[]string{".git", "policy.yaml"}, true},
		{[]string{".git", ".state"}, false},
		{[]string{".git", "policy.yaml", "sallyport.yaml"}, false}, // a clone of a home
		{[]string{".git", "sallyport.yaml"}, false},                // what uninstall left of one
		{[]string{".git", "groups/ada/runner/runner.yaml"}, false}, // also where nobody had written in its settings
		{[]string{".git", "groups/ada"}, true},
	} {
		home := t.TempDir()
		for _, name := range test.has {
			if err := os.MkdirAll(filepath.Join(home, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		err := NoProject(home)
		if (err != nil) != test.refused || err != nil && problem.KindOf(err) != problem.Usage {
			t.Errorf("%v: %v", test.has, err)
		}
	}
}

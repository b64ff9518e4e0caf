package git_test

import (
	"testing"
)

// TestHeadIsWhatGitSaysItIs however the branch is written down: git itself is the oracle.
func TestHeadIsWhatGitSaysItIs(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		top := person(t, "--object-format="+format)
		d := open(t, top)
		if head, err := d.Head(t.Context()); head != "" || err != nil {
			t.Errorf("%s: before the first commit it is %q, %v", format, head, err)
		}
		is := func(what string) {
			t.Helper()
			head, err := d.Head(t.Context())
			if want := run(t, top, "rev-parse", "HEAD"); string(head) != want || err != nil {
				t.Errorf("%s, %s: %q, %v; git says %q", format, what, head, err, want)
			}
		}
		write(t, top+"/f", "1\n")
		first := commit(t, top)
		is("a file of its own")
		run(t, top, "pack-refs", "--all")
		is("packed")
		write(t, top+"/f", "2\n")
		commit(t, top)
		is("packed, and moved since")
		run(t, top, "checkout", "-q", "-b", "deep/er")
		run(t, top, "reset", "-q", "--hard", string(first))
		is("on another branch")
		run(t, top, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
		run(t, top, "symbolic-ref", "HEAD", "refs/heads/alias")
		is("on a branch that is another name of one")
		run(t, top, "checkout", "-q", "--detach")
		is("on no branch")
	}
}

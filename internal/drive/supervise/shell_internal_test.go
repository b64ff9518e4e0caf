package supervise

import (
	"context"
	"os"
	"slices"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// bare is a sandbox that has one program.
type bare struct {
	sandbox.Process
	has   string
	tried []string
}

func (b *bare) Attach(_ context.Context, argv, _ []string, _ string, _ *os.File) (sandbox.Attached, error) {
	b.tried = append(b.tried, argv[0])
	if argv[0] != b.has {
		return nil, problem.Errorf(problem.NotFound, "", "there is no %q", argv[0])
	}
	return gone{}, nil
}

type gone struct{ sandbox.Attached }

func (gone) Wait() (sandbox.Exit, error) { return sandbox.Exit{Code: 7}, nil }
func (gone) Kill()                       {}

func TestAShellIsWhatTheSandboxHas(t *testing.T) {
	for has, want := range map[string][]string{"/bin/bash": {"/bin/bash"}, "/bin/sh": {"/bin/bash", "/bin/sh"}, "/bin/fish": {"/bin/bash", "/bin/sh"}} {
		b := &bare{has: has}
		code, err := attach(t.Context(), b, nil, Terminal{})
		if missing := has == "/bin/fish"; !slices.Equal(b.tried, want) || (problem.KindOf(err) == problem.NotFound) != missing || !missing && code != 7 {
			t.Errorf("where there is %s: tried %q, %d, %v", has, b.tried, code, err)
		}
	}
}

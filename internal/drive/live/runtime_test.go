package live

import (
	"context"
	"errors"
	"testing"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// road is a network with one way out, or none and why.
type road struct {
	err    error
	asked  Outgoing
	closed int
}

func (r *road) Open(_ context.Context, o Outgoing) (Way, error) {
	r.asked = o
	return Way{Socket: "/run/way", End: func() { r.closed++ }}, r.err
}

func runtimeOn(r *road) Runtime {
	return Runtime{Defaults: Defaults{Home: "/home/ann/.sallyport"}, Ways: Ways{Network: r, Budget: NewBudget(nil, agency{})}, Folder: "/state/sessions", Places: make(chan struct{}, 1)}
}

// A session needs a subject and nothing of a change: no row, no repository, no request.
func TestASessionOfAnySubjectIsMadeReady(t *testing.T) {
	out, released := &road{}, 0
	r := runtimeOn(out)
	s := Subject{ID: "group-notes", Owner: sandbox.Owner{UID: 7, GID: 7}, Agent: "played", Egress: []string{"example.org"}, Timeout: time.Minute, DiskBytes: 9}
	run, err := r.Ready(t.Context(), s, Outfit{Limits: sandbox.Limits{MemoryBytes: 5, Timeout: time.Hour}}, agent.Program{Argv: []string{"true"}, Messages: true},
		session.Session{ID: "played-1"}, Mounts{Tree: sandbox.Tree{Dir: "/tree"}, Dir: sandbox.Mountpoint, Cwd: "/there", Release: func() { released++ }})
	if err != nil {
		t.Fatal(err)
	}
	if o := out.asked; o.Subject != s.ID || o.Session != "played-1" || o.Agent != "played" || len(o.Asked) != 1 {
		t.Errorf("its way out was asked for as %+v", o)
	}
	l := run.Spec.Limits
	if run.Spec.Owner != s.Owner || l.MemoryBytes != 5 || l.Timeout != time.Minute || l.DiskBytes != 9 || run.Spec.Tree.Dir != "/tree" || run.Spec.Dir != sandbox.Mountpoint || run.Cwd != "/there" || run.Talk == nil {
		t.Errorf("it runs as %+v", run)
	}
	if released != 0 || out.closed != 0 {
		t.Error("its mounts, or its way out, went before it ran")
	}
	run.Way.Close()
	run.Way.Close()
	if released != 1 || out.closed != 1 {
		t.Errorf("its mounts were let go %d times, its way out %d times", released, out.closed)
	}
}

func TestWhatCannotBeMadeReadyLetsGoWhatItHad(t *testing.T) {
	wall := errors.New("no way")
	for name, test := range map[string]struct {
		way    error
		shares []string
		closed int
	}{
		"no way out":                {wall, nil, 0},
		"a share that shows a home": {nil, []string{"/home/ann"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			out, released := &road{err: test.way}, 0
			_, err := runtimeOn(out).Ready(t.Context(), Subject{ID: "x", Shares: test.shares}, Outfit{}, agent.Program{}, session.Session{ID: "s"}, Mounts{Release: func() { released++ }})
			if err == nil || test.way != nil && !errors.Is(err, wall) || test.way == nil && problem.KindOf(err) != problem.Refused {
				t.Errorf("%v", err)
			}
			if released != 1 || out.closed != test.closed {
				t.Errorf("its mounts were let go %d times, its way out %d times", released, out.closed)
			}
		})
	}
}

func TestAPlaceIsWaitedForUntilWhoHasItLeaves(t *testing.T) {
	r := runtimeOn(&road{})
	leave, _, err := r.Place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("not wanted any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, _, err := r.Place(ctx); !errors.Is(err, why) {
		t.Errorf("a second one got %v", err)
	}
	leave()
	if _, _, err := r.Place(t.Context()); err != nil {
		t.Error(err)
	}
	if got := r.Dir(id.Session("played-1")); got != "/state/sessions/played-1" {
		t.Errorf("its folder is %s", got)
	}
}

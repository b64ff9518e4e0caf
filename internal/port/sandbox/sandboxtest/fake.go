package sandboxtest

import (
	"context"
	"errors"
	"os"

	"sallyport/internal/port/sandbox"
)

// Fake is a driver that confines nothing: its sandboxes are functions.
type Fake struct {
	// Play stands for the program: it writes to the spec's streams and returns how
	// it ended. Ctx ends when the sandbox is killed. Nil ends well at once.
	Play func(ctx context.Context, spec sandbox.Spec) sandbox.Exit
	// Refuse is returned by Probe and Start, if it is set.
	Refuse error
}

var _ sandbox.Driver = (*Fake)(nil)

func (f *Fake) Probe(context.Context) (sandbox.Report, error) {
	return sandbox.Report{Driver: "fake", Overlay: true, Freezer: "init", Memory: "rlimit+watch"}, f.Refuse
}

func (f *Fake) SelfTest(context.Context) ([]sandbox.Try, error) { return nil, f.Refuse }

func (f *Fake) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if f.Refuse != nil {
		return nil, f.Refuse
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &fakeProcess{cancel: cancel, done: make(chan struct{}), dir: spec.Tree.Dir}
	go func() {
		defer close(p.done)
		if f.Play != nil {
			p.exit = f.Play(ctx, spec)
		}
		if ctx.Err() != nil {
			p.exit = sandbox.Exit{Code: -1, Signal: "SIGKILL"}
		}
	}()
	return p, nil
}

type fakeProcess struct {
	cancel context.CancelFunc
	done   chan struct{}
	exit   sandbox.Exit
	dir    string // the tree, if it is a plain folder
}

func (p *fakeProcess) Wait() (sandbox.Exit, error) {
	<-p.done
	return p.exit, nil
}

func (p *fakeProcess) Kill()                        { p.cancel() }
func (p *fakeProcess) Freeze(context.Context) error { return nil }
func (p *fakeProcess) Thaw() error                  { return nil }

// View opens a plain folder; a fake mounts no overlay.
func (p *fakeProcess) View(context.Context) (*os.File, error) {
	if p.dir == "" {
		return nil, errors.New("a fake sandbox shows no overlay")
	}
	return os.Open(p.dir)
}

func (p *fakeProcess) Attach(context.Context, []string, []string, string, *os.File) (sandbox.Attached, error) {
	return fakeAttached{}, nil
}

type fakeAttached struct{}

func (fakeAttached) Wait() (sandbox.Exit, error) { return sandbox.Exit{}, nil }
func (fakeAttached) Kill()                       {}

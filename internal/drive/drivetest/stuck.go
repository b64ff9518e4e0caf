package drivetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/guard"
	"sallyport/internal/rule/trust"
)

// Odd is a home some of whose parts fail while fault is set.
type Odd struct {
	Rules
	*Service
	*Keeper
	Fault atomic.Pointer[string]
}

func (o *Odd) fails(what string) error {
	if at := o.Fault.Load(); at != nil && *at == what {
		return errors.New(what + " cannot be read")
	}
	return nil
}

func (o *Odd) At(ctx context.Context, project git.Project, host git.Dir, commit git.OID) (grounds.Judging, error) {
	if err := o.fails("rules"); err != nil {
		return grounds.Judging{}, problem.Errorf(problem.Refused, "cat .sallyport.yaml", "%w", err)
	}
	if err := o.fails("home"); err != nil {
		return grounds.Judging{}, err
	}
	return o.Rules.At(ctx, project, host, commit)
}

func (o *Odd) Of(ctx context.Context, host git.Dir, p git.Project, head git.OID) (trust.Target, string, error) {
	if err := o.fails("target"); err != nil {
		return trust.Target{}, "", err
	}
	return trust.Target{}, "", nil
}

func (o *Odd) Arm(l id.Landing, w guard.Watched) error {
	if err := o.fails("keeper"); err != nil {
		return err
	}
	return o.Keeper.Arm(l, w)
}

// make gives a home parts that can fail.
func (h *Home) Odd() *Odd {
	o := &Odd{Keeper: h.Keeper, Service: &Service{page: filepath.Join(h.Repo, "page.txt")}}
	h.Parts.Rules, h.Parts.Targets, h.Parts.Keeper = o, o, o
	return o
}

// Aside moves a part of the repository out of the way; "" is all of it.
func (h *Home) Aside(path string) (mend func()) {
	from, to := filepath.Join(h.Repo, path), h.Repo+".aside"
	if err := os.Rename(from, to); err != nil {
		h.T.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.RemoveAll(from), os.Rename(to, from)); err != nil {
			h.T.Error(err)
		}
	}
}

// Spoil writes a file of the repository.
func (h *Home) Spoil(path, text string) (mend func()) {
	at := filepath.Join(h.Repo, path)
	was, missing := os.ReadFile(at)
	disktest.Put(h.T, at, text, 0o644)
	return func() {
		err := os.WriteFile(at, was, 0o644)
		if missing != nil {
			err = os.Remove(at)
		}
		if err != nil {
			h.T.Error(err)
		}
	}
}

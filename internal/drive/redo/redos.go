// Package redo has a change that did not land made anew, or taken up again where its agent left it.
package redo

import (
	"context"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/accept"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/view"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/workspace"
	"sallyport/internal/who/person"
)

// Parts are what redos stand on.
type Parts struct {
	*ledger.Ledger
	Owner      person.Owner
	Views      *view.Views
	Requests   *accept.Requests
	Opener     work.Opener
	Lander     *landing.Lander
	Workspaces *workspace.Manager
	Ops        disk.Ops
	Author     git.Signature                                     // of commits of the host's own; its At is ignored
	MayResume  func(ctx context.Context, change id.Change) error // refuses a mode that a person wrote into a change's notes and that its agent cannot have
}

// Redos takes up changes again.
type Redos struct{ Parts }

// New returns Redos.
func New(p Parts) *Redos { return &Redos{p} }

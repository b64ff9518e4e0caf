// Package view shows what there is of a change: its rows, its differences, its transcripts, and what happens to it. It moves no
// change, and writes only what a person asks for: a branch in the project.
package view

import (
	"sallyport/internal/drive/authorship"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/land"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/budget"
	"sallyport/internal/who/person"
)

// Parts are what views stand on.
type Parts struct {
	*ledger.Ledger
	Owner       person.Owner
	Workspaces  *workspace.Manager
	Spec        func(change.Row) workspace.Spec
	Commits     authorship.Composer
	Land        *land.Landings
	Confirm     *confirm.Confirmer
	SessionsDir string // folder of sessions
	ChangesDir  string // folder of what is kept of each change for people to read
}

// Views shows changes to people.
type Views struct{ Parts }

// New returns Views.
func New(p Parts) *Views { return &Views{p} }

// Detail is all there is to know of one change.
type Detail struct {
	Change      change.Row
	Sessions    []session.Session
	Checkpoints []checkpoint.Checkpoint
	Proposal    *proposal.Proposal
	Approval    *approval.Approval // the latest
	Landing     *landing.Landing   // the latest; of a trial the one that is tried
	Trial       *trial.Trial       // nil if it needs none
	Undoing     *landing.Landing   // that takes a trial's landing back
	Progress    *change.Progress   // while an agent works
	Asked       []session.Asked    // of the network, by its sessions and checks
	Uses        []budget.Use       // of models, by model
}

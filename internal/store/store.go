// Package store is the port to the database: one transaction type that embeds what each step asks.
package store

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// AuditTx reads the audit log.
type AuditTx interface {
	// Entries returns entries after a sequence number, oldest first; change "" = all; limit 0 = 1000.
	Entries(ctx context.Context, change string, after int64, limit int) ([]audit.Entry, error)
}

// Tx is one transaction.
type Tx interface {
	change.Tx
	person.Tx
	AuditTx
	audit.Tx
	session.Tx
	budget.Tx
	checkpoint.Tx
	proposal.Tx
	question.Tx
	approval.Tx
	ApprovalList
	landing.Tx
	LandingByID
	trial.Tx
	trust.Tx
	conversation.Tx
	wiring.Tx
	message.Tx
	lock.Tx
	// After has do called once the transaction is on the disk; not if it is undone. See DB.Hear.
	After(do func())
}

// LandingByID reads one journal row.
type LandingByID interface {
	// Landing returns one; false if there is none.
	Landing(ctx context.Context, id id.Landing) (landing.Landing, bool, error)
}

// ApprovalList lists approvals.
type ApprovalList interface {
	// Approvals returns newest first; pending only, or all.
	Approvals(ctx context.Context, pendingOnly bool, limit int) ([]approval.Approval, error)
	// EndedQuestions returns those of some kinds that have their outcome, newest first.
	EndedQuestions(ctx context.Context, limit int, kinds ...question.Kind) ([]question.Question, error)
}

// DB is an open database.
type DB interface {
	// InTx runs do in one durable transaction that commits if do returns nil. Concurrent
	// callers may share a commit; each sees its own savepoint. do may not touch the world.
	InTx(ctx context.Context, do func(Tx) error) error
	// Read runs do on a consistent snapshot; writing in it is an error.
	Read(ctx context.Context, do func(Tx) error) error
	// Hear has hear called with the messages that a transaction stored or moved, from now on, whoever wrote them. What is to be called
	// after a transaction is called once it is on the disk and before its InTx returns, one transaction after the other, in the order in
	// which they did their work: first who hears, then what it asked for itself. It may not wait and may not use the DB.
	Hear(hear func(message.Rows))
	// VerifyAudit reads the whole audit log and holds it against what was written down beside the
	// database, and against expected, a mark that somebody kept, or nil. What is wrong with
	// the log stands in the report; an error says that it could not be read.
	VerifyAudit(ctx context.Context, expected *audit.Mark) (audit.Report, error)
	// Snapshot writes what the database holds now to the file at path: whole, on the disk and its owner's alone, or not at all. One that
	// was there goes, and so does what a crash has left half written of it. Reading and writing go on meanwhile. Errors say what of the
	// machine is in the way.
	Snapshot(ctx context.Context, path string) error
	Close() error
}

// Look reads in a transaction of its own what find, a method of Tx, has for a key.
func Look[Key, Found any](ctx context.Context, db DB, find func(Tx, context.Context, Key) (Found, error), key Key) (found Found, err error) {
	err = db.Read(ctx, func(tx Tx) error {
		found, err = find(tx, ctx, key)
		return err
	})
	return found, err
}

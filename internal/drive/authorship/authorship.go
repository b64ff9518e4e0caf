// Package authorship says who the commits that land are by, what they say, and how they are signed.
package authorship

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
)

// Commit is who a commit is by, and what it says.
type Commit struct {
	Author, Committer git.Signature
	Message           string
	Signing           *git.Signing // nil = it is not signed
}

// Composer says who a commit is by, what it says and how it is signed; it makes none.
type Composer struct {
	DB         store.DB
	Workspaces *workspace.Manager
	Home       string        // a home of groups, if its own repository is one
	Author     git.Signature // where the repository's configuration names nobody; its At is ignored
	Ops        disk.Ops
	Secrets    *secret.Scanner
}

// Foretell says on a card how the commit upon base will read and who it will be by. What its subject is made of is template: words
// with {request} in them; "" = the request's first line.
func (c Composer) Foretell(ctx context.Context, row change.Row, host git.Dir, base git.OID, template string, card *proposal.Card) error {
	subject, err := c.subject(ctx, row, host, base, template)
	if err != nil {
		return err
	}
	who, note := c.person(ctx, row)
	signed := c.signable(ctx, row, who)
	card.Subject = subject
	card.CommitBy = "by " + who.Author.Address()
	if who.Committer.Address() != who.Author.Address() {
		card.CommitBy += ", committed by " + who.Committer.Address()
	}
	if note != "" {
		card.CommitBy += ", " + note
	}
	card.CommitBy += signed
	return nil
}

// subject is a commit's first line: of what the person had it say with their request, or what the template makes of the request's, or
// Revert and what is undone. In a home of groups it is what SM-103 and SM-139 say.
func (c Composer) subject(ctx context.Context, row change.Row, host git.Dir, base git.OID, template string) (string, error) {
	r := row.Request
	grouped, err := c.grouped(ctx, row, host, base)
	if err != nil {
		return "", err
	}
	switch {
	case r.Message != "":
		return landing.Subject(r.Message), nil
	case r.Kind == request.Revert && grouped:
		return landing.Rollback(r.Reverts, r.Reason), nil
	case row.Swap != nil:
		return landing.Swap(row.ID, landing.Subject(row.Swap.Summary)), nil
	case grouped && (r.Worked() || r.Kind == request.Swap):
		return landing.Swap(row.ID, landing.Subject(r.Text)), nil
	case r.Kind == request.Revert:
		undone, ok, err := c.landing(ctx, r.Reverts)
		if err == nil && !ok {
			err = fmt.Errorf("%s has not landed, so there is nothing to roll back", r.Reverts)
		}
		return landing.Reverting(subjectOf(undone)), err
	case template == "" || r.Kind == request.Group:
		return landing.Subject(r.Text), nil
	}
	first, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
	return landing.Subject(strings.Replace(template, "{request}", strings.TrimSpace(first), 1)), nil
}

// grouped reports whether a repository is a home of groups, whose commits have words of their own: a folder groups is tracked there.
func (c Composer) grouped(ctx context.Context, row change.Row, host git.Dir, base git.OID) (bool, error) {
	if row.Request.Project.Top != c.Home {
		return false, nil
	}
	found, err := host.Lookup(ctx, base, []string{"groups"})
	return err == nil && found[0].Mode == git.Folder, err
}

func subjectOf(l landing.Landing) string {
	subject, _, _ := strings.Cut(l.Message, "\n")
	return subject
}

// ForLanding is the commit of an approved proposal. What was typed at the card stands in place of what the card shows.
func (c Composer) ForLanding(ctx context.Context, row change.Row, p proposal.Proposal, yes approval.Approval) (Commit, error) {
	who, _ := c.person(ctx, row)
	m := landing.Message{
		Change: row.ID, Subject: cmp.Or(p.Card.Subject, landing.Subject(row.Request.Text)), Body: bodyOf(row),
		Approver: approver(row, who, *yes.By), Unasked: yes.Via == approval.ViaFlag,
	}
	switch r := row.Request; {
	case r.Kind == request.Revert:
		undone, _, err := c.landing(ctx, row.Request.Reverts)
		if err != nil {
			return Commit{}, err
		}
		m.Body = goingBack(undone, row.Request.Reason)
	case r.Worked():
		var err error
		if m.CoAuthor, err = c.coAuthor(ctx, row); err != nil {
			return Commit{}, err
		}
	}
	sealed := c.seal(who, worded(m, row.Request.Kind, cmp.Or(yes.Message, row.Request.Message)), *yes.At)
	var err error
	sealed.Signing, err = c.signing(ctx, row, yes)
	return sealed, err
}

// ForBranch is the commit of a branch that a person asked for, of what was offered last.
func (c Composer) ForBranch(ctx context.Context, row change.Row, p proposal.Proposal) (Commit, error) {
	who, _ := c.person(ctx, row)
	m := landing.Message{Change: row.ID, Subject: cmp.Or(p.Card.Subject, landing.Subject(row.Request.Text)), Body: bodyOf(row)}
	if row.Request.Worked() {
		var err error
		if m.CoAuthor, err = c.coAuthor(ctx, row); err != nil {
			return Commit{}, err
		}
	}
	return c.seal(who, worded(m, row.Request.Kind, row.Request.Message), p.At), nil
}

// bodyOf is what a commit says below its subject: the request. For a swap it is the group's wish, and before it what the agent says of its
// change, where the subject has a part of that (SM-103); of neither more than the card has shown.
func bodyOf(row change.Row) string {
	if row.Swap == nil {
		return row.Request.Text
	}
	wish := proposal.Beginning(row.Request.Text)
	summary := strings.TrimSpace(row.Swap.Summary)
	if strings.Join(strings.Fields(summary), " ") == landing.Subject(summary) { // it has all
		return wish
	}
	return proposal.Beginning(summary) + "\n\nWhat the group " + row.Request.Group + " asked for:\n\n" + wish
}

// worded is a message with what a person has it say, "" = what it says.
func worded(m landing.Message, kind request.Kind, words string) landing.Message {
	if words == "" {
		return m
	}
	_, body, _ := strings.Cut(strings.TrimSpace(words), "\n")
	m.Subject = landing.Subject(words)
	if m.Subject != subjectIn(words) { // it was cut
		body = words
	}
	if kind == request.Revert {
		m.Body += "\n\n" + body
	} else {
		m.Body = body
	}
	return m
}

// subjectIn is the first line of a text as a subject would have it, whole.
func subjectIn(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.Join(strings.Fields(first), " ")
}

// ForTakeBack is the commit that takes back what is on trial.
func (c Composer) ForTakeBack(ctx context.Context, row change.Row, t trial.Trial, tried landing.Landing) (Commit, error) {
	who, _ := c.person(ctx, row)
	host, err := c.Workspaces.EnsureRepository(ctx, row.Request.Project, tried.Head, tried.NewCommit) // what goes back is in the former
	if err != nil {
		return Commit{}, err
	}
	grouped, err := c.grouped(ctx, row, host, tried.NewCommit)
	if err != nil {
		return Commit{}, err
	}
	m := landing.Message{Change: row.ID, Subject: landing.Reverting(subjectOf(tried)), Body: goingBack(tried, t.Reason)}
	if s, err := row.Request.Project.Signing(ctx, row.Request.ConfigHome()); err != nil || s != nil {
		m.Body += "\n\nThis commit is not signed: a rollback does not wait for a key."
	}
	if grouped {
		m.Subject = landing.Rollback(row.ID, t.Reason)
	}
	if t.By.Kind != audit.Host.Kind {
		m.Approver = approver(row, who, *t.By)
	}
	return c.seal(who, m, *t.At), nil
}

// goingBack is the body of a commit that takes back another, and why.
func goingBack(undone landing.Landing, reason string) string {
	return fmt.Sprintf("This reverts commit %s.\n\n%s", undone.NewCommit, reason)
}

// seal dates a commit and takes secrets out of what it says, part by part: so its subject is what the card showed, and its trailers stay.
func (c Composer) seal(who git.Person, m landing.Message, at time.Time) Commit {
	who.Author.At, who.Committer.At = at, at
	for _, part := range []*string{&m.Subject, &m.Body, &m.CoAuthor, &m.Approver} {
		*part = c.Secrets.Redact(*part)
	}
	return Commit{Author: who.Author, Committer: who.Committer, Message: m.String()}
}

// landing returns a change's latest journal row.
func (c Composer) landing(ctx context.Context, change id.Change) (l landing.Landing, ok bool, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		l, ok, err = tx.LandingOf(ctx, change)
		return err
	})
	return l, ok, err
}

package ledger

import (
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/rule/mount"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/question"
)

// askMount asks, where a change was wished for, whether the agent that it shows a folder may write there (CH-026). It is asked once for
// each folder; the question is returned as it stands. Where nobody can be asked, it is void. What another group is shown is the owner's to
// say, as the change of another group is.
func (n *Origin) askMount(ctx context.Context, tx store.Tx, row change.Row, w group.NewWish) (question.Question, error) {
	kind, class, of := question.Mount, right.Group, id.QuestionOf(string(row.ID)+"\x00"+w.Path)
	if string(w.Of) != row.Request.Group {
		kind, class, of = question.MountOther, right.Host, id.QuestionOf(string(row.ID)+"\x00"+w.Path+"\x00"+string(w.Of))
	}
	q, err := tx.Question(ctx, of)
	if problem.KindOf(err) != problem.NotFound {
		return q, err
	}
	_, err = tx.Chat(ctx, row.Request.Chat)
	if problem.KindOf(err) == problem.NotFound {
		return question.Question{ID: of, Kind: kind, Outcome: question.Void}, nil
	}
	if err != nil {
		return q, err
	}

	q = question.New(row.ID.Subject(), fmt.Sprintf("%s is to show the agent of %s this folder of your machine: %s. May it read there, or write too?", row.ID, w.Of, inert.Path(w.Path)), nil, Now())
	q.ID, q.Kind, q.Words = of, kind, false
	q.Options = []question.Option{
		{Key: mount.Mode(false), Label: "read-only, as it is unless you say otherwise"},
		{Key: mount.Mode(true), Label: "read-write: its agent can change and delete what is there"},
	}
	if err := question.Put(ctx, tx, q); err != nil {
		return q, err
	}
	p, ok, err := tx.Proposal(ctx, row.ID)
	if err != nil {
		return q, err
	}
	if !ok || kind == question.MountOther {
		p = proposal.Proposal{Change: row.ID, Card: proposal.Card{Class: string(class)}} // the least that it can be
	}
	return q, n.ask(ctx, tx, row, p, []message.Out{{Lane: message.Notice, Card: message.CardMount, Question: q.ID, Text: q.Text()}})
}

// ErrAsked says that what a change shows waits until a person has answered.
var ErrAsked = problem.New(problem.Conflict, "a person is asked how a folder is shown")

// SettleMounts has a person say of each folder of this machine that a change newly shows its group whether it is written, and refuses what
// declares another thing than they said (CH-026). Where nobody can be asked it is not. Errors: ErrAsked; problem.Conflict, with what was said.
func (l *Ledger) SettleMounts(ctx context.Context, row change.Row, wishes []group.NewWish) error {
	waits, otherwise := false, []string(nil)
	err := l.DB.InTx(ctx, func(tx store.Tx) error {
		waits, otherwise = false, nil
		for _, w := range wishes {
			q, err := l.Origin.askMount(ctx, tx, row, w)
			if err != nil {
				return err
			}
			write := q.Outcome == question.Outcome(mount.Mode(true))
			switch {
			case q.Outcome == question.Waiting:
				waits = true
			case write != w.Write:
				otherwise = append(otherwise, mountWords(row, w, write))
			}
		}
		if waits || len(otherwise) > 0 {
			return nil
		}
		return withdrawMounts(ctx, tx, row, "the change shows that folder no more")
	})
	switch {
	case err != nil:
		return err
	case waits:
		return ErrAsked
	case len(otherwise) > 0:
		return problem.New(problem.Conflict, strings.Join(otherwise, " "))
	}
	return nil
}

// withdrawMounts ends what is asked about the folders of a change and has no answer.
func withdrawMounts(ctx context.Context, tx store.Tx, row change.Row, why string) error {
	for _, kind := range []question.Kind{question.Mount, question.MountOther} {
		if err := question.WithdrawAll(ctx, tx, row.ID.Subject(), kind, why, Now()); err != nil {
			return err
		}
	}
	return nil
}

// mountWords tell the agent that makes a change how a person has a folder shown.
func mountWords(row change.Row, w group.NewWish, write bool) string {
	how := "leave readonly out of its entry"
	if write {
		how = "write readonly: false in its entry"
	}
	of := ""
	if string(w.Of) != row.Request.Group {
		of = " of the group " + string(w.Of)
	}
	return fmt.Sprintf("%s is to be %s: %s in mounts of runner.yaml%s, commit, and call request_swap again.", inert.Path(w.Path), mount.Mode(write), how, of)
}

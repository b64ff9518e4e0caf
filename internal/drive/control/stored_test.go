package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// planted is a key in the form of one; nobody has it.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

// What a person, a repository or an error says may hold a key: the row, the audit log and the approval hold none.
func TestNoSecretIsStoredWithAReason(t *testing.T) {
	const said = "because of " + planted
	for name, do := range map[string]func(h *drivetest.Home, c *control.Controller, d view.Detail) error{
		"a person refuses": func(h *drivetest.Home, c *control.Controller, d view.Detail) error {
			return c.Refuse(h.T.Context(), d.Approval.ID, h.By(), said)
		},
		"a person cancels": func(h *drivetest.Home, c *control.Controller, d view.Detail) error {
			return c.Cancel(h.T.Context(), d.Change.ID, h.By(), said)
		},
		"a landing fails": func(h *drivetest.Home, c *control.Controller, d view.Detail) error {
			return c.Approve(h.T.Context(), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Cage.Play = drivetest.Writes("two\n")
				h.Parts.Keeper = failing{fmt.Errorf("the keeper says: %s", said)}
				c, _ := h.Daemon()
				d := h.Is(c, h.Ask(c), change.AwaitingApproval)
				if err := do(h, c, d); err != nil {
					t.Fatal(err)
				}
				got := h.Spoken(c, d.Change.ID)
				if strings.Contains(got, planted) {
					t.Errorf("it is stored: …%.300s", got[max(strings.Index(got, planted)-200, 0):])
				}
				if !strings.Contains(got, "because of [secret: ") {
					t.Errorf("the rest of the reason is gone: %s", got)
				}
			})
		})
	}
}

// failing is a keeper that arms nothing.
type failing struct{ err error }

func (f failing) Arm(id.Landing, guard.Watched) error { return f.err }

func (f failing) Disarm(id.Landing) error { return nil }

// What lands is held against the yes once more when it lands: a row that came in between is no yes to this card.
func TestALandingIsHeldAgainstTheYesItWasGiven(t *testing.T) {
	for name, between := range map[string]func(q *question.Question, s *question.Saying){
		"a yes to another card": func(q *question.Question, _ *question.Saying) {
			q.Digest = string(proposal.Sum(id.Change(q.Subject), "b", "t", "p"))
		},
		"a no": func(_ *question.Question, s *question.Saying) { s.Option = "refuse" },
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.Cage.Play = drivetest.Writes("two\n")
				c, end := h.Daemon()
				d := h.Is(c, h.Ask(c), change.AwaitingApproval)
				before := git.OID(h.Git("rev-parse", "main"))
				end()
				if err := control.New(h.Parts).Approve(t.Context(), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"}); err != nil {
					t.Fatal(err)
				}
				h.Tx(func(ctx context.Context, tx store.Tx) error {
					a, err := tx.Approval(ctx, d.Approval.ID)
					if err != nil {
						return err
					}
					q, err := tx.Question(ctx, a.Question)
					if err != nil {
						return err
					}
					a.ID, a.Question, q.ID = "apr-between0", "qst-between0", "qst-between0"
					q.Outcome, q.Ended, q.Answer = question.Waiting, nil, nil
					said := question.Saying{ID: q.ID, Need: h.Owner.Need(), By: h.By(), Option: "approve", At: *a.At}
					between(&q, &said)
					err = errors.Join(question.Put(ctx, tx, q), tx.AddApproval(ctx, a))
					_, err2 := question.Say(ctx, tx, said)
					return errors.Join(err, err2)
				})
				c, _ = h.Daemon()
				time.Sleep(time.Minute)
				if now := git.OID(h.Git("rev-parse", "main")); now != before {
					t.Errorf("it has landed: %s", h.Show(c, d.Change.ID).Change.State)
				}
			})
		})
	}
}

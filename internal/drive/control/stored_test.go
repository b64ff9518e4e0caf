package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
)

// planted is a key in the form of one; nobody has it.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

// spoken is all that the database holds of a change, and what the door shows of it.
func (h *home) spoken(c *control.Controller, chg id.Change) string {
	h.t.Helper()
	all := []any{h.show(c, chg)}
	h.tx(func(ctx context.Context, tx store.Tx) error {
		row, err1 := tx.Change(ctx, chg)
		entries, err2 := tx.Entries(ctx, string(chg), 0, 0)
		approvals, err3 := tx.Approvals(ctx, false, 0)
		all = append(all, row, entries, approvals)
		return errors.Join(err1, err2, err3)
	})
	raw, err := json.Marshal(all)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(raw)
}

// What a person, a repository or an error says may hold a key: the row, the audit log and the approval hold none.
func TestNoSecretIsStoredWithAReason(t *testing.T) {
	const said = "because of " + planted
	for name, do := range map[string]func(h *home, c *control.Controller, d view.Detail) error{
		"a person refuses": func(h *home, c *control.Controller, d view.Detail) error {
			return c.Refuse(h.t.Context(), d.Approval.ID, h.by(), said)
		},
		"a person cancels": func(h *home, c *control.Controller, d view.Detail) error {
			return c.Cancel(h.t.Context(), d.Change.ID, h.by(), said)
		},
		"a landing fails": func(h *home, c *control.Controller, d view.Detail) error {
			return c.Approve(h.t.Context(), d.Approval.ID, d.Proposal.Digest, h.by(), approve.Words{Via: "command line"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.cage.play = writes("two\n")
				h.parts.Keeper = failing{fmt.Errorf("the keeper says: %s", said)}
				c, _ := h.daemon()
				d := h.is(c, h.ask(c), change.AwaitingApproval)
				if err := do(h, c, d); err != nil {
					t.Fatal(err)
				}
				got := h.spoken(c, d.Change.ID)
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
func (f failing) Disarm(id.Landing) error             { return nil }

// What lands is held against the yes once more when it lands: a row that came in between is no yes to this card.
func TestALandingIsHeldAgainstTheYesItWasGiven(t *testing.T) {
	for name, between := range map[string]func(a approval.Approval) approval.Approval{
		"a yes to another card": func(a approval.Approval) approval.Approval {
			a.Digest = proposal.Sum(a.Change, "b", "t", "p")
			return a
		},
		"a no": func(a approval.Approval) approval.Approval { a.Decision = approval.Refused; return a },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *home) {
				h.cage.play = writes("two\n")
				c, end := h.daemon()
				d := h.is(c, h.ask(c), change.AwaitingApproval)
				before := git.OID(h.git("rev-parse", "main"))
				end()
				if err := control.New(h.parts).Approve(t.Context(), d.Approval.ID, d.Proposal.Digest, h.by(), approve.Words{Via: "command line"}); err != nil {
					t.Fatal(err)
				}
				h.tx(func(ctx context.Context, tx store.Tx) error {
					a, err := tx.Approval(ctx, d.Approval.ID)
					if err != nil {
						return err
					}
					a = between(a)
					a.ID = "apr-between0"
					return tx.AddApproval(ctx, a)
				})
				c, _ = h.daemon()
				time.Sleep(time.Minute)
				if now := git.OID(h.git("rev-parse", "main")); now != before {
					t.Errorf("it has landed: %s", h.show(c, d.Change.ID).Change.State)
				}
			})
		})
	}
}

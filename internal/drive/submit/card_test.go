package submit_test

import (
	"strings"
	"testing"

	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
)

// A card is kept whether anybody is asked or a check has refused it: neither holds a secret in what is said there.
func TestNoCardIsKeptWithASecret(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	for name, c := range map[string]struct {
		exit  int
		state change.State
	}{"somebody is asked": {0, change.AwaitingApproval}, "a check refuses": {1, change.Failed}} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				h.CheckedBy(func(tree string) int { return drivetest.Put(tree, "page.txt", "two\n") }, func(string) int { return c.exit })
				h.Git("config", "user.name", planted)
				h.Git("config", "user.email", "ann@example.org")
				ctl, _ := h.Daemon()
				d := h.Is(ctl, h.AskWithCheck(ctl, request.Later), c.state)
				if by := d.Proposal.Card.CommitBy; !strings.HasPrefix(by, "by [secret") || strings.Contains(by, planted) {
					t.Errorf("it would be committed %s", by)
				}
			})
		})
	}
}

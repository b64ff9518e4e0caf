package land_test

import (
	"strings"
	"testing"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/policy"
)

// The last door asks once more: a daemon that has learned stricter rules meanwhile does not land what it could not read afterwards.
func TestRulesThatDoNotLoadDoNotLand(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		book := &drivetest.Rules{}
		h.Parts.Rules = book
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.AwaitingApproval)
		book.Unloadable = []policy.Violation{{File: ".sallyport.yaml", Constraint: policy.RulesLoad, Message: "it does not load", Severity: policy.Error}}
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: ""}); err != nil {
			t.Fatal(err)
		}
		if d = h.Is(c, chg, change.AwaitingApproval); !strings.Contains(d.Change.Reason, "rules_load") {
			t.Errorf("it says %q", d.Change.Reason)
		}
		if n := h.Git("rev-list", "--count", "main"); n != "1" {
			t.Errorf("main has %s commits, want 1", n)
		}
	})
}

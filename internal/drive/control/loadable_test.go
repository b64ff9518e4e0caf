package control_test

import (
	"strings"
	"testing"

	"sallyport/internal/drive/approve"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/policy"
)

// The last door asks once more: a daemon that has learned stricter rules meanwhile does not land what it could not read afterwards.
func TestRulesThatDoNotLoadDoNotLand(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		book := &rules{}
		h.parts.Rules = book
		h.cage.play = writes("two\n")
		c, _ := h.daemon()
		chg := h.ask(c)
		d := h.is(c, chg, change.AwaitingApproval)
		book.unloadable = []policy.Violation{{File: ".sallyport.yaml", Constraint: policy.RulesLoad, Message: "it does not load", Severity: policy.Error}}
		if err := c.Approve(t.Context(), d.Approval.ID, d.Proposal.Digest, h.by(), approve.Words{Via: ""}); err != nil {
			t.Fatal(err)
		}
		if d = h.is(c, chg, change.AwaitingApproval); !strings.Contains(d.Change.Reason, "rules_load") {
			t.Errorf("it says %q", d.Change.Reason)
		}
		if n := h.git("rev-list", "--count", "main"); n != "1" {
			t.Errorf("main has %s commits, want 1", n)
		}
	})
}

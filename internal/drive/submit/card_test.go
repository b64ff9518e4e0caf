package submit_test

import (
	"context"
	"strings"
	"testing"

	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/policy"
)

// planted is a key in the form of one; nobody has it.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

// A card is kept whether anybody is asked or a check has refused it: neither holds a secret in what is said there.
func TestNoCardIsKeptWithASecret(t *testing.T) {
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

// What the home holds already is no matter of a change, and stands in its difference all the same.
func TestTheDifferenceThatAConversationIsShownHoldsNoSecret(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("template/runner/prompts/system.md", "Greet people.\n")
			return "", nil
		})
		a.Converse(drivetest.SwapChat)
		h.Commits(drivetest.SwapPrompt, "by "+planted+"\n", "Use it")
		c, _ := a.Begin()
		d := a.Show(c, a.Offer(c))
		if diff := strings.Join(d.Proposal.Card.Spoken.Diff, "\n"); !strings.Contains(diff, "-by [secret: github-token]\n+Greet people.") {
			t.Error(diff)
		}
	})
}

// A line that is added with what looks like a secret is not shown whole, so a conversation takes no yes to it (SM-909).
func TestACardCountsTheAddedLinesThatHideWhatLooksLikeASecret(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Rules: policy.Rules{AllowSecrets: []string{"template/**"}}}}
		a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
			s.Write("template/runner/prompts/system.md", "Greet people.\nby "+planted+"\nand "+planted+"\n")
			return "", nil
		})
		a.Converse(drivetest.SwapChat)
		c, _ := a.Begin()
		d := a.Show(c, a.Offer(c))
		if d.Proposal == nil || !strings.Contains(d.Proposal.Card.Unspoken(), "in 2 of the lines") {
			t.Errorf("%s %s: %+v", d.Change.State, d.Change.Reason, d.Proposal)
		}
	})
}

// At a command line it takes a yes that covers the marks: a program's lines may have been written so that they look like a secret.
func TestWhatTheDiffDoesNotShowIsMarked(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Rules: policy.Rules{AllowSecrets: []string{"**"}}}}
		h.Cage.Play = drivetest.Writes("run(" + planted + ")\n")
		ctl, _ := h.Daemon()
		c := h.Is(ctl, h.Ask(ctl), change.AwaitingApproval).Proposal.Card
		if len(c.Marks) != 1 || c.Marks[0].Kind != policy.MarkHidden || c.Marks[0].Path != "page.txt" || !strings.Contains(c.Marks[0].Says, "in 1 of the lines") || !c.MarksWord || c.Spoken != nil {
			t.Errorf("%+v", c)
		}
	})
}

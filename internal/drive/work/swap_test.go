package work_test

import (
	"slices"
	"testing"

	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// TestADevAgentIsKeptFromTheWeb holds SM-041, and that no other agent is.
func TestADevAgentIsKeptFromTheWeb(t *testing.T) {
	for kind, want := range map[request.Kind]bool{request.Swap: true, request.Edit: false} {
		r := request.Request{Kind: kind, Group: "echo", Dev: "dev-greets", Agent: "claude", Text: "Greet people"}
		task, subject := work.Task(r), work.Subject("chg-aaaaaaaa", r, sandbox.Owner{})
		if slices.Contains(task.Denied, agent.Fetch) != want || subject.Webless != want {
			t.Errorf("%s: %q is denied, %t", kind, task.Denied, subject.Webless)
		}
	}
}

// TestADevAgentStandsOnABranchOfItsOwn holds SM-026 and SM-043: what it commits is on no branch that the home has.
func TestADevAgentStandsOnABranchOfItsOwn(t *testing.T) {
	for want, r := range map[string]request.Request{
		"dev/chg-k3v9m2qp": {Kind: request.Swap}, "main": {Kind: request.Edit}, "of a refresh": {Kind: request.Swap, Refresh: true},
	} {
		r.Branch = want
		if r.Worked() && r.Kind == request.Swap {
			r.Branch = "main"
		}
		if is := (work.Opener{}).Spec(change.Row{ID: "chg-k3v9m2qp", Request: r}).Branch; is != want {
			t.Errorf("%s: its branch is %q", want, is)
		}
	}
	if !repository.PlainBranch("dev/chg-k3v9m2qp") {
		t.Error("git takes no such branch")
	}
}

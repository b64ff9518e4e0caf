package work_test

import (
	"slices"
	"testing"

	"sallyport/internal/drive/work"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// TestADevAgentIsKeptFromTheWeb holds SM-041, and that no other agent is.
func TestADevAgentIsKeptFromTheWeb(t *testing.T) {
	for kind, want := range map[request.Kind]bool{request.Swap: true, request.Edit: false} {
		r := request.Request{Kind: kind, Group: "echo", Dev: "dev-greets", Agent: "claude", Text: "Greet people"}
		task, subject := work.Task("chg-aaaaaaaa", r), work.Subject("chg-aaaaaaaa", r, sandbox.Owner{})
		if slices.Contains(task.Denied, agent.Fetch) != want || subject.Webless != want {
			t.Errorf("%s: %q is denied, %t", kind, task.Denied, subject.Webless)
		}
	}
}

package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
)

// TestEveryAgentOfAConversationIsToldOfLongWorkOnce is CH-095, whatever a group's prompts say.
func TestEveryAgentOfAConversationIsToldOfLongWorkOnce(t *testing.T) {
	told := fmt.Sprintf("Work that takes longer than %[1]d minutes belongs in the background: start it so that the tool returns at once, and look at it later. "+
		"A tool that declares no time of its own is ended after %[1]d minutes.", stuck.ToolBudget/time.Minute)
	for system, want := range map[string]string{
		"": told, "Be kind.": "Be kind.\n\n" + told, "Be kind.\n\n" + told: "Be kind.\n\n" + told,
	} {
		if got := (agent.Order{Chat: true, System: system}).Foreword(false); got != want {
			t.Errorf("%q: %q", system, got)
		}
	}
	if got := (agent.Order{System: "Be kind.", Tools: "/t"}).Foreword(true); got != "" {
		t.Errorf("the agent of a change is told %q", got)
	}
}

func TestPromptsThatAreTooLongAreRefused(t *testing.T) {
	_, err := agent.Adapt("echo", agent.Task{Agent: "echo", Chat: true, System: strings.Repeat("x", agent.SystemBytesMax+1)}, nil)
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "262145 bytes; 262144 is the limit") {
		t.Errorf("%v", err)
	}
}

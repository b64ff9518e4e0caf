package agent_test

import (
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/port/agent"
)

// TestEveryAgentOfAConversationIsToldOfLongWorkOnce is CH-095, whatever a group's prompts say.
func TestEveryAgentOfAConversationIsToldOfLongWorkOnce(t *testing.T) {
	for system, want := range map[string]string{
		"": prompt.Background(), "Be kind.": "Be kind.\n\n" + prompt.Background(), "Be kind.\n\n" + prompt.Background(): "Be kind.\n\n" + prompt.Background(),
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
	_, err := agent.Adapt("echo", agent.Task{Agent: "echo", Chat: true, System: strings.Repeat("x", agent.SystemBytesMax+1)}, nil, nil)
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "262145 bytes; 262144 is the limit") {
		t.Errorf("%v", err)
	}
}

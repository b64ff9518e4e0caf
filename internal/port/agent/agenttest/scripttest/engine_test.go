package scripttest_test

import (
	"os"
	"testing"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/scripttest"
)

// TestMain makes the test binary the agent's program too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "play" {
		os.Exit(scripttest.Play())
	}
	os.Exit(m.Run())
}

func TestTheScriptedEngineHoldsTheContract(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Engine(t, agenttest.Subject{
		Steers: true, Loads: true, Scripted: true,
		Make: func(t *testing.T, _, _ string, turns [][]agenttest.Deed) (agent.Engine, agent.Order) {
			return scripttest.Engine{}, agent.Order{Engine: "scripted", Agent: "scripted", Argv: []string{self, "play"}, Env: []string{scripttest.Script(turns)}}
		},
	})
}

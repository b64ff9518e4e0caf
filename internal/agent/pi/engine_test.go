package pi_test

import (
	"encoding/json"
	"testing"

	"sallyport/internal/agent"
	"sallyport/internal/agent/agenttest"
	"sallyport/internal/agent/agenttest/modeltest"
	"sallyport/internal/agent/pi"
)

// realOrder is what the driver orders for the pi that is installed.
func realOrder(t *testing.T, path, home string, wire agent.Wire, base string) agent.Order {
	t.Helper()
	p, err := pi.New().Program(agent.Task{
		Agent: "pi", Text: "do it", Path: path, Home: home, Top: t.TempDir(), Settings: agent.Settings{Wire: wire, Model: "test-model"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var o agent.Order
	if err := json.Unmarshal(p.Stdin, &o); err != nil {
		t.Fatal(err)
	}
	o.Base = base
	return o
}

var bases = map[agent.Wire]string{agent.Messages: "", agent.Chat: "/v1", agent.Responses: "/v1", agent.Gemini: ""}

func TestTheRealPiHoldsThePortsPromises(t *testing.T) {
	_, path := agenttest.Real(t, "pi")
	agenttest.Engine(t, agenttest.Subject{Steers: true, Loads: true, Make: func(t *testing.T, _, home string, turns [][]agenttest.Deed) (agent.Engine, agent.Order) {
		s := modeltest.Start(t)
		return modeltest.Play(s, pi.Engine{}, turns), realOrder(t, path, home, agent.Messages, s.URL+bases[agent.Messages])
	}})
}

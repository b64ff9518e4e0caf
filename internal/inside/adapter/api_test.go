package adapter_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"sallyport/internal/inside/adapter"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest/modeltest"
	"sallyport/internal/port/agent/api"
)

// A model's endpoint cannot pause: asked by a message, nobody says that it has. So the host's answer is
// {acknowledged: false, timeout: true} (SV-081), and the freeze, which does not ask, is how it stands still.
func TestTheAPIAgentDoesNotAnswerThatItPauses(t *testing.T) {
	gate := modeltest.NewGate()
	model := modeltest.Start(t, modeltest.Turn{Text: "half|half", Calls: []modeltest.Call{modeltest.Shell("true")}, Middle: gate}, modeltest.Say("Done."))
	t.Chdir(t.TempDir())
	home := t.TempDir()
	in, host := io.Pipe()
	out, shown := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- adapter.Run(t.Context(), adapter.Options{
			Engines: map[string]agent.Engine{api.Name: api.Engine{Home: home}}, In: in, Out: shown, Home: home,
		})
		shown.Close()
	}()
	order, err := json.Marshal(agent.Order{Engine: api.Name, Agent: api.Name, Wire: agent.Chat, Base: model.URL, Model: "m", Text: "do it"})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(host, "%s\n", order)
	<-gate.Reached()
	// What is answered to the second message was read after the first.
	fmt.Fprintln(host, `{"type":"pause_request","checkpoint_id":"c1","reason":"checkpoint_validation","timeout_ms":10000}`)
	fmt.Fprintln(host, `{"type":"tell","id":"tell-1","text":"and this"}`)
	var all strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&all, lines.Text())
		switch {
		case strings.Contains(lines.Text(), "tell_ack"):
			gate.Open()
		case strings.Contains(lines.Text(), agent.TurnEndType):
			host.Close()
		}
	}
	if got := <-status; got != 0 {
		t.Errorf("status %d", got)
	}
	if text := all.String(); strings.Contains(text, "pause_ack") || !strings.Contains(text, `"outcome":"done"`) || !strings.Contains(text, "tell_ack") {
		t.Error(text)
	}
	if told := model.Told("", "user"); !strings.Contains(told, "and this") {
		t.Errorf("it was told %q", told)
	}
}

package accept_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/credential"
)

// errSeen ends a request where its agent's program is resolved: nothing is begun.
var errSeen = problem.New(problem.Conflict, "seen")

// spy is a driver that remembers its task.
type spy struct {
	name string
	task *agent.Task
}

func (s spy) Name() string { return s.name }

func (spy) Capabilities() agent.Capabilities { return agent.Capabilities{} }

func (s spy) Program(t agent.Task) (agent.Program, error) {
	*s.task = t
	return agent.Program{}, errSeen
}

// What is not installed is said before its key is missed.
func TestAMissingKeyIsSaidWithTheVariableAndTheCommand(t *testing.T) {
	h := drivetest.NewHome(t)
	h.Parts.Agents["pi"], h.Parts.Agents["codex"] = drivetest.Played{}, spy{"codex", &agent.Task{}}
	c := control.New(h.Parts)
	r := request.Request{By: h.By(), Text: "x", Agent: "pi", Project: git.Project{Top: h.Repo}, Approve: request.Later}
	_, err := c.TakeRequest(gittest.Context(t), r, nil)
	if !errors.Is(err, credential.ErrMissing) || !strings.Contains(err.Error(), "$ANTHROPIC_API_KEY or $OPENAI_API_KEY is set neither in your shell nor where the daemon was started") || problem.Of(err).Next != "ANTHROPIC_API_KEY=… sallyport run --agent pi …" {
		t.Errorf("%v (next %q)", err, problem.Of(err).Next)
	}
	r.Agent = "codex"
	if _, err := c.TakeRequest(gittest.Context(t), r, nil); !errors.Is(err, errSeen) {
		t.Errorf("%v", err)
	}
}

func TestWhatGoesIntoAnAgentsEnvironmentHoldsNoSecret(t *testing.T) {
	h := drivetest.NewHome(t)
	c := control.New(h.Parts)
	r := request.Request{By: h.By(), Text: "x", Agent: "played", Argv: []string{"true"}, Project: git.Project{Top: h.Repo}, Approve: request.Later,
		Env: map[string]string{"TEAM": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"}}
	_, err := c.TakeRequest(gittest.Context(t), r, nil)
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "what env: refers to holds a secret") || strings.Contains(err.Error(), "16C7e42F") {
		t.Errorf("%v", err)
	}
}

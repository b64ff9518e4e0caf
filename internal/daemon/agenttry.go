package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/socket"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/credential"
)

const (
	tryTime = 2 * time.Minute // from the start of its sandbox to its answer
	tryText = "This is a test of the connection. Answer with the single word ready. Use no tool and change no file."
)

// What can be wrong with an agent.
const (
	notInstalled = "not_installed"
	noKey        = "no_key"
	keyRefused   = "key_refused"
	modelUnknown = "model_unknown"
	hostRefused  = "host_refused"
	cannotStart  = "cannot_start"
	noAnswer     = "no_answer"
)

// TestAgent starts an agent as for a change, on an empty tree that is thrown away, and asks it for a word.
func (d *Daemon) TestAgent(ctx context.Context, t socket.AgentTry, by audit.Actor) (api.AgentTest, error) {
	began := time.Now()
	out := api.AgentTest{Agent: t.Agent}
	d.trying.Lock() // one at a time: they have the same uid
	defer d.trying.Unlock()
	asked := &overheard{}
	a, err := d.control.Audition(ctx, request.Request{
		Kind: request.Edit, By: by, Text: tryText, Agent: t.Agent, Model: t.Model, Bases: t.Bases, Env: t.Env, Path: t.Path, Home: t.Home, Timeout: tryTime,
	}, t.Keys, asked.note)
	if err != nil {
		return d.unready(out, err)
	}
	defer a.Close()
	a.Spec.Stdin, a.Spec.Limits.Timeout = bytes.NewReader(a.Program.Stdin), tryTime
	var heard bytes.Buffer
	exit, err := trier{d}.onNothing(ctx, a.Spec, &heard)
	if err != nil {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		return d.unready(out, err)
	}
	out.TookMS = time.Since(began).Milliseconds()
	d.verdict(&out, exit, turnIn(heard.Bytes()), lastLine(heard.String()), asked)
	return out, nil
}

// unready says what kept an agent from being started; what is wrong with the words of the command is an error.
func (d *Daemon) unready(out api.AgentTest, err error) (api.AgentTest, error) {
	p := problem.Of(err)
	switch {
	case errors.Is(err, credential.ErrMissing):
		out.Problem = noKey
	case p.Kind == problem.NotFound:
		out.Problem = notInstalled
	case p.Kind == problem.Usage || p.Kind == problem.Denied:
		return out, err
	default:
		out.Problem = cannotStart
	}
	out.Text, out.Next = d.secrets.short(p.Text), p.Next
	return out, nil
}

// overheard remembers what was asked of a way out, as far as it explains why nothing came of it.
type overheard struct {
	mu      sync.Mutex
	model   int    // requests that went to the model
	failed  string // why the model could not be reached
	refused string // the first name that was refused
}

func (a *overheard) note(d egress.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case d.Route != "" && d.Verdict == egress.Allowed:
		a.model++
	case d.Route != "" && a.failed == "":
		a.failed = d.Why
	case d.Route == "" && d.Verdict == egress.Refused && a.refused == "":
		a.refused = d.Host
	}
}

// Of what an agent or its model's endpoint says when the key, or the model, is not what it should be.
var (
	saysKey   = pattern.Of(`(?i)\b(401|403)\b|unauthori[sz]ed|invalid[ _-]?(x-)?api[ _-]?key|incorrect api key|api key (is )?(not valid|invalid|missing)|authentication|permission[ _]denied`)
	saysModel = pattern.Of(`(?i)\b404\b|(unknown|no such|invalid) model|model.{0,120}(not (found|exist|supported|available)|does not exist|unknown)`)
)

// verdict says in one line how it went.
func (d *Daemon) verdict(out *api.AgentTest, exit sandbox.Exit, end *agent.TurnEnd, last string, asked *overheard) {
	asked.mu.Lock()
	defer asked.mu.Unlock()
	why := last
	if end != nil && end.Reason != "" {
		why = end.Reason
	}
	why = d.secrets.short(why)
	list := "sallyport agent list"
	switch {
	case end != nil && end.Outcome == agent.TurnDone:
		out.OK, out.Says = true, d.secrets.short(end.Says)
		out.Text = fmt.Sprintf("%s works: its model answered", out.Agent)
	case exit.Limit != nil:
		out.Problem, out.Text = noAnswer, fmt.Sprintf("%s did not answer: %s", out.Agent, session.Describe(exit))
	case asked.failed != "":
		out.Problem, out.Text, out.Next = hostRefused, fmt.Sprintf("%s cannot reach its model: %s", out.Agent, d.secrets.short(asked.failed)), list
	case asked.model > 0 && saysKey().MatchString(why):
		out.Problem, out.Text, out.Next = keyRefused, fmt.Sprintf("%s: its model refuses the key: %s", out.Agent, why), list
	case asked.model > 0 && saysModel().MatchString(why):
		out.Problem, out.Text, out.Next = modelUnknown, fmt.Sprintf("%s: its endpoint does not know the model: %s", out.Agent, why),
			"sallyport agent test "+out.Agent+" --model NAME"
	case asked.model == 0 && asked.refused != "":
		out.Problem, out.Text, out.Next = hostRefused,
			fmt.Sprintf("%s asked for %s, which it may not reach: %s", out.Agent, d.secrets.short(asked.refused), why), list
	case asked.model == 0:
		out.Problem, out.Text, out.Next = cannotStart, fmt.Sprintf("%s cannot start: %s", out.Agent, why), list
	default:
		out.Problem, out.Text = noAnswer, fmt.Sprintf("%s got no answer from its model: %s", out.Agent, why)
	}
}

// turnIn finds how the first turn ended in what an adapter wrote: only its own lines begin with a brace.
func turnIn(heard []byte) *agent.TurnEnd {
	for line := range bytes.Lines(heard) {
		var end agent.TurnEnd
		if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &end) == nil && end.Type == agent.TurnEndType {
			return &end
		}
	}
	return nil
}

// lastLine is the last line of a text that says something.
func lastLine(text string) string {
	last := "it said nothing"
	for line := range strings.Lines(text) {
		if l := strings.TrimSpace(line); l != "" && !strings.HasPrefix(l, "{") {
			last = l
		}
	}
	return last
}

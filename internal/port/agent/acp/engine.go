package acp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/child"
)

const (
	startMax  = 110 * time.Second // until an agent takes words; less than the adapter waits
	cancelMax = 8 * time.Second   // until a turn that was cancelled is over; less than the adapter waits
	steerMax  = 5 * time.Second   // until an agent says whether it takes words
	loginsMax = 3                 // ways to log in that are tried
)

// Engine drives one agent.
type Engine struct{}

var _ agent.Engine = Engine{}

// Open starts the agent's program and brings it to where it takes words.
func (Engine) Open(ctx context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("see where the agent works: %w", err)
	}
	at := place{Order: o, dir: dir, home: os.Getenv("HOME")}
	d := dialectOf(o.Agent)
	if err := d.prepare(at); err != nil {
		return nil, err
	}
	prog, err := child.Start(child.Options{Argv: slices.Concat(o.Argv, d.arguments(at)), Env: slices.Concat(d.environment(at), o.Env)})
	if err != nil {
		return nil, err
	}
	t := newTalk(newConn(prog, prog.Stdin), at, d, show)
	go t.conn.run() // until the program ends
	if err := t.open(ctx, last); err != nil {
		return nil, ended(err, prog)
	}
	return t, nil
}

// open greets the agent and begins a session, or goes on with the last.
func (t *talk) open(ctx context.Context, last string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startMax, fmt.Errorf("the agent did not answer within %s", startMax))
	defer cancel()
	var hello greeting
	err := t.conn.call(ctx, "initialize", map[string]any{
		"protocolVersion":    version,
		"clientCapabilities": map[string]any{"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		"clientInfo":         map[string]string{"name": "sallyport", "version": "1"},
	}, &hello)
	if err != nil {
		return err
	}
	if hello.Version != version {
		return fmt.Errorf("the agent speaks version %d of ACP, and sallyport speaks version %d", hello.Version, version)
	}
	t.steering = hello.Meta.Steering.Supported
	if last != "" && !t.at.Chat {
		if err := t.requeue(); err != nil {
			t.show.Note(inert.Brief(err.Error(), saidBytesMax))
		}
	}
	got, err := t.begin(ctx, hello, last)
	if err != nil {
		return err
	}
	t.keeps = t.dialect.loads && (hello.Agent.Loads || hello.Agent.Sessions.Resume != nil)
	if err := t.setModel(ctx, got); err != nil {
		return err
	}
	if t.dialect.titled && hello.Agent.Sessions.Title != nil {
		// A session without a title asks the model for one beside the turn.
		_ = t.conn.call(ctx, "session/set_title", map[string]any{"sessionId": t.session, "title": t.at.title()}, nil) // else it asks
	}
	return nil
}

// begin goes on with the last session if the agent can, else it begins one.
func (t *talk) begin(ctx context.Context, hello greeting, last string) (got opened, err error) {
	where := map[string]any{"cwd": t.at.dir, "mcpServers": t.servers()}
	if t.dialect.session != nil {
		where["_meta"] = t.dialect.session(t.at)
	}
	if method := t.resuming(hello); last != "" && method != "" {
		// What it says of the past is no part of a turn, so nobody is shown it.
		again := maps.Clone(where)
		again["sessionId"] = last
		err := t.conn.call(ctx, method, again, &got)
		if err == nil {
			t.session, t.loaded = last, true
			return got, nil
		}
		if ctx.Err() != nil || t.conn.over() {
			return got, err
		}
		t.show.Note("the agent cannot go on with its own session: " + err.Error())
	}
	err = t.conn.call(ctx, "session/new", where, &got)
	for i := 0; wantsLogin(err) && i < loginsMax; i++ {
		id := silent(hello.Logins, i)
		if id == "" {
			break
		}
		if t.conn.call(ctx, "authenticate", map[string]any{"methodId": id}, nil) == nil {
			err = t.conn.call(ctx, "session/new", where, &got)
		}
	}
	switch {
	case err != nil && wantsLogin(err):
		return got, fmt.Errorf("%w (a person would have to log in, and nobody can inside a sandbox)", err)
	case err != nil:
		return got, err
	case got.ID == "" || len(got.ID) > idMax:
		return got, errors.New("the agent gave its session no usable name")
	}
	t.session = got.ID
	if t.dialect.instructions == "" && !t.dialect.inSession {
		t.foreword = t.at.Foreword(t.dialect.byHand)
	}
	return got, nil
}

// servers are the MCP servers of a session: the host's own, if it has tools for this one.
func (t *talk) servers() []any {
	if t.dialect.byHand {
		return []any{}
	}
	server, err := t.at.ToolServer()
	if err != nil {
		t.show.Note(err.Error())
	}
	if len(server) == 0 {
		return []any{}
	}
	return []any{map[string]any{"name": agent.ToolsName, "command": server[0], "args": server[1:], "env": []any{}}}
}

// resuming is the method by which an agent goes on; "" = it cannot.
func (t *talk) resuming(hello greeting) string {
	switch {
	case !t.dialect.loads:
		return ""
	case hello.Agent.Sessions.Resume != nil:
		return "session/resume" // without a replay
	case hello.Agent.Loads:
		return "session/load"
	}
	return ""
}

// silent is the nth login that may work without a person: by a key, which is a dummy inside.
func silent(logins []login, n int) string {
	for _, l := range logins {
		id := strings.ToLower(l.ID)
		if len(l.ID) > idMax || !strings.Contains(id, "key") && !strings.Contains(id, "env") {
			continue
		}
		if n--; n < 0 {
			return l.ID
		}
	}
	return ""
}

// setModel asks for the model that is wanted, of an agent that was not told in its own way.
func (t *talk) setModel(ctx context.Context, got opened) error {
	want := t.at.Model
	if want == "" || t.dialect.model || got.Models.Current == want {
		return nil
	}
	for _, o := range got.Options {
		if o.ID == "model" || o.Category == "model" {
			err := t.conn.call(ctx, "session/set_config_option", map[string]any{"sessionId": t.session, "configId": o.ID, "value": want}, nil)
			return unset(want, err)
		}
	}
	err := t.conn.call(ctx, "session/set_model", map[string]any{"sessionId": t.session, "modelId": want}, nil)
	return unset(want, err)
}

func unset(model string, err error) error {
	if err != nil {
		return fmt.Errorf("the agent refuses the model %q: %w", model, err)
	}
	return nil
}

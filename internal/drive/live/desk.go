package live

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
)

// Handler does what an agent asks its host for.
type Handler = func(ctx context.Context, c tool.Call) (tool.Result, error)

// Desk is where agents ask their host for things: each session has a socket of its own, and what is asked there is asked by it.
type Desk struct {
	Folder  string // of sockets
	Program string // by which agents ask, on the host; "" = there is none
	// Open opens a socket for what a session has. serve answers until ctx ends; then the socket is gone.
	Open func(socket string, owner sandbox.Owner, has map[tool.Name]Handler, intake func() string) (serve func(ctx context.Context) error, err error)
	Log  *slog.Logger
}

// SocketPrefix begins the names of the sockets at which agents ask the host for things.
const SocketPrefix = "tools-"

// Seat opens the socket of one session, and returns what its sandbox has to show of it. leave closes it, and waits for what is asked.
func (d Desk) Seat(ctx context.Context, session string, owner sandbox.Owner, has map[tool.Name]Handler,
	intake func() string) (binds []sandbox.Bind, leave func(), err error) {
	socket := filepath.Join(d.Folder, SocketPrefix+session)
	serve, err := d.Open(socket, owner, has, intake)
	if err != nil {
		return nil, nil, fmt.Errorf("open the socket for what the agent asks: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var served sync.WaitGroup
	served.Go(func() {
		if err := serve(ctx); err != nil {
			d.Log.Warn("an agent can ask the host for nothing any more, until its session begins anew", "for", session, "error", err)
		}
	})
	binds = append(binds, sandbox.Bind{Source: socket, Target: sandbox.ToolSocket})
	if d.Program != "" {
		binds = append(binds, sandbox.Bind{Source: d.Program, Target: sandbox.ToolProgram})
	}
	return binds, func() { cancel(); served.Wait() }, nil
}

// Without takes tools away by name.
func Without(has map[tool.Name]Handler, off []string) map[tool.Name]Handler {
	for _, name := range off {
		delete(has, tool.Name(name))
	}
	return has
}

// Counted has equal calls of one turn count, each for itself: words that are said twice are two messages. A later try of the turn counts
// from the beginning, so that each of them has the result that it had.
func Counted[T comparable](turn func() T, do Handler) Handler {
	var mu sync.Mutex // held while one is done: the next is another only if this one was
	var of T
	var done map[string]int
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := turn(); done == nil || now != of {
			of, done = now, map[string]int{}
		}
		key := c.Key()
		c.Again = done[key]
		r, err := do(ctx, c)
		if err == nil {
			done[key]++
		}
		return r, err
	}
}

// ToOriginator are the tools by which an agent that changes what a group runs speaks with that group's agent, and with nobody else.
func ToOriginator(hear func(ctx context.Context, words, key string) error) map[tool.Name]Handler {
	return map[tool.Name]Handler{
		tool.SendMessage: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			m := c.Args.(tool.Message)
			if m.To != "" {
				return tool.Result{}, problem.Errorf(problem.Usage, "sallyport-tool send_message --help",
					"what you send reaches the group's agent, and nobody else: leave out to")
			}
			return tool.Result{Text: "The group's agent has it."}, hear(ctx, m.Text, c.Key())
		},
		tool.AskUserQuestion: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			q := c.Args.(tool.Question)
			words := q.Question
			for i, o := range q.Options {
				words += fmt.Sprintf("\n%d. %s", i+1, o)
			}
			return tool.Result{Text: tool.Asked}, hear(ctx, words, c.Key())
		},
	}
}

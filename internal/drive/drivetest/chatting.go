package drivetest

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/live"
	"sallyport/internal/inside/adapter"
	"sallyport/internal/path/layer"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/who/group"
)

// Groups gives a home a repository with groups, whose agents a driver runs.
func Groups(h *Home, echo agent.Driver, groups []string) git.Dir {
	h.T.Helper()
	h.Repo = filepath.Join(h.Parts.Home, "home")
	if err := os.Mkdir(h.Repo, 0o700); err != nil {
		h.T.Fatal(err)
	}
	h.Git("init", "-q", "-b", "main")
	var all []group.Beginning
	for _, g := range groups {
		all = append(all, group.Beginning{Folder: group.Folder(g)})
	}
	files, err := group.NewHome(all)
	if err != nil {
		h.T.Fatal(err)
	}
	by := group.By{Ref: "refs/heads/main", Author: git.Signature{Name: "Ann", Email: "ann@example.org", At: time.Now()}}
	by.Committer = by.Author
	repo := git.Dir{Path: filepath.Join(h.Repo, ".git")}
	if _, err := group.MakeHome(gittest.Context(h.T), repo, files, by); err != nil {
		h.T.Fatal(err)
	}
	h.Parts.Agents = map[string]agent.Driver{"echo": echo}
	return repo
}

// Dispatches is what a dispatcher of a home stands on. Its agents' desk hears nothing.
func Dispatches(h *Home, c *control.Controller, repo git.Dir) dispatch.Parts {
	h.T.Helper()
	state := filepath.Join(h.Parts.Home, "state")
	for _, dir := range []string{"groups", "sockets"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o700); err != nil {
			h.T.Fatal(err)
		}
	}
	return dispatch.Parts{
		Ledger: c.Ledger, Runtime: c.Runtime, Owner: h.Parts.Owner, Home: repo, Changes: c,
		Trees:  layer.New(layer.Config{Root: filepath.Join(state, "trees"), Whole: true, Standing: func(func(git.OID)) error { return nil }}),
		Folder: filepath.Join(state, "groups"), Zone: func() *time.Location { return time.UTC },
		Self: h.Parts.Settings.Self, AtOnce: 4, PromptOf: 10,
		Desk: live.Desk{Folder: filepath.Join(state, "sockets"), Log: c.Log,
			Open: func(string, sandbox.Owner, map[tool.Name]live.Handler, func() string) (func(context.Context) error, error) {
				return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
			}},
	}
}

// Talking is a driver whose program is an adapter in a conversation.
type Talking struct {
	Steers func() bool // whether it takes words in the middle of a turn; nil = no
}

func (Talking) Name() string                     { return "echo" }
func (Talking) Capabilities() agent.Capabilities { return agent.Capabilities{} }

func (d Talking) Program(t agent.Task) (agent.Program, error) {
	line, err := json.Marshal(agent.Order{Engine: "echo", Agent: "echo", Chat: t.Chat, System: t.System, Resumed: t.Resumed})
	return agent.Program{
		Name: "echo", Argv: []string{"adapt"}, Stdin: append(line, '\n'), Messages: true, Turns: true, Keeps: true, Chat: true,
		Steers: d.Steers != nil && d.Steers(),
	}, err
}

// Adapt is the adapter of an agent that is played, until it ends or is killed.
func Adapt(spec sandbox.Spec, in io.Reader, killed <-chan struct{}, plays agent.Engine) int {
	ended, stop := make(chan os.Signal, 1), make(chan struct{})
	defer close(stop)
	go func() { // ends with the program
		select {
		case <-killed:
			ended <- os.Kill
		case <-stop:
		}
	}()
	return adapter.Run(context.Background(), adapter.Options{
		Engines: map[string]agent.Engine{"played": plays, "echo": plays}, In: in, Out: spec.Stdout, Home: spec.Home, Ended: ended,
	})
}

// Talk is what a played conversation is unless it says otherwise: of the only session there is, loaded, and not steered.
type Talk struct{}

func (Talk) Session() string                    { return "the only one" }
func (Talk) Loaded() bool                       { return true }
func (Talk) Steer(context.Context, string) bool { return false }
func (Talk) Close() error                       { return nil }

// Last is the text of the last message of a batch.
func Last(words string) string {
	_, after, _ := strings.Cut(words[max(strings.LastIndex(words, "<message "), 0):], ">")
	text, _, _ := strings.Cut(after, "</message>")
	return text
}

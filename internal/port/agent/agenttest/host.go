package agenttest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk"
	door "sallyport/internal/door/tools"
	"sallyport/internal/port/tool"
)

// ToolProgram puts the program that calls the host's tools first on the PATH.
func ToolProgram(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-mod=readonly", "-buildvcs=false", "-o", dir+"/", "sallyport/cmd/sallyport-tool")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build sallyport-tool: %v\n%s", err, out)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// Host serves the tools of a conversation on a real socket, and says what was called.
func Host(t testing.TB) (socket string, calls <-chan tool.Call) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	heard := make(chan tool.Call, 100)
	handlers := map[tool.Name]door.Handler{}
	for _, name := range tool.Standing {
		handlers[name] = func(_ context.Context, c tool.Call) (tool.Result, error) {
			heard <- c
			return tool.Result{Text: "the host has it"}, nil
		}
	}
	d, err := door.Open(disk.Ops{}, socket, door.Session{Handlers: handlers, Told: func(door.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket, heard
}

// Sent waits for the one message that was sent by a tool, and returns its text; "" if none was.
func Sent(calls <-chan tool.Call) string {
	select {
	case c := <-calls:
		if m, ok := c.Args.(tool.Message); ok {
			return m.Text
		}
	default:
	}
	return ""
}

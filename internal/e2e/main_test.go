package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/keeper"
	"sallyport/internal/daemon"
	"sallyport/internal/door/client"
	"sallyport/internal/inside/adapter"
	"sallyport/internal/inside/runner"
	"sallyport/internal/inside/tools"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest/scripttest"
)

// TestMain makes the test binary everything a home needs: the daemon, its sandboxes' launcher
// and init, the agents in them and what these ask the host by, and the keeper. So the processes that are killed here are real ones.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == agent.ToolsProgram {
		os.Exit(tools.Main(context.Background(), tools.System()))
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "runner":
			if os.Args[2] == "adapt" {
				os.Exit(adapter.Main(engines()))
			}
			os.Exit(runner.Main(os.Args[2:]))
		case "daemon":
			endWithLane()
			os.Exit(serve(os.Args[2:]))
		case "agent":
			syscall.Exit(play(os.Args[2:])) // at once: with the race detector in it os.Exit sleeps a second in there
		case "start", "watch", "serve", "again":
			endWithLane()
			os.Exit(keeper.Main(os.Args[1:], os.Stdout, os.Stderr))
		}
	}
	// One more at a time than there are processors, as the stories of cmd/sallyport: many wait for a deadline, or for a daemon to end. The
	// command line may say otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+1))
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a temporary folder
	}
	os.Exit(code)
}

// engines are the product's, and the one that plays.
func engines() map[string]agent.Engine {
	all := adapter.Engines()
	all["scripted"] = scripttest.Engine{}
	return all
}

// serve is `daemon run --home HOME` and `daemon start --home HOME`, the latter for a keeper.
func serve(args []string) int {
	var line *keeper.Line
	if len(args) == 4 && args[1] == "--kept" {
		args = slices.Delete(args, 1, 2)
		var err error
		if line, err = keeper.Answer(); err != nil {
			fmt.Fprintln(os.Stderr, "daemon:", err)
			return 1
		}
	}
	if len(args) != 3 || args[1] != "--home" {
		fmt.Fprintf(os.Stderr, "daemon: %q\n", args)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	var err error
	switch args[0] {
	case "run":
		err = run(ctx, args[2], line)
	case "start":
		var self string
		if self, err = os.Executable(); err == nil {
			_, err = client.Starter{Person: client.Me(), Self: self, Wait: time.Minute}.Ensure(ctx, args[2])
		}
	default:
		err = fmt.Errorf("no such word: %q", args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		return 1
	}
	return 0
}

// unplayed is the driver of agents that speak ACP, as far as they need not run.
type unplayed struct{ scripted }

func (unplayed) Name() string                                { return "acp" }
func (unplayed) Program(t agent.Task) (agent.Program, error) { return agent.Adapt("acp", t, nil, nil) }

// run serves a home with the operations that the environment asks for: plain, fatal or marked.
func run(ctx context.Context, home string, line *keeper.Line) error {
	var kills func() // another process, and not itself
	if whom := os.Getenv(victim); whom != "" {
		kills = func() { strike(whom, home) }
	}
	ops, err := disktest.FromEnvDoing(kills)
	if err != nil {
		return err
	}
	if os.Getenv(stray) != "" {
		if err := writeAstray(ctx, home); err != nil {
			return err
		}
	}
	o := daemon.Options{Home: home, Line: line, Ops: ops, Agents: []agent.Driver{scripted{}, unplayed{}}}
	if os.Getenv(graceless) != "" {
		o.Grace = -1
	}
	if addr := os.Getenv(elsewhere); addr != "" {
		o.Outside = allAt(addr)
	}
	return daemon.Run(ctx, o)
}

package agenttest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"sallyport/internal/port/agent"
)

const (
	agentsDir = "SALLYPORT_AGENTS"    // where `make agents` has installed them
	noAgents  = "SALLYPORT_NO_AGENTS" // "1": tests go without
)

// owed are the agents that are not skipped by chance: they are what people use first.
var owed = []string{"codex", "codex-acp", "gemini", "pi"}

// Real returns the program of a real agent that `make agents` has installed, and a PATH with which it is found and runs. Without
// it the test fails or, for agents that need not be there, is skipped.
func Real(t testing.TB, name string) (program, path string) {
	t.Helper()
	if os.Getenv(noAgents) == "1" {
		t.Skipf("%s=1: the real %s is not run", noAgents, name)
	}
	known, err := agent.Lookup(name)
	if err != nil || len(known.Programs) == 0 {
		t.Fatalf("%q has no program: %v", name, err)
	}
	dir := AgentsDir()
	bin := filepath.Join(dir, name, "node_modules", ".bin")
	program = filepath.Join(bin, known.Programs[0])
	if _, err := os.Stat(program); err != nil {
		const help = "the real %s is not in %s: run `make agents`, or set %s=1 to go without"
		if slices.Contains(owed, name) && runtime.GOOS == "linux" {
			t.Fatalf(help, name, dir, noAgents)
		}
		t.Skipf(help, name, dir, noAgents)
	}
	return program, bin + ":" + filepath.Join(dir, "node", "node_modules", ".bin") + ":" + os.Getenv("PATH")
}

// AgentsDir is where `make agents` installs real agents.
func AgentsDir() string { return cache }

// cache is looked up before a test gives itself another home.
var cache = func() string {
	if dir := os.Getenv(agentsDir); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sallyport", "agents")
}()

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// gitsMax is how many git processes one run may start, from the request to what has landed, beside those of gitsAside.
const gitsMax = 16

// gitsAside are bounded by themselves. A configuration that was written a moment ago is read for each of the 14 questions of a run, because
// a second write might leave no trace; how long ago that was depends on the machine. A process that reads objects begins anew where packs
// have gone.
var gitsAside = map[string]int{"config": 16, "cat-file": 4}

// TestARunStartsFewProcesses holds what a run costs: each step once asked git by a process for each question, 140 of them.
func TestARunStartsFewProcesses(t *testing.T) {
	if !apart(t) {
		return
	}
	p := newPlace(t)
	log := p.countGits(t)
	git(t, p.dir, "init", "-q", "-b", "main", p.repo)
	git(t, p.repo, "config", "user.name", "Ann")
	git(t, p.repo, "config", "user.email", "ann@example.org")
	disktest.Put(t, filepath.Join(p.repo, "file"), "0\n", 0o644)
	git(t, p.repo, "add", "-A")
	git(t, p.repo, "commit", "-qm", "begin")
	c := p.start(t)
	defer p.stop(t, c)

	land := func(text string) []string {
		t.Helper()
		disktest.Put(t, log, "", 0o666)
		asked, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{
			Dir: p.repo, Text: "One line", Agent: "command", Argv: []string{"sh", "-c", "echo " + text + " > file"},
			Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: "yes",
		})
		if err != nil {
			t.Fatal(err)
		}
		if at := rest(t, c, asked.ID, nil); at.State != api.Finalized {
			t.Fatalf("%s is %s: %s\n%s", asked.ID, at.State, at.Reason, p.said())
		}
		written, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(written)), "\n")
	}
	land("1") // the host's repository and the first layer are made
	verbs := land("2")

	kinds, counted := map[string]int{}, 0
	for _, verb := range verbs {
		if kinds[verb]++; gitsAside[verb] == 0 {
			counted++
		}
	}
	if counted == 0 || counted > gitsMax {
		t.Errorf("a run starts %d processes of git, which may be %d: %v", counted, gitsMax, kinds)
	}
	for verb, most := range gitsAside {
		if kinds[verb] > most {
			t.Errorf("a run starts %d processes of git %s, which may be %d", kinds[verb], verb, most)
		}
	}
}

// countGits puts a git before the real one in the PATH of the daemon to come, which writes down what each process is asked for.
func (p *place) countGits(t *testing.T) (log string) {
	t.Helper()
	is, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(p.dir, "count")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(folder, "log")
	script := `#!/bin/sh
for word; do
	case "$skip$word" in
	-c) skip=1 ;;
	1*) skip= ;;
	-*) ;;
	*) echo "$word" >> '` + log + `'; break ;;
	esac
done
exec '` + is + `' "$@"
`
	disktest.Put(t, filepath.Join(folder, "git"), script, 0o755)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return log
}

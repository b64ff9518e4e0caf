package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/config"
)

// doctor asks a doctor about a home; what connecting answers is given.
func (d *daemon) doctor(home string, err error, more ...string) result {
	var out bytes.Buffer
	p := Program{Out: &out, Err: &out, Getenv: os.Getenv, Dir: os.Getwd, Connect: func(context.Context, string, bool) (*client.Client, error) {
		return client.New(d.socket), err
	}}
	code := Main(p, append([]string{"doctor", "--home", home}, more...))
	return result{code, out.String(), ""}
}

func TestTheDoctorReadsTheHomesFiles(t *testing.T) {
	d := newDaemon(t)
	home := t.TempDir()
	for name, text := range map[string]string{"sallyport.yaml": "limits: [\n", "policy.yaml": "no_such_key: 1\n"} {
		disktest.Put(t, filepath.Join(home, name), text, 0o600)
	}
	got := d.doctor(home, nil)
	for _, want := range []string{"MISSING sallyport.yaml: ", "MISSING policy.yaml: ", "no_such_key", "fix: ${EDITOR:-vi} "} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in:\n%s", want, got.out)
		}
	}
	if got.code != exitError {
		t.Errorf("exit %d", got.code)
	}
}

// A file that does not load is no fault by which nothing runs, where what loaded last goes on.
func TestTheDoctorSaysWhatGoesOnInThePlaceOfAFile(t *testing.T) {
	d := newDaemon(t)
	home := t.TempDir()
	says := func(text string) {
		t.Helper()
		disktest.Put(t, filepath.Join(home, "policy.yaml"), text, 0o600)
	}
	says("paths_max: 7\n")
	s, err := config.Open(home, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	says("paths_max: [\n")
	s.Policy()
	got := d.doctor(home, nil)
	found := regexp.MustCompile(`REFUSED policy\.yaml: it does not load, found (just now|\S+ ago): ` + regexp.QuoteMeta(home) + `/policy\.yaml:1:`) // a busy machine takes a while
	if !found.MatchString(got.out) {
		t.Errorf("%s is not in:\n%s", found, got.out)
	}
	for _, want := range []string{"goes on (" + home + "/.state/config/policy.yaml)", "nothing is approved and nothing lands", "fix: ${EDITOR:-vi} " + home + "/policy.yaml"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in:\n%s", want, got.out)
		}
	}
	if got.code != exitDone {
		t.Errorf("exit %d", got.code)
	}
}

func TestTheStatusNamesAFileThatDoesNotLoad(t *testing.T) {
	d := newDaemon(t)
	d.settings = []api.Unloaded{{File: "policy.yaml", Since: time.Now().Add(-90 * time.Minute), Line: 3, Problem: "/h/policy.yaml:3:1: oops\x1b[31m", InForce: "What it said goes on.", Next: "vi /h/policy.yaml"}}
	got := d.cli("status")
	for _, want := range []string{"settings policy.yaml: it does not load, found 1h30m ago: /h/policy.yaml:3:1: oops", ". What it said goes on.\n", "to correct it: vi /h/policy.yaml\n"} {
		if !strings.Contains(got.out, want) || strings.Contains(got.out, "\x1b") {
			t.Errorf("%q is not in:\n%s", want, got.out)
		}
	}
	if got := d.cli("status", "--json"); !strings.Contains(got.out, `"line": 3`) || !strings.Contains(got.out, `"in_force": "What it said goes on."`) {
		t.Errorf("%s", got.out)
	}
}

// Whoever has just written a limit would else believe that the change has it.
func TestARunSaysThatAFileOfTheHomeDoesNotLoad(t *testing.T) {
	d := newDaemon(t)
	d.accepted, d.detail = api.Change{ID: "chg-00000001"}, finalized()
	d.settings = []api.Unloaded{{File: "sallyport.yaml", Since: time.Now().Add(-90 * time.Minute), Problem: "/h/sallyport.yaml:3:1: oops\x1b[31m", InForce: "What it said goes on.", Next: "vi /h/sallyport.yaml"}}
	got := d.cli("run", "--request", "x", "--approve", "yes", "--", "true")
	for _, want := range []string{"note: sallyport.yaml: it does not load, found 1h30m ago: /h/sallyport.yaml:3:1: oops", "What it said goes on.\n", "to correct it: vi /h/sallyport.yaml\n"} {
		if !strings.Contains(got.err, want) || strings.Contains(got.err, "\x1b") {
			t.Errorf("%q is not in:\n%s", want, got.err)
		}
	}
	if got := d.cli("run", "--request", "x", "--approve", "yes", "--json", "--", "true"); got.err != "" || got.code != exitDone {
		t.Errorf("in JSON: %+v", got)
	}
}

func TestTheDoctorGoesOnWithADaemonOfAnotherBuild(t *testing.T) {
	d := newDaemon(t)
	got := d.doctor(t.TempDir(), problem.Errorf(problem.Unavailable, "sallyport daemon stop", "the daemon is build x"))
	if !strings.Contains(got.out, "absent  build: the daemon is build x") || !strings.Contains(got.out, "ok      sandbox: they run") {
		t.Errorf("exit %d\n%s", got.code, got.out)
	}
}

func TestTheDoctorShowsEachTryOfTheSelfTestIfAsked(t *testing.T) {
	d := newDaemon(t)
	d.tries = []api.Try{{Name: "read a file", Held: true, Control: "outside", Detail: "no such file"}, {Name: "mount\x1b[31m", Control: "outside", Detail: "it worked"},
		{Name: "fly", Held: true, Detail: "no wings"}}
	if got := d.doctor(t.TempDir(), nil); strings.Contains(got.out, "read a file") {
		t.Errorf("shown unasked: %s", got.out)
	}
	got := d.doctor(t.TempDir(), nil, "--self-test")
	for _, want := range []string{"fails  read a file; it works outside", "WORKS  mount", "fails  fly; it works nowhere on this machine"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "\x1b") {
		t.Errorf("%q", got.out)
	}
}

func TestAFixIsNotTheCommandThatHasJustBeenRun(t *testing.T) {
	d := newDaemon(t)
	d.stuck = []api.Check{{Name: "confinement", Detail: "it does not come up", Fix: "sallyport doctor"}, {Name: "self-test", Detail: "a program can fly", Fix: "sallyport doctor --self-test"}}
	if got := d.doctor(t.TempDir(), nil); strings.Count(got.out, "fix: sudo dmesg") != 1 || !strings.Contains(got.out, " doctor --self-test\n") {
		t.Errorf("%s", got.out)
	}
	if got := d.doctor(t.TempDir(), nil, "--self-test"); strings.Count(got.out, "fix: sudo dmesg") != 2 || strings.Contains(got.out, " doctor") {
		t.Errorf("%s", got.out)
	}
}

func TestTheStatusShowsTheSandboxesPolicyOrWhyNothingIsRun(t *testing.T) {
	d := newDaemon(t)
	d.sandbox = api.Sandbox{Works: true, Policy: "bwrap: a uid of its own, no network"}
	if got := d.cli("status"); !strings.Contains(got.out, "sandbox bwrap: a uid of its own, no network") {
		t.Errorf("%s", got.out)
	}
	d.sandbox = api.Sandbox{Problem: "the sandbox is weaker than it must be", Next: "sallyport doctor"}
	if got := d.cli("status"); !strings.Contains(got.out, "nothing is run: the sandbox is weaker") || !strings.Contains(got.out, "sallyport doctor") {
		t.Errorf("%s", got.out)
	}
}

func TestWhatIsStuckIsNamedWithItsReasonAndAWayOut(t *testing.T) {
	d := newDaemon(t)
	d.stuck = []api.Check{{Name: "change chg-1", Stuck: true, Detail: "landing: it waits\x1b[31m", Fix: "sallyport change cancel chg-1"}}
	got := d.doctor(t.TempDir(), nil)
	if !strings.Contains(got.out, "STUCK   change chg-1: landing: it waits") || !strings.Contains(got.out, "change cancel chg-1") || strings.Contains(got.out, "\x1b") {
		t.Errorf("%q", got.out)
	}
	d.detail.Change.State, d.detail.Change.Reason, d.detail.Change.WayOut = api.Landing, "it waits for the trial of chg-2", "sallyport change cancel chg-1"
	if got := d.cli("status"); !strings.Contains(got.out, "it waits for the trial of chg-2") || !strings.Contains(got.out, "stuck; to end that: sallyport change cancel chg-1") {
		t.Errorf("%s", got.out)
	}
}

func TestTheDoctorHasALineForEachAgentThatIsHere(t *testing.T) {
	d := newDaemon(t)
	d.agents = []api.Agent{
		{Name: "codex", Installed: true, Version: "1.2", KeyFrom: "file:/k"}, {Name: "qwen", Installed: true, Version: "3", Keyless: true},
		{Name: "pi", Installed: true, Version: "4", Keys: []string{"NO_SUCH_KEY_HERE"}}, {Name: "gemini", Installed: true, Problem: "its version is not known\x1b[31m"}, {Name: "opencode"},
	}
	got := d.doctor(t.TempDir(), nil)
	for _, want := range []string{"ok      agent codex: version 1.2, its key is there", "ok      agent qwen: version 3, its model asks for no key",
		"no key  agent pi: version 4, no key: set NO_SUCH_KEY_HERE", "absent  agent gemini: its version is not known", " agent test gemini"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "opencode") || strings.Contains(got.out, "\x1b") || got.code != exitDone {
		t.Errorf("exit %d\n%s", got.code, got.out)
	}
}

// The doctor and init say of a repository what a first run there would meet; of a folder that lies in none they say nothing.
func TestWhatARepositoryIsRefusedForAndWhatOfItDoesNotCountIsSaidBeforeAFirstRun(t *testing.T) {
	repo := t.TempDir()
	if err := os.Mkdir(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		refused error
		ignored []string
		want    []string
	}{
		"fine":    {nil, nil, nil},
		"refused": {problem.Errorf(problem.Refused, "git lfs uninstall", "it sets filter=lfs\x1b[31m"), nil, []string{"REFUSED repository: it sets filter=lfs", "fix: git lfs uninstall"}},
		"ignored": {nil, []string{"allowlists do not count\x1b[31m"}, []string{"ignored repository: allowlists do not count"}},
	} {
		d := newDaemon(t)
		d.refused, d.repository = test.refused, api.Repository{Top: repo, Branch: "main", Ignored: test.ignored}
		doctor := d.doctor(t.TempDir(), nil, "--repo", repo)
		init := d.cli("init", "--yes", "--force", "--repo", repo)
		for _, got := range []result{doctor, init} {
			for _, want := range test.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%s: %q is not in:\n%s", name, want, got.out)
				}
			}
			if got.code != exitDone || strings.Contains(got.out, "\x1b") {
				t.Errorf("%s: exit %d\n%s", name, got.code, got.out)
			}
		}
		if fine := "ok      repository: changes can be made in "; strings.Contains(doctor.out, fine) == (test.refused != nil) || strings.Contains(init.out, fine) {
			t.Errorf("%s: %s\n%s", name, doctor.out, init.out)
		}
		if !strings.Contains(init.out, "written") && !strings.Contains(init.out, "says exactly this already") || !strings.Contains(init.out, "next:") {
			t.Errorf("%s: %s", name, init.out)
		}
	}
	var out bytes.Buffer
	silent := Program{Out: &out, Err: &out, Getenv: os.Getenv, Dir: os.Getwd, Connect: func(context.Context, string, bool) (*client.Client, error) {
		return nil, problem.Errorf(problem.Unavailable, "sallyport daemon status", "no daemon answers")
	}}
	if code := Main(silent, []string{"init", "--yes", "--force", "--home", t.TempDir(), "--repo", repo}); code != exitDone || !strings.Contains(out.String(), "is not known: no daemon answers") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
	t.Chdir(t.TempDir())
	d := newDaemon(t)
	if got := d.doctor(t.TempDir(), nil); strings.Contains(got.out, "repository") || len(d.calls) > 0 && strings.Contains(strings.Join(d.calls, " "), "repository") {
		t.Errorf("in no repository: %s", got.out)
	}
}

package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/login"
	"sallyport/internal/rule/credential"
)

var (
	nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	keyForm  = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
)

func TestAnAgentThatAnImageDoesNotHaveIsNamedWithTheWayOut(t *testing.T) {
	tools, image := t.TempDir(), filepath.Join(t.TempDir(), "0123/root")
	if err := errors.Join(os.WriteFile(filepath.Join(tools, "codex"), []byte("#!/usr/bin/env sh\n"), 0o755), os.MkdirAll(image, 0o755)); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{"/usr/bin": `the agent "codex" (codex)`, tools: `what the agent "codex" needs`} {
		_, err := agent.Adapt("codex", agent.Task{Agent: "codex", Path: path, Image: image}, nil)
		if p := problem.Of(err); p.Kind != problem.NotFound || !strings.Contains(p.Text, says+" is not in the image 0123") || !strings.Contains(p.Text, "image/Dockerfile") {
			t.Errorf("%+v", p)
		}
	}
}

// The table is data that everything stands on: what is wrong with a line is found here, not by who runs the agent.
func TestEveryNamedAgentIsWhole(t *testing.T) {
	drivers := []string{"codex", "acp", "pi", "api", "echo"}
	seen := map[string]bool{}
	for _, k := range agent.Table() {
		if !nameForm.MatchString(k.Name) || seen[k.Name] || !agent.Named(k.Name) {
			t.Errorf("%q is no name of an agent, or stands there twice", k.Name)
		}
		seen[k.Name] = true
		if k.Title == "" || !slices.Contains(drivers, k.Driver) {
			t.Errorf("%s: title %q, driver %q", k.Name, k.Title, k.Driver)
		}
		if own := len(k.Programs) == 0; own != (k.Install == "") || own != (len(k.Version) == 0) || own && k.Driver != "api" && !k.Talks {
			t.Errorf("%s: a program is named together with how it is installed and shows its version: %+v", k.Name, k)
		}
		if len(k.Endpoints) == 0 && !k.Talks {
			t.Errorf("%s has no model", k.Name)
		}
		if l := k.Login; l != nil {
			known := slices.ContainsFunc(login.Kinds, func(of login.Kind) bool { return of.Name == l.Of })
			if e := l.Endpoint; !known || !e.Login || !strings.HasPrefix(e.Base, "https://") || e.Header != "Authorization" || len(e.Only) == 0 || len(e.Keys)+len(e.Bases) != 0 || e.Keyless {
				t.Errorf("%s: %+v", k.Name, *l)
			}
		}
		wires := map[agent.Wire]bool{}
		for _, e := range k.Endpoints {
			if wires[e.Wire] {
				t.Errorf("%s has the wire %s twice", k.Name, e.Wire)
			}
			wires[e.Wire] = true
			if err := credential.CheckBase(e.Base); err != nil || !strings.HasPrefix(e.Base, "https://") || e.Header == "" || len(e.Paths) == 0 || len(e.Keys) == 0 || e.Keyless {
				t.Errorf("%s: %+v: %v", k.Name, e, err)
			}
			for _, name := range append(slices.Clone(e.Keys), e.Bases...) {
				if !keyForm.MatchString(name) {
					t.Errorf("%s: %q is no name of a variable", k.Name, name)
				}
			}
			for _, p := range e.Paths {
				if !strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") || strings.Contains(p, "..") {
					t.Errorf("%s: %q is no prefix of a path", k.Name, p)
				}
			}
		}
	}
	for _, want := range []string{"codex", "claude", "codex-acp", "gemini", "opencode", "qwen", "pi", "api", "echo"} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

// A file names agents that change files; echo stands in the table to be seen, and in a group's runner.yaml.
func TestOnlyAgentsThatChangeFilesAreOffered(t *testing.T) {
	if names := agent.Names(); slices.Contains(names, "echo") || !slices.Contains(names, "api") || len(names)+1 != len(agent.Table()) {
		t.Errorf("%q", names)
	}
	if k, err := agent.Lookup("echo"); err != nil || !k.Talks {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestAnAgentIsFoundByItsNameOrIsAnyThatSpeaksACP(t *testing.T) {
	k, err := agent.Lookup("gemini")
	if err != nil || k.Driver != "acp" || k.Programs[0] != "gemini" {
		t.Errorf("%+v, %v", k, err)
	}
	k, err = agent.Lookup(`acp:'my agent' --acp "a b"`)
	if err != nil || k.Driver != "acp" || !reflect.DeepEqual(k.Programs, []string{"my agent"}) || !reflect.DeepEqual(k.Args, []string{"--acp", "a b"}) || len(k.KeyNames()) != 0 {
		t.Errorf("%+v, %v", k, err)
	}
	for _, name := range []string{"", "claude-code", "Codex", "command", "replay", "acp", "acp:", "acp:  ", "acp:'x", "acp:a\nb", "acp:" + strings.Repeat("x", 5000), "acp:" + strings.Repeat("x ", 65)} {
		_, err := agent.Lookup(name)
		if problem.KindOf(err) != problem.Usage || problem.Of(err).Next != "sallyport agent list" {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	for name, want := range map[string]string{"pi": "pi", "api": "api", "acp:x": "acp", "codex-acp": "acp"} {
		if k, err := agent.Lookup(name); k.Driver != want || err != nil {
			t.Errorf("the driver of %q is %q, %v", name, k.Driver, err)
		}
	}
}

func TestACommandLineIsSplitAsAShellDoes(t *testing.T) {
	for line, want := range map[string][]string{
		"a": {"a"}, " a  b\tc ": {"a", "b", "c"}, `'a b' c`: {"a b", "c"}, `"a 'b'" c`: {"a 'b'", "c"}, `a\ b`: {"a b"}, `x'y'"z"`: {"xyz"},
		`'' b`: nil, `a ''`: {"a", ""}, `'a\b'`: {`a\b`}, `"a\b\"\\"`: {`a\b"\`}, `$HOME *.go a|b`: {"$HOME", "*.go", "a|b"},
		`"`: nil, `a\`: nil, "": nil,
	} {
		got, err := agent.Words(line)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
}

func TestTheModelIsWhereTheHomeSays(t *testing.T) {
	pi, _ := agent.Lookup("pi")
	codex, _ := agent.Lookup("codex")
	other, _ := agent.Lookup("acp:x")
	const local = "http://127.0.0.1:11434/v1"
	for name, test := range map[string]struct {
		of      agent.Known
		s       agent.Settings
		wire    agent.Wire
		base    string
		keyless bool
	}{
		"its own":                   {codex, agent.Settings{}, agent.Responses, "https://api.openai.com/v1", false},
		"elsewhere":                 {codex, agent.Settings{Base: "https://models.example.org/v1"}, agent.Responses, "https://models.example.org/v1", false},
		"on this machine":           {codex, agent.Settings{Base: local}, agent.Responses, local, true},
		"the first of two":          {pi, agent.Settings{}, agent.Messages, "https://api.anthropic.com", false},
		"the second of two":         {pi, agent.Settings{Wire: agent.Chat}, agent.Chat, "https://api.openai.com/v1", false},
		"one that it has not":       {pi, agent.Settings{Wire: agent.Gemini}, agent.Gemini, "https://generativelanguage.googleapis.com", false},
		"none of another":           {other, agent.Settings{}, "", "", false},
		"a wire alone":              {other, agent.Settings{Wire: agent.Chat}, "", "", false},
		"another with all it needs": {other, agent.Settings{Wire: agent.Chat, Base: local}, agent.Chat, local, true},
	} {
		e := test.of.Endpoint(test.s)
		if e == nil {
			e = &agent.Endpoint{}
		}
		if e.Wire != test.wire || e.Base != test.base || e.Keyless != test.keyless {
			t.Errorf("%s: %+v", name, e)
		}
	}
	codex.Endpoint(agent.Settings{Base: local}).Keys[0] = codex.Endpoints[0].Keys[0] // shared on purpose: nobody writes in them
	if again, _ := agent.Lookup("codex"); again.Endpoints[0].Base != "https://api.openai.com/v1" || again.Endpoints[0].Keyless {
		t.Errorf("a home's settings stayed in the table: %+v", again.Endpoints[0])
	}
}

package acp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
)

// placed is a place for an agent with the wire that its table has first.
func placed(t *testing.T, name, model string) place {
	t.Helper()
	known, err := agent.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return place{Order: agent.Order{Agent: name, Argv: []string{"/bin/x"}, Wire: known.Endpoints[0].Wire, Base: agent.ModelBase, Model: model}, dir: "/srv/it's \"here\"", home: t.TempDir()}
}

func TestEachAgentIsToldItsModelAndNoKey(t *testing.T) {
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			at := placed(t, name, "some-model")
			if err := d.prepare(at); err != nil {
				t.Fatal(err)
			}
			all := strings.Join(slices.Concat(d.arguments(at), d.environment(at)), "\n")
			_ = filepath.WalkDir(at.home, func(path string, e os.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					raw, _ := os.ReadFile(path)
					all += "\n" + string(raw)
					if strings.HasSuffix(path, ".json") && !json.Valid(raw) {
						t.Errorf("%s is no JSON: %s", path, raw)
					}
				}
				return nil
			})
			for _, want := range []string{agent.ModelBase, agent.DummyKey, "some-model", "NO_PROXY=127.0.0.1,localhost"} {
				if !strings.Contains(all, want) {
					t.Errorf("%q is nowhere in\n%s", want, all)
				}
			}
		})
	}
}

func TestAnAgentsFilesAreItsOwnWhateverStoodThere(t *testing.T) {
	at := placed(t, "gemini", "")
	outside := filepath.Join(t.TempDir(), "outside")
	disktest.Put(t, outside, "kept", 0o600)
	settings := filepath.Join(at.home, ".gemini/settings.json")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{settings, settings + ".new"} {
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := gemini.prepare(at); err != nil {
			t.Fatal(err)
		}
	}
	if raw, err := os.ReadFile(outside); string(raw) != "kept" {
		t.Errorf("what a link led to holds %q, %v", raw, err)
	}
	if raw, err := os.ReadFile(settings); !json.Valid(raw) {
		t.Errorf("the settings are %q, %v", raw, err)
	}
}

func TestWhatThePersonSaysOnTheCommandLineIsNotSaidAgain(t *testing.T) {
	at := placed(t, "gemini", "m1")
	if is := gemini.arguments(at); !slices.Equal(is, []string{"--approval-mode", "default", "--model", "m1"}) {
		t.Errorf("%q", is)
	}
	at.Argv = []string{"/bin/x", "--approval-mode=yolo", "--model", "m2"}
	if is := gemini.arguments(at); len(is) != 0 {
		t.Errorf("%q", is)
	}
}

func TestAnAgentThatIsInNoTableIsToldItsModelByTheUsualNames(t *testing.T) {
	for wire, want := range map[agent.Wire]string{
		agent.Chat: "OPENAI_BASE_URL=", agent.Responses: "OPENAI_BASE_URL=", agent.Messages: "ANTHROPIC_BASE_URL=", agent.Gemini: "GOOGLE_GEMINI_BASE_URL=",
	} {
		at := place{Order: agent.Order{Agent: "acp:x", Wire: wire, Base: agent.ModelBase}}
		if env := dialectOf("acp:x").environment(at); !slices.Contains(env, want+agent.ModelBase) {
			t.Errorf("%s: %q", wire, env)
		}
	}
	if env := dialectOf("acp:x").environment(place{}); len(env) != 2 {
		t.Errorf("without a model it has %q", env)
	}
}

// A repository's settings may name variables, and with them another endpoint: claude lets those of its session go before.
func TestClaudesSessionIsBoundToItsEndpointAndAsksForNoTitle(t *testing.T) {
	for _, last := range []string{"", "old"} {
		talk, p := play(t, agent.Order{Agent: "claude", Wire: agent.Messages, Base: agent.ModelBase})
		done := opening(talk, last)
		p.answers(p.hears("initialize"), `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`)
		method := "session/new"
		if last != "" {
			method = "session/load"
		}
		m := p.hears(method)
		for _, want := range []string{`"ANTHROPIC_BASE_URL":"` + agent.ModelBase + `"`, `"ANTHROPIC_API_KEY":"` + agent.DummyKey + `"`, `"title":"a change"`} {
			if !strings.Contains(string(m.Params), want) {
				t.Errorf("%s is not told %s: %s", method, want, m.Params)
			}
		}
		p.answers(m, `{"sessionId":"s"}`)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestTheSettingsOfCodexAreWhatTheyLookLike(t *testing.T) {
	at := placed(t, "codex-acp", `m"1`)
	text := codexConfig(at)
	for _, want := range []string{`model = "m\"1"`, `[projects."/srv/it's \"here\""]`, `sandbox_mode = "danger-full-access"`, `plugins = false`, `base_url = "` + agent.ModelBase + `"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// TestAnAgentThatMayFetchNothingHasNoToolOfTheWeb holds SM-041 for tools whose kind does not say that they reach the web.
func TestAnAgentThatMayFetchNothingHasNoToolOfTheWeb(t *testing.T) {
	for name, tools := range map[string][]string{"gemini": {"web_fetch", "google_web_search"}, "qwen": {"web_fetch", "web_search"}, "claude": {"WebFetch", "WebSearch"}} {
		for _, denied := range [][]string{nil, {"edit"}, {agent.Fetch}} {
			at := placed(t, name, "m1")
			at.Denied = denied
			d, text := dialects[name], ""
			for _, file := range d.files(at) {
				text += file
			}
			if d.session != nil {
				text += encoded(d.session(at))
			}
			for _, tool := range tools {
				if off := strings.Contains(text, `"`+tool+`"`); off != slices.Contains(denied, agent.Fetch) {
					t.Errorf("%s that may not %q is set up with %s", name, denied, text)
				}
			}
		}
	}
}

// TestAToolThatIsOffIsTakenInTheAgentsOwnWay holds SM-165 for tools of the agents themselves.
func TestAToolThatIsOffIsTakenInTheAgentsOwnWay(t *testing.T) {
	for name, place := range map[string]string{
		"gemini": `"exclude": [ "some_tool" ]`, "qwen": `"exclude": [ "some_tool" ]`, "claude": `"disallowedTools": [ "some_tool" ]`, "opencode": `"some_tool": "deny"`,
	} {
		for _, off := range [][]string{nil, {"some_tool"}} {
			at := placed(t, name, "m1")
			at.Off = off
			d := dialects[name]
			text := strings.Join(d.environment(at), "\n")
			if d.files != nil {
				for _, file := range d.files(at) {
					text += file
				}
			}
			if d.session != nil {
				text += encoded(d.session(at))
			}
			text = strings.Join(strings.Fields(text), " ")
			if strings.Contains(text, place) != (off != nil) || strings.Contains(text, `"exclude": null`) {
				t.Errorf("%s without %q is set up with %s", name, off, text)
			}
		}
	}

	if all := opencodePermissions(append([]string{"write"}, stuck.ToolsOff...)); all["edit"] != "deny" || all["bash"] != "ask" || len(all) != 3 {
		t.Errorf("opencode without its tool that writes: %v", all)
	}
}

// TestAPipeInThePlaceOfQueuedWordsHoldsNobodyUp holds that an agent cannot keep every later session of it from beginning.
func TestAPipeInThePlaceOfQueuedWordsHoldsNobodyUp(t *testing.T) {
	at := placed(t, "gemini", "")
	path := filepath.Join(at.home, queueName)
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	again := &talk{at: at}
	if err := again.requeue(); err == nil || again.queued != nil {
		t.Errorf("%v, %q", err, again.queued)
	}
	if !again.enqueue("say") {
		t.Error("it takes no words")
	}
	again = &talk{at: at}
	if err := again.requeue(); err != nil || !slices.Equal(again.queued, []string{"say"}) {
		t.Errorf("%v, %q", err, again.queued)
	}
}

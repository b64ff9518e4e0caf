package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/login"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

func TestAnAgentsOwnLoginTakesThePlaceOfAKeyWhereTheHomeSaysSo(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"access-token-1","refreshToken":"renewal-token-1","expiresAt":%d}}`, time.Now().Add(time.Hour).UnixMilli())
	disktest.Put(t, filepath.Join(home, ".claude/.credentials.json"), text, 0o600)
	byLogin := Choice{Key: credential.Login}
	for name, test := range map[string]struct {
		agent string
		home  Choice
		key   bool
		login bool
		base  string
		kind  problem.Kind // of a refusal
		next  string
		says  string
	}{
		"chosen":                       {agent: "claude", home: byLogin, login: true, base: "https://api.anthropic.com"},
		"before a key that is there":   {agent: "claude", home: byLogin, key: true, login: true, base: "https://api.anthropic.com"},
		"not chosen":                   {agent: "claude", key: true, base: "https://api.anthropic.com"},
		"not chosen, and there":        {agent: "claude", kind: problem.Unavailable, next: "ANTHROPIC_API_KEY=… sallyport run", says: "it is logged in here, and key: login below agents: claude:"},
		"not chosen, and not there":    {agent: "codex", kind: problem.Unavailable, next: "CODEX_API_KEY=… sallyport run", says: "where the daemon was started"},
		"chosen, and not there":        {agent: "codex", home: byLogin, kind: problem.Unavailable, next: "codex login", says: "codex is not logged in"},
		"of an agent that has none":    {agent: "pi", home: byLogin, kind: problem.Refused, next: "sallyport agent list", says: "sallyport knows no login of this agent"},
		"of any other":                 {agent: "acp:x", home: byLogin, kind: problem.Refused, next: "sallyport agent list", says: "sallyport knows no login of this agent"},
		"with another place":           {agent: "claude", home: Choice{Key: credential.Login, Settings: agent.Settings{Base: "https://models.example.org"}}, kind: problem.Refused, next: "sallyport agent list", says: "its own endpoint alone"},
		"with a wire":                  {agent: "claude", home: Choice{Key: credential.Login, Settings: agent.Settings{Wire: agent.Chat}}, kind: problem.Refused, next: "sallyport agent list", says: "its own endpoint alone"},
		"the person's place is not it": {agent: "claude", home: byLogin, login: true, base: "https://api.anthropic.com"},
	} {
		t.Run(name, func(t *testing.T) {
			task, drivers := agent.Task{}, map[string]agent.Driver{}
			for _, driver := range []string{"codex", "acp", "pi"} {
				drivers[driver] = spy{driver, &task}
			}
			o := Outfitter{
				Agents: drivers, Agency: agency{test.agent: test.home}, Keys: credential.NewRing(nil, func(string) string { return "" }),
				Logins: login.New(login.Options{UID: os.Getuid(), Getenv: func(v string) string { return map[string]string{"HOME": home}[v] }}),
			}
			s := Subject{ID: "chg-00000001", Agent: test.agent, GoingOn: "sallyport run", Bases: map[string]string{"ANTHROPIC_BASE_URL": "https://elsewhere.example.org"}}
			if test.key {
				s.Bases = nil
				if err := o.Keys.Give(string(s.ID), credential.Keys{"ANTHROPIC_API_KEY": secret.Hold("key-anthropic")}); err != nil {
					t.Fatal(err)
				}
			}
			f, err := o.Equip(s, agent.Task{})
			if test.kind != "" {
				if p := problem.Of(err); problem.KindOf(err) != test.kind || p.Next != test.next || !strings.Contains(p.Text, test.says) || errors.Is(err, credential.ErrMissing) != (test.kind == problem.Unavailable) {
					t.Errorf("%v (%s)", err, p.Next)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (f.Login != nil) != test.login || f.Key.Empty() != test.login || f.Task.Settings.Login != test.login {
				t.Errorf("%+v", f)
			}
			known, err := agent.Lookup(test.agent)
			if e := known.Endpoint(f.Task.Settings); err != nil || e.Base != test.base || e.Login != test.login || (e.Header == "Authorization") != test.login {
				t.Errorf("%+v, %v", e, err)
			}
			if w, err := o.Wanted(s); test.login && (err != nil || len(w.Keys)+len(w.Bases) != 0 || !w.Held) {
				t.Errorf("%+v, %v", w, err)
			}
			if err := f.Enter(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

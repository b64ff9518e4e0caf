package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/secret"
)

func TestANetworkOfIRCIsOpenedWithoutACredential(t *testing.T) {
	settings := map[string]string{"server": "irc.h.example", "nick": "port", "tls": "no"}
	var none tokens
	if _, err := none.open(conversation.Channel{Platform: "irc", Settings: settings}); err != nil {
		t.Error(err)
	}
	_, err := none.open(conversation.Channel{Platform: "irc", Settings: settings, Credential: "file:/a"})
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "for everybody to read") {
		t.Errorf("with a credential: %v", err)
	}
}

func TestATokenIsReadFromAFileThatIsTheHostsAloneAndShownNowhere(t *testing.T) {
	held := &secret.Held{}
	clean, err := secret.New(secret.Config{Held: held})
	if err != nil {
		t.Fatal(err)
	}
	read := tokens{held: held, all: map[string]bool{}}
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, []byte("app-tulip-4711\nbot-crocus-4712\n"), 0o600)
	if text, err := read.read("file:" + path); err != nil || text != "app-tulip-4711\nbot-crocus-4712" {
		t.Errorf("%q, %v", text, err)
	}
	if got := clean.Redact("x app-tulip-4711 y bot-crocus-4712 z"); strings.Contains(got, "tulip") || strings.Contains(got, "crocus") {
		t.Errorf("it is shown: %q", got)
	}

	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"file:" + path, "file:" + filepath.Dir(path), "file:token", "token"} {
		if text, err := read.read(from); problem.KindOf(err) != problem.Refused || text != "" {
			t.Errorf("%q: %q, %v", from, text, err)
		}
	}
}

func TestThePolicyLetsEverybodyTalkOrNobodyWhoIsUnknown(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "permissions: on": false, "permissions: off": true, "permissions: 'off'": true, "permissions: maybe": false, "permissions: off\nnone: 1": false,
	} {
		home := t.TempDir()
		writeFile(t, filepath.Join(home, "policy.yaml"), []byte(text), 0o600)
		if anyone(config.Look(home))() != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	if anyone(config.Look(t.TempDir()))() {
		t.Error("without a policy everybody may talk")
	}
}

func TestEachPlatformHasAPage(t *testing.T) {
	for name, p := range platforms {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "channels", name+".md"))
		if err != nil {
			t.Error(err)
		}
		for _, s := range p.settings {
			if !strings.Contains(string(page), "`"+s.Name+"`") {
				t.Errorf("docs/channels/%s.md does not tell of the setting %s", name, s.Name)
			}
		}
	}
}

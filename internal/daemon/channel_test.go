package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
)

func TestANetworkOfIRCIsOpenedWithoutACredential(t *testing.T) {
	settings := map[string]string{"server": "irc.h.example", "nick": "port", "tls": "no"}
	if _, err := openChannel(conversation.Channel{Platform: "irc", Settings: settings}); err != nil {
		t.Error(err)
	}
	_, err := openChannel(conversation.Channel{Platform: "irc", Settings: settings, Credential: "file:/a"})
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "for everybody to read") {
		t.Errorf("with a credential: %v", err)
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

package daemon

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestHelpAndReadmeSayWhenADaemonEndsByItself(t *testing.T) {
	want := fmt.Sprintf("ends by itself after %.0f minutes", IdleAfter.Minutes())
	for _, page := range []string{"../../README.md", "../../docs/cli.md", "../../docs/storage.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s does not say that a daemon %s", page, want)
		}
	}
}

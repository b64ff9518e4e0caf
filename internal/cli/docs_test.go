package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/cli.md instead of comparing it")

func TestDocsTellTheCommandsAsTheyAre(t *testing.T) {
	const path = "../../docs/cli.md"
	want := Docs()
	if *update || os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/cli.md is not what the commands say; run: make docs")
	}
}

func TestThePageForCITellsEveryExitStatusOfAChange(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exitMeanings {
		if row := fmt.Sprintf("| %d | %s |\n", e.code, e.meaning); e.code != exitTaken && !strings.Contains(string(page), row) {
			t.Errorf("docs/ci.md lacks %q", row)
		}
	}
}

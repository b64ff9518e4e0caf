package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sallyport/internal/base/disk/disktest"
)

var update = flag.Bool("update", false, "write docs/cli.md instead of comparing it")

func TestDocsTellTheCommandsAsTheyAre(t *testing.T) {
	const path = "../../../docs/cli.md"
	want := Docs()
	if *update || os.Getenv("UPDATE_DOCS") != "" {
		disktest.Put(t, path, want, 0o644)
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
	page, err := os.ReadFile("../../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exitMeanings {
		if row := fmt.Sprintf("| %d | %s |\n", e.code, e.meaning); e.code != exitTaken && !strings.Contains(string(page), row) {
			t.Errorf("docs/ci.md lacks %q", row)
		}
	}
}

func TestEveryCommandHasHelpInSentencesWithAnExample(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if len(c.Long) < 100 || strings.Count(c.Long, ".") < 2 {
			t.Errorf("the help of %q says too little: %q", c.CommandPath(), c.Long)
		}
		if !c.HasSubCommands() && !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("the help of %q has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Long + "\n" + exitLine) {
			if wide := utf8.RuneCountInString(strings.TrimRight(line, "\n")); wide > 100 {
				t.Errorf("the help of %q has a line of %d columns: %q", c.CommandPath(), wide, line)
			}
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRootCommand(&app{}))
}

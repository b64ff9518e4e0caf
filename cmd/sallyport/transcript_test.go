package main

import (
	"os"
	"os/user"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

const readme = "../../README.md" // seen from this folder, which no story leaves

var (
	saidInReadme = regexp.MustCompile(`(?m)^    ((?:> |\| |\[sallyport\]).*)$`)
	anyChange    = regexp.MustCompile(`(chg|dev)-[a-z0-9]{8}`)
)

// cmdTranscript holds that the README's conversation is one that was had: its lines stand in a file, in their order.
func cmdTranscript(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: transcript FILE")
	}
	page, err := os.ReadFile(readme)
	ts.Check(err)
	me, err := user.Current()
	ts.Check(err)
	had := strings.ReplaceAll(anyChange.ReplaceAllString(ts.ReadFile(args[0]), "$1"), me.Username, "ann")
	lines := saidInReadme.FindAllStringSubmatch(anyChange.ReplaceAllString(string(page), "$1"), -1)
	if len(lines) < 10 {
		ts.Fatalf("the README has only %d lines of a conversation", len(lines))
	}
	for _, line := range lines {
		_, after, said := strings.Cut("\n"+had, "\n"+line[1]+"\n")
		if !said {
			ts.Fatalf("the README has a line that was not said, or not there: %q", line[1])
		}
		had = after
	}
}

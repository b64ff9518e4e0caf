package cli

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whatever a message says to run next begins with a command that there is. A change that a person cannot find their way
// out of is looked for in the source: every text that begins as a command does.
func TestEveryCommandThatIsNamedInATextExists(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	verb := regexp.MustCompile(`^(has|is|was|can|cannot|could|does|did|kept|stops|starts|refused|refuses)$`)
	root := newRootCommand(&app{})
	sentence := func(w string) bool { // sallyport is who does it
		return verb.MatchString(w) || (strings.HasSuffix(w, "s") || strings.HasSuffix(w, "ed")) && !isCommand(root, w) && len(near(root, w)) == 0
	}
	strict(root)
	seen := 0
	for _, at := range commandsIn(t, "../../../internal", "../../../cmd") {
		words := strings.Fields(strings.TrimPrefix(at.text, "sallyport "))
		var path []string
		for _, w := range words {
			if !word.MatchString(w) {
				break
			}
			path = append(path, w)
		}
		if len(path) == 0 || path[0] == "runner" || at.text == "sallyport policy 3" || strings.HasPrefix(at.text, "sallyport egress (") || sentence(path[0]) { // no command lines
			continue
		}
		seen++
		found, rest, err := root.Find(path)
		switch {
		case err != nil || found == root:
			t.Errorf("%s: %q: there is no such command", at.where, at.text)
		case found.HasSubCommands() && len(words) > len(path) && !strings.HasPrefix(words[len(path)], "-"):
			t.Errorf("%s: %q: %s has no verb %q", at.where, at.text, found.Name(), rest)
		}
	}
	if seen < 100 {
		t.Fatalf("%d commands were found in the source; there are more", seen)
	}
}

func isCommand(root *cobra.Command, word string) bool {
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
}

// literal is a text of the source.
type literal struct{ where, text string }

// commandsIn finds every string of the program's own that begins as a command line of ours.
func commandsIn(t *testing.T, roots ...string) (found []literal) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files := token.NewFileSet()
			file := files.AddFile(path, -1, len(source))
			var s scanner.Scanner
			s.Init(file, source, nil, 0)
			for {
				pos, tok, lit := s.Scan()
				if tok == token.EOF {
					return nil
				}
				if tok != token.STRING {
					continue
				}
				text, err := strconv.Unquote(lit)
				if err == nil && strings.HasPrefix(text, "sallyport ") && !strings.Contains(text, "\n") {
					found = append(found, literal{files.Position(pos).String(), text})
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestTheCommandThatFailedIsNotTheWayOut(t *testing.T) {
	for _, c := range []struct{ typed, next, want string }{
		{"approve chg-00000001", "sallyport approve chg-00000001", "sallyport change show chg-00000001"},
		{"--home /h --json approve chg-00000001", "sallyport approve chg-00000001", "sallyport change show chg-00000001"},
		{"change show chg-00000001", "sallyport change show chg-00000001", "sallyport doctor"},
		{"daemon status", "sallyport daemon status", "sallyport doctor"},
		{"doctor", "sallyport doctor", ""},
		{"approve chg-00000001", "sallyport approve chg-00000002", "sallyport approve chg-00000002"},
		{"change list --repo /nowhere", "sallyport change list", "sallyport change list"},
		{"run -- true", "git -C /r status", "git -C /r status"},
		{"", "sallyport doctor", "sallyport doctor"},
	} {
		a := &app{words: strings.Fields(c.typed), homeFlag: "/h"}
		if got := a.other(c.next); got != c.want {
			t.Errorf("after %q, %q became %q", c.typed, c.next, got)
		}
	}
}

// TestAHomeIsNamedOnceInACommandThatIsShown holds that what is to be typed next works, and says no folder twice.
func TestAHomeIsNamedOnceInACommandThatIsShown(t *testing.T) {
	for next, want := range map[string]string{
		"sallyport chat echo":                   "sallyport --home /h chat echo",
		"sallyport group create init":           "sallyport --home /h group create init",
		"sallyport serve":                       "sallyport --home /h serve",
		"sallyport init --help":                 "sallyport --home /h init --help",
		"sallyport service install --user":      "sallyport --home /h service install --user",
		"sallyport init /h":                     "sallyport init /h",
		"sallyport init DIR":                    "sallyport init DIR",
		"sallyport init --repo /r":              "sallyport init --repo /r",
		"sallyport serve /h":                    "sallyport serve /h",
		"sallyport service remove --user /h":    "sallyport service remove --user /h",
		"sallyport daemon status --home /other": "sallyport daemon status --home /other",
		"git init /r":                           "git init /r",
		"sallyport ":                            "sallyport --home /h ",
	} {
		a := &app{homeFlag: "/h"}
		if got := a.command(next); got != want {
			t.Errorf("%q is shown as %q, want %q", next, got, want)
		}
		if got := (&app{}).command(next); got != next {
			t.Errorf("%q is shown as %q where no home was named", next, got)
		}
	}
}

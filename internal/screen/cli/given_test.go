package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// every runs of on all commands that do something.
func every(c *cobra.Command, of func(*cobra.Command)) {
	if c.HasSubCommands() {
		for _, sub := range c.Commands() {
			every(sub, of)
		}
		return
	}
	of(c)
}

func TestAFlagOrAWordThatIsEmptyIsAWrongCommandLineEverywhere(t *testing.T) {
	d := newDaemon(t)
	refused := func(args ...string) {
		t.Helper()
		if got := d.cli(args...); got.code != exitUsage || got.out != "" || !strings.Contains(got.err, `""`) || !strings.Contains(got.err, "next: sallyport ") || d.told() != "" {
			t.Errorf("%q: %+v, told %q", args, got, d.told())
		}
	}
	flags, words := 0, 0
	every(newRootCommand(&app{}), func(c *cobra.Command) {
		if c.Parent().Name() == "completion" || c.Name() == "help" {
			return // cobra's own
		}
		path := strings.Fields(c.CommandPath())[1:]
		c.InheritedFlags() // makes its flags whole
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); kind != "string" && kind != "stringArray" {
				return
			}
			refused(append(path, "--"+f.Name, "")...)
			refused(append(path, "--"+f.Name+"=")...)
			flags++
		})
		refused(append(path, "")...)
		words++
	})
	if flags < 80 || words < 40 {
		t.Errorf("%d flags and %d commands were tried", flags, words)
	}

	// A flag behind the request, the second of several values, a word behind one that is right.
	refused("run", "do it", "--plan", "", "--approve", "yes")
	refused("run", "do it", "--", "")
	refused("run", "--request", "x", "--check", "true", "--check", "", "--", "true")
	refused("run", "--request", "x", "--", "")
	refused("change", "branch", "chg-00000001", "")
	refused("approve", "chg-00000001", "--digest", "")
	refused("rollback", "chg-00000001", "--approve", "")
}

func TestACommandsOwnEmptyWordsAreItsOwn(t *testing.T) {
	d := newDaemon(t)
	d.detail = finalized()
	d.accepted = d.detail.Change
	if got := d.cli("run", "--request", "x", "--", "printf", "", "--plan="); got.code != exitDone || strings.Join(d.run.Argv, "|") != "printf||--plan=" {
		t.Errorf("%+v, asked for %q", got, d.run.Argv)
	}
}

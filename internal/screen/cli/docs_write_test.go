package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Docs returns docs/cli.md, written from the commands themselves.
func Docs() string {
	root := newRootCommand(&app{})
	var b strings.Builder
	b.WriteString("# The command line\n\nWritten from the program by `make docs`; do not edit.\n\n")
	b.WriteString(rootLong + "\n\n")
	b.WriteString("Every command takes `--home DIR`, `--json` and `--help`. Results go to standard output, progress and errors to standard\n" +
		"error. With `--json` the answer is one JSON document on standard output, or one a line for what comes bit by bit. An\n" +
		"error is `{\"event\":\"error\",\"error\":{\"kind\",\"text\",\"next\"},\"exit\"}` there. A list is an array, empty if there is nothing.\n" +
		"Each of its rows names itself in `id`; an agent, a group and a channel in `name`, a release in `digest`, an entry of the\n" +
		"audit in `seq`.\n\n")
	b.WriteString("## Exit status\n\n| status | meaning |\n|---|---|\n")
	for _, e := range exitMeanings {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.meaning)
	}
	b.WriteString("\n`run`, `resume`, `approve`, `confirm`, `rollback`, `change redo` and `change watch` follow a change. They end with\n" +
		"the status of where it came to rest. Every other command ends with 0 when it has done what it says.\n\n" +
		"## Ids\n\nThe beginning of the id of a change or an approval is enough where only one begins so: `chg-1a` or `1a2`. It can be left out\n" +
		"where only one change can be meant: `approve` takes the one that waits, `confirm` the one on trial, `change watch` the one that is under way.\n")
	for _, c := range root.Commands() {
		document(&b, c)
	}
	return b.String()
}

func document(b *strings.Builder, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	if !c.HasSubCommands() {
		fmt.Fprintf(b, "\n## %s\n\n    %s\n\n%s\n", strings.TrimPrefix(c.CommandPath(), "sallyport "), c.UseLine(), strings.TrimSpace(described(c)))
		if c.Example != "" {
			fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindented(c.Example))
		}
		flags(b, c.NonInheritedFlags())
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n", strings.TrimPrefix(c.CommandPath(), "sallyport "), strings.TrimSpace(c.Long))
	for _, sub := range c.Commands() {
		document(b, sub)
	}
}

func described(c *cobra.Command) string {
	return tabled(c.Long)
}

// tabled sets what help shows in columns apart, so that Markdown keeps them.
func tabled(long string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(long) {
		row := strings.HasPrefix(line, "  ")
		if row && !inside {
			b.WriteString("\n")
		}
		if row {
			b.WriteString("  ")
		}
		b.WriteString(line)
		inside = row
	}
	return b.String()
}

func unindented(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func flags(b *strings.Builder, set *pflag.FlagSet) {
	first := true
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			b.WriteString("\n| flag | |\n|---|---|\n")
			first = false
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`))
	})
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// cmd builds one command: its RunE marks that words are over and work begins.
func (a *app) cmd(use, brief, long, example string, args func([]string) error, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: brief, Long: long, Example: example, ValidArgsFunction: a.completes(use),
		Args: func(cmd *cobra.Command, words []string) error {
			if err := given(cmd, words); err != nil {
				return err
			}
			if args == nil || unnamed(use, words) {
				return nil
			}
			return args(words)
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			a.began = true
			named, err := a.wholeWords(cmd.Context(), use, words)
			if err != nil {
				return err
			}
			if args != nil {
				if err := args(named); err != nil { // what was left out or cut short could not be found
					return usage(cmd, err)
				}
			}
			return run(cmd, named)
		},
	}
}

// remote builds one command whose work is all the daemon's: it is given a client of it.
func (a *app) remote(use, brief, long, example string, args func([]string) error,
	run func(ctx context.Context, c *client.Client, words []string) error) *cobra.Command {
	return a.remoteBy(a.connect, use, brief, long, example, args, run)
}

// remoteBy is remote with a client that connect returns.
func (a *app) remoteBy(connect func(context.Context) (*client.Client, error), use, brief, long, example string, args func([]string) error,
	run func(ctx context.Context, c *client.Client, words []string) error) *cobra.Command {
	return a.cmd(use, brief, long, example, args, func(cmd *cobra.Command, words []string) error {
		c, err := connect(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, words)
	})
}

// tell asks the daemon, and answers with what it says: as a document if that was asked for, else as show writes it.
func tell[In, Out any](ctx context.Context, a *app, c *client.Client, v api.Verb[In, Out], in In, show func(s sheet, out Out)) error {
	out, err := client.Call(ctx, c, v, in)
	if err != nil || a.document(out) {
		return err
	}
	show(a.sheet(a.Out), out)
	return nil
}

// answer writes a document if that was asked for, and else a line.
func answer(a *app, v any, format string, args ...any) error {
	if !a.document(v) {
		a.sheet(a.Out).line(format, args...)
	}
	return nil
}

// table writes rows below the names of their columns, each as row writes it.
func table[T any](w io.Writer, head string, rows []T, row func(t io.Writer, r T)) error {
	var cells strings.Builder
	fmt.Fprintln(&cells, head)
	for _, r := range rows {
		row(&cells, r)
	}
	return tabulate(sheet{w: w, width: width(w), terminal: onTerminal(w)}, cells.String())
}

// tabulate writes lines whose cells, with tabs between them, stand below each other. Where a terminal is too narrow for one of them, the last
// cell of each has lines of its own.
func tabulate(s sheet, cells string) error {
	var front strings.Builder
	var last []string
	t := tabwriter.NewWriter(&front, 0, 0, 2, ' ', 0)
	for line := range strings.Lines(cells) {
		at := strings.LastIndexByte(line, '\t') + 1
		fmt.Fprintln(t, line[:at])
		last = append(last, strings.TrimSuffix(line[at:], "\n"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fronts := strings.Split(front.String(), "\n")
	lines := make([]string, len(last))
	for i, end := range last {
		lines[i] = fronts[i] + end
	}
	if !s.terminal || !slices.ContainsFunc(lines, func(l string) bool { return columns(l) > s.width }) {
		_, err := fmt.Fprintln(s.w, strings.Join(lines, "\n"))
		return err
	}
	for i, end := range last {
		s.line("%s", strings.TrimRight(fronts[i], " "))
		s.rows("    ", "    ", end)
	}
	return nil
}

// group builds a noun: it only has verbs.
func group(use, brief, long string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: brief + ": " + named(verbs), Long: long}
	c.RunE = func(cmd *cobra.Command, args []string) error { return noVerb(cmd, use, verbs, args) }
	c.AddCommand(verbs...)
	return c
}

func named(verbs []*cobra.Command) string {
	names := make([]string, 0, len(verbs))
	for _, v := range verbs {
		names = append(names, v.Name())
	}
	return strings.Join(names, ", ")
}

// noVerb says which verbs a noun has.
func noVerb(cmd *cobra.Command, noun string, verbs []*cobra.Command, args []string) error {
	if len(args) > 0 {
		next := cmd.CommandPath() + " --help"
		if near := near(cmd, args[0]); len(near) == 1 {
			next = cmd.CommandPath() + " " + near[0]
		}
		return problem.Errorf(problem.Usage, next, "%[2]s has no command %[1]q; it has %[3]s", args[0], noun, named(verbs))
	}
	return problem.Errorf(problem.Usage, cmd.CommandPath()+" --help", "%s needs one of its commands: %s", noun, named(verbs))
}

// near returns the commands below cmd that a mistyped word may mean.
func near(cmd *cobra.Command, word string) []string {
	cmd.SuggestionsMinimumDistance = 2 // letters that may differ
	if len(word) < 5 {
		cmd.SuggestionsMinimumDistance = 1
	}
	return cmd.SuggestionsFor(word)
}

// exactly refuses another number of words than the names given.
func exactly(names ...string) func([]string) error {
	return func(words []string) error {
		if len(words) == len(names) {
			return nil
		}
		if len(words) > len(names) {
			return fmt.Errorf("%q is one word too many", words[len(names)])
		}
		return fmt.Errorf("%s is missing", names[len(words)])
	}
}

// atMost takes the word with this name, or none.
func atMost(name string) func([]string) error {
	return func(words []string) error {
		if len(words) == 0 {
			return nil
		}
		return exactly(name)(words)
	}
}

// takes wants words with these names; check is of the first.
func takes(check func(string) error, names ...string) func([]string) error {
	return func(words []string) error {
		if err := exactly(names...)(words); err != nil {
			return err
		}
		return check(words[0])
	}
}

// parses makes a check of what reads an id.
func parses[T any](parse func(string) (T, error)) func(string) error {
	return func(word string) error {
		_, err := parse(word)
		return err
	}
}

// What the only word of a command is.
var (
	oneChange     = takes(parses(id.ParseChange), "CHANGE")
	oneCheckpoint = takes(parses(id.ParseCheckpoint), "CHECKPOINT")
	oneMessage    = takes(parses(id.ParseMessage), "MESSAGE")
	oneChannel    = takes(api.CheckChannel, "CHANNEL")
	oneGroup      = takes(api.CheckGroup, "GROUP")
)

// changeWithText takes the id of a change and, in one word or more, a text; where that is missing, what says what it is, with the change in it.
func changeWithText(verb, what string) func([]string) error {
	return func(words []string) error {
		if len(words) == 0 {
			return exactly("CHANGE", "TEXT…")(words)
		}
		if _, err := id.ParseChange(words[0]); err != nil {
			return err
		}
		if strings.TrimSpace(strings.Join(words[1:], " ")) == "" {
			return problem.Errorf(problem.Usage, "sallyport change "+verb+" --help", "TEXT is missing: it is %s", fmt.Sprintf(what, words[0]))
		}
		return nil
	}
}

// usage makes what is wrong with the words of a command a problem that names its help.
func usage(cmd *cobra.Command, err error) error {
	var known *problem.Problem
	if errors.As(err, &known) {
		return err
	}
	return problem.Errorf(problem.Usage, cmd.CommandPath()+" --help", "%s", plain(err))
}

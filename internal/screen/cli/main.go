package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// app is one invocation.
type app struct {
	Program
	words    []string // as typed
	homeFlag string
	json     bool
	began    bool // a command's own code was reached; before, every error is about its words
}

// Main runs one command line (without the program's name) and returns its exit status.
func Main(p Program, args []string) int {
	results := &checked{Writer: p.Out}
	if _, shown := terminal(p.Out); !shown {
		p.Out = results
	}
	a := &app{Program: p, words: args}
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(context.Background())
	if lost := results.err; lost != nil && (err == nil || errors.As(err, new(exit))) {
		err = problem.Errorf(problem.Unavailable, "df -h", "not all of the output could be written: %w", lost)
	}
	if err == nil {
		return exitDone
	}
	var code exit
	if errors.As(err, &code) {
		return int(code)
	}
	if !a.began {
		err = usage(cmd, err)
	}
	return a.fail(err, wantsJSON(args))
}

// usage makes what is wrong with the words of a command a problem that names its help.
func usage(cmd *cobra.Command, err error) error {
	var known *problem.Problem
	if errors.As(err, &known) {
		return err
	}
	return problem.Errorf(problem.Usage, cmd.CommandPath()+" --help", "%s", plain(err))
}

// checked remembers that results could not be written: a full disk is no success.
type checked struct {
	io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// wantsJSON looks for the flag itself: when flags could not be read, nothing else knows.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// fail says once what is wrong and what to do next, and returns the exit status.
func (a *app) fail(err error, asJSON bool) int {
	p := problem.Of(err)
	p.Next = a.other(p.Next)
	code := exitOfError(err)
	if asJSON {
		a.line(event{Event: "error", Error: &api.Problem{Kind: string(p.Kind), Text: p.Text, Next: a.command(p.Next)}, Exit: &code})
		return code
	}
	a.say(p.Text, p.Next)
	return code
}

// say writes a problem for a person.
func (a *app) say(text, next string) {
	s := a.sheet(a.Err)
	s.hung(s.red("sallyport:")+" ", "           ", inert.Block(text, 8<<10))
	if next = a.other(next); next != "" {
		fmt.Fprintf(a.Err, "next: %s\n", inert.Line(a.command(next)))
	}
}

// other returns next, or a command that looks closer where next is the very one that has just failed.
func (a *app) other(next string) string {
	typed := slices.DeleteFunc(slices.Clone(a.words), func(w string) bool { return w == "--json" || w == "--home" || w == a.homeFlag })
	if next != "sallyport "+strings.Join(typed, " ") {
		return next
	}
	show := ""
	if change, err := id.ParseChange(typed[len(typed)-1]); err == nil {
		show = "sallyport change show " + string(change)
	}
	for _, closer := range []string{show, "sallyport doctor"} {
		if closer != next && closer != "" {
			return closer
		}
	}
	return ""
}

// command makes a command that is shown one that can be run here: a home that was named
// by flag is named again.
func (a *app) command(next string) string {
	rest, ours := strings.CutPrefix(next, "sallyport ")
	if !ours || a.homeFlag == "" || strings.Contains(next, "--home") {
		return next
	}
	return "sallyport --home " + inert.Path(a.homeFlag) + " " + rest
}

// event is one line of a stream in JSON, and the shape of every error.
type event struct {
	Event  string       `json:"event"` // accepted, notice, result, error
	Change *api.Change  `json:"change,omitempty"`
	Notice *api.Notice  `json:"notice,omitempty"`
	Detail *api.Detail  `json:"detail,omitempty"`
	Error  *api.Problem `json:"error,omitempty"`
	Exit   *int         `json:"exit,omitempty"`
}

// line writes one JSON document on a line of its own.
func (a *app) line(v any) { a.write(v, "") }

// document answers with v as JSON, indented, if that was asked for, and reports whether it was.
func (a *app) document(v any) bool {
	if a.json {
		a.write(v, "  ")
	}
	return a.json
}

// write encodes v so that it is harmless on a terminal too: what JSON leaves as it is but
// a terminal or a reader would obey, such as C1 and bidirectional controls, is \u-escaped.
func (a *app) write(v any, indent string) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil { // plain structs of our own always can be
		panic("cannot be written as JSON: " + err.Error())
	}
	var out strings.Builder
	for _, r := range raw.String() {
		switch {
		case r == '\n' || !hidden(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	fmt.Fprint(a.Out, out.String())
}

// hidden reports whether package inert would not let r through.
func hidden(r rune) bool { return inert.Line(string(r)) != string(r) }

// home is the home this invocation is about.
func (a *app) home() (string, error) {
	p := client.Me()
	p.Getenv = a.Getenv
	return p.Home(a.homeFlag)
}

// connect returns a client of the home's daemon, started if need be.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	return a.Connect(ctx, home, true)
}

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
func (a *app) remote(use, brief, long, example string, args func([]string) error, run func(ctx context.Context, c *client.Client, words []string) error) *cobra.Command {
	return a.cmd(use, brief, long, example, args, func(cmd *cobra.Command, words []string) error {
		c, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, words)
	})
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

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/config"
)

// app is one invocation.
type app struct {
	Program
	words    []string // as typed
	homeFlag string
	json     bool
	began    bool // a command's own code was reached; before, every error is about its words
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
// by flag is named again, unless the command names one itself.
func (a *app) command(next string) string {
	rest, ours := strings.CutPrefix(next, "sallyport ")
	if !ours || a.homeFlag == "" || strings.Contains(next, "--home") || namesHome(rest) {
		return next
	}
	return "sallyport --home " + inert.Path(a.homeFlag) + " " + rest
}

// namesHome reports whether a command has its home as a word (namedHome), or is about a repository instead.
func namesHome(command string) bool {
	words := slices.DeleteFunc(strings.Fields(command), func(w string) bool { return strings.HasPrefix(w, "-") })
	if len(words) > 0 && words[0] == "service" {
		words = words[1:] // its verb
	} else if len(words) > 0 && words[0] != "init" && words[0] != "serve" {
		return false
	}
	return len(words) > 1
}

// event is one line of a stream in JSON, and the shape of every error.
type event struct {
	Event  string       `json:"event"` // accepted, notice, code, result, error
	Change *api.Change  `json:"change,omitempty"`
	Notice *api.Notice  `json:"notice,omitempty"`
	Detail *api.Detail  `json:"detail,omitempty"`
	Code   string       `json:"code,omitempty"` // that a change of the host is confirmed with
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

// namedHome is the home that a command names as its word; without one, the home of every command.
func (a *app) namedHome(words []string) (string, error) {
	usual, err := a.home()
	if len(words) == 0 {
		return usual, err
	}
	p := client.Me()
	p.Getenv = a.Getenv
	home, wrong := p.Home(words[0])
	if wrong != nil || err == nil && home == usual {
		return home, wrong
	}
	if a.homeFlag != "" {
		return "", problem.Errorf(problem.Usage, "sallyport --help", "HOME is %q, and --home names another; give one of them", home)
	}
	return home, nil
}

// about has this invocation, and the commands that it shows, be about a home.
func (a *app) about(home string) {
	if usual, err := a.home(); err != nil || usual != home {
		a.homeFlag = home
	}
}

// mistyped refuses a home that this invocation names by a word and that is not there: only the usual home is made by the first command that
// needs it, and one in an empty folder, which somebody has made for it. What cannot be looked at may be another user's. The usual home that
// SALLYPORT_HOME names is made, too, but not the folder above it.
func (a *app) mistyped(home string) error {
	none := problem.Errorf(problem.NotFound, "sallyport init "+inert.Path(home), "there is no home at %q; init makes one", home)
	if a.homeFlag == "" {
		if _, err := os.Stat(filepath.Dir(home)); a.Getenv("SALLYPORT_HOME") != "" && errors.Is(err, fs.ErrNotExist) {
			return none
		}
		return nil
	}
	if err := client.NoProject(home); err != nil {
		return err
	}
	entries, err := os.ReadDir(home)
	ofHome := func(e os.DirEntry) bool { return e.Name() == ".state" || e.Name() == config.SallyportFile }
	if !errors.Is(err, fs.ErrNotExist) && (err != nil || len(entries) == 0 || slices.ContainsFunc(entries, ofHome)) {
		return nil
	}
	return none
}

// connect returns a client of the home's daemon, started if need be.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	if err := a.mistyped(home); err != nil {
		return nil, err
	}
	return a.Connect(ctx, home, true)
}

// connectAny is connect for what a daemon of any version answers. One that a keeper has, and that speaks another version, refuses the rest.
func (a *app) connectAny(ctx context.Context) (*client.Client, error) {
	c, err := a.connect(ctx)
	if c != nil && c.Other() != nil {
		return c, nil
	}
	return c, err
}

func (a *app) sheet(w io.Writer) sheet {
	return sheet{palette: a.colours(w), w: w, width: width(w), terminal: onTerminal(w), now: time.Now()}
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

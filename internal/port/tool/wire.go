package tool

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// LineMax is how many bytes a line of the wire has at most, its end included, in either direction.
const LineMax = 64 << 10

// List is the verb that asks which tools the session has. It is no tool.
const List Name = "tools"

// Worktree is sandbox.Worktree, where an agent that changes files sees them.
const Worktree = "/worktree"

// Asked is the text of a result that a person has to give.
const Asked = "asked, you will hear"

// Request is a call as it is sent.
type Request struct {
	Verb   Name            `json:"verb"`
	Args   json.RawMessage `json:"args"`
	Intake string          `json:"intake,omitempty"` // what the turn is for; the host knows if it is left out
	Tree   string          `json:"tree,omitempty"`   // of request_swap: of its commit; Ask looks it up if it is left out
}

// Call is a request as the host took it: of a tool that the session has, with arguments that fit.
type Call struct {
	Verb   Name
	Intake string
	Tree   string // of request_swap
	Args   any    // Message, Question, Schedule, Nothing, Cancel, DevChanges or Swap
	Again  int    // how often the turn has made the same call before, where each counts
}

// Key is the same for the same call for the same message, in a later try of the turn too: then the first result is the answer.
func (c Call) Key() string {
	args, err := json.Marshal(c.Args)
	if err != nil {
		panic("arguments of " + string(c.Verb) + ": " + err.Error()) // they were decoded from JSON
	}
	if c.Again > 0 {
		args = fmt.Appendf(args, "\x00%d", c.Again)
	}
	sum := sha256.Sum256(slices.Concat([]byte(c.Verb), []byte{0}, []byte(c.Intake), []byte{0}, args))
	return hex.EncodeToString(sum[:])
}

// Result is what a call brought.
type Result struct {
	Text  string `json:"text"`            // one sentence for the agent
	ID    string `json:"id,omitempty"`    // of what was sent, asked or scheduled
	Tasks []Task `json:"tasks,omitempty"` // of list_tasks
	Tools []Name `json:"tools,omitempty"` // of List
}

// Task is one that is scheduled. Times are by the user's clock.
type Task struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Next   string `json:"next"`
	Repeat string `json:"repeat,omitempty"` // cron or interval; "" = once
}

// answer is what crosses the wall on the way back: one of both.
type answer struct {
	Result *Result  `json:"result,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

type failure struct {
	Kind problem.Kind `json:"kind"`
	Text string       `json:"text"`
	Next string       `json:"next,omitempty"`
}

// kinds are all that a failure can be of.
var kinds = []problem.Kind{
	problem.Usage, problem.NotFound, problem.Conflict, problem.Denied, problem.Refused, problem.AgentFailed, problem.Unavailable, problem.Internal,
}

// Parse reads the line of a request for a session that has some tools. Errors: problem.Usage for a line that is none, naming what is
// wrong; problem.NotFound for a tool that the session does not have.
func Parse(line []byte, has []Name) (Call, error) {
	r, err := parseRequest(line)
	if err != nil {
		return Call{}, wrong("", err)
	}
	if r.Verb == List {
		if string(r.Args) != "{}" {
			return Call{}, wrong(List, errors.New("it takes no arguments"))
		}
		return Call{Verb: List, Args: Nothing{}}, nil
	}
	d, there := Find(r.Verb)
	if !there || !slices.Contains(has, r.Verb) {
		r.Verb = Name(inert.Short(string(r.Verb), nameMax))
		return Call{Verb: r.Verb}, problem.Errorf(problem.NotFound, "sallyport-tool --help", "there is no tool %q here; there are %s",
			string(r.Verb), names(has))
	}
	args, err := d.Decode(r.Args)
	return Call{Verb: r.Verb, Intake: r.Intake, Tree: r.Tree, Args: args}, err
}

func names(all []Name) string {
	if len(all) == 0 {
		return "none"
	}
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = string(n)
	}
	return strings.Join(words, ", ")
}

// wrong says what is wrong with a call, in bounds.
func wrong(verb Name, why error) error {
	help, what := "sallyport-tool --help", "the call"
	if verb != "" {
		help, what = "sallyport-tool "+string(verb)+" --help", "the call of "+string(verb)
	}
	text := inert.Line(why.Error())
	if runes := []rune(text); len(runes) > 400 {
		text = string(runes[:200]) + " … " + string(runes[len(runes)-200:])
	}
	return problem.Errorf(problem.Usage, help, "%s cannot be taken: %s", what, text)
}

// parseRequest reads a request strictly: each key once, in these letters, and nothing else.
func parseRequest(line []byte) (r Request, err error) {
	if err := checkShape(line); err != nil {
		return r, err
	}
	return r, strict(line, map[string]any{"verb": &r.Verb, "args": &r.Args, "intake": &r.Intake, "tree": &r.Tree}, "verb", "args")
}

// Bounds of what comes with a call, in letters.
const (
	intakeMax = 64 // of an id
	nameMax   = 64 // of the name of a tool that there is not
)

// strict reads an object's keys into what into points to.
func strict(raw []byte, into map[string]any, needed ...string) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	for key, value := range keys {
		to, known := into[key]
		if !known {
			return fmt.Errorf("there is no key %q", key)
		}
		if err := json.Unmarshal(value, to); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if text, ok := to.(*string); ok && (len(*text) > intakeMax || inert.Line(*text) != *text) {
			return fmt.Errorf("%s: it is no id", key)
		}
	}
	for _, key := range needed {
		if string(keys[key]) == "" || string(keys[key]) == "null" {
			return fmt.Errorf("the key %q is missing", key)
		}
	}
	return nil
}

// depthMax is how deep a call may be nested; what is defined here needs three.
const depthMax = 8

// checkShape refuses what a decoder would take in a way that is not said: bytes that are no text, a key twice, more than one value,
// and nesting that no call needs.
func checkShape(line []byte) error {
	if !utf8.Valid(line) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var open []map[string]bool // keys of each object; nil for a list
	inKey := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no JSON: %w", err)
		}

		word, text := token.(string)
		switch {
		case token == json.Delim('{'), token == json.Delim('['):
			if len(open) == depthMax {
				return fmt.Errorf("it is nested more than %d deep", depthMax)
			}
			var keys map[string]bool
			if token == json.Delim('{') {
				keys = map[string]bool{}
			}
			open = append(open, keys)
			inKey = keys != nil
			continue
		case token == json.Delim('}'), token == json.Delim(']'):
			open = open[:len(open)-1]
		case text && inKey:
			if keys := open[len(open)-1]; keys[word] {
				return fmt.Errorf("it has the key %q twice", word)
			} else {
				keys[word] = true
			}
			inKey = false
			continue
		case text && strings.ContainsFunc(word, control):
			return errors.New("a text holds a control character; only ends of lines and tabs may stand there")
		}
		if len(open) == 0 {
			if d.More() {
				return errors.New("something follows the call on its line")
			}
			continue
		}
		inKey = open[len(open)-1] != nil
	}
}

// control reports whether a letter is one that no text of a call has.
func control(r rune) bool {
	return (r < ' ' && r != '\n' && r != '\t' && r != '\r') || (r >= 0x7f && r < 0xa0)
}

// Decode reads a tool's arguments strictly. Errors: problem.Usage.
func (d Definition) Decode(raw []byte) (any, error) {
	if err := checkShape(raw); err != nil {
		return nil, wrong(d.Name, err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, wrong(d.Name, err)
	}
	if err := d.resolved.Validate(value); err != nil {
		return nil, wrong(d.Name, err)
	}
	args, err := d.decode(raw)
	if err != nil {
		return nil, wrong(d.Name, err)
	}
	return args, nil
}

func strictly[T any](raw []byte) (args T, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return args, d.Decode(&args)
}

// Fits reports whether a result can be sent.
func Fits(r Result) bool {
	line, err := json.Marshal(answer{Result: &r})
	return err == nil && len(line) < LineMax
}

// Encode writes the line of an answer: a result, or what err says of it.
func Encode(r Result, err error) []byte {
	a := answer{Result: &r}
	if err != nil {
		p := problem.Of(err)
		a = answer{Error: &failure{Kind: p.Kind, Text: inert.Short(p.Text, 4096), Next: inert.Short(p.Next, 1024)}}
	}
	line, fault := json.Marshal(a)
	if fault == nil && len(line) >= LineMax {
		fault = fmt.Errorf("it has %d bytes; %d is the limit", len(line), LineMax-1)
	}
	if fault != nil {
		return Encode(Result{}, problem.Errorf(problem.Internal, "", "the host has an answer that cannot be sent: %w", fault))
	}
	return append(line, '\n')
}

// askMax is how long a call waits for its answer: the host answers at once, also when a person has to be asked.
const askMax = 30 * time.Second

// Ask makes one call at a session's socket. Errors: what the host said, by its kind; problem.Unavailable if it does not answer.
func Ask(ctx context.Context, socket string, r Request) (Result, error) {
	if len(r.Args) == 0 {
		r.Args = json.RawMessage("{}")
	}
	if r.Verb == RequestSwap && r.Tree == "" {
		var err error
		if r.Tree, err = treeOf(ctx, r.Args); err != nil {
			return Result{}, wrong(r.Verb, err)
		}
	}
	line, err := json.Marshal(r)
	if err != nil {
		return Result{}, wrong(r.Verb, err)
	}
	if len(line) >= LineMax {
		return Result{}, wrong(r.Verb, fmt.Errorf("it has %d bytes; %d is the limit", len(line), LineMax-1))
	}

	raw, err := exchange(ctx, socket, append(line, '\n'))
	if err != nil {
		return Result{}, problem.Errorf(problem.Unavailable, "", "the host does not answer at %s: %w", inert.Path(socket), err)
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil || (a.Result == nil) == (a.Error == nil) {
		return Result{}, problem.Errorf(problem.Internal, "", "the host answered with what is no answer")
	}
	if a.Error == nil {
		return *a.Result, nil
	}
	if !slices.Contains(kinds, a.Error.Kind) {
		a.Error.Kind = problem.Internal
	}
	return Result{}, problem.Errorf(a.Error.Kind, a.Error.Next, "%s", a.Error.Text)
}

// treeOf asks the agent's own git which files the commit of a request_swap has: only inside is that commit known. The host compares them
// with what it sees itself.
func treeOf(ctx context.Context, args json.RawMessage) (string, error) {
	var s Swap
	if err := json.Unmarshal(args, &s); err != nil {
		return "", err
	}
	if !commitForm().MatchString(s.CommitSHA) {
		return "", fitsSwap(s)
	}
	out, err := exec.CommandContext(ctx, "git", "-C", Worktree, "rev-parse", "--verify", "--quiet", s.CommitSHA+"^{tree}").Output()
	if err != nil {
		return "", fmt.Errorf("commit_sha: there is no commit %s in %s", s.CommitSHA, Worktree)
	}
	return strings.TrimSpace(string(out)), nil
}

// exchange sends a line and returns the one that comes back.
func exchange(ctx context.Context, socket string, line []byte) ([]byte, error) {
	ctx, done := context.WithTimeoutCause(ctx, askMax, fmt.Errorf("there was no answer within %s", askMax))
	defer done()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	_, failed := conn.Write(line) // the host may have answered, and closed, before it was read to its end
	raw, err := bufio.NewReaderSize(conn, LineMax).ReadSlice('\n')
	switch {
	case err == nil:
		return raw, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case failed != nil:
		return nil, failed
	}
	return nil, err
}

package echo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/tool"
)

// dev is echo as the agent that changes what its group runs: it does what the lines of the wish say, and no more. So a first change of
// oneself needs no account either.
//
//	write PATH: TEXT      the file holds TEXT from then on; \n in it is the end of a line
//	append PATH: TEXT     TEXT is one more line of the file
//	program PATH: TEXT    as write, and the file is a program
//	remove PATH           the file goes
//	show PATH             the group is shown that folder of this machine, read-only unless a person says otherwise
type dev struct {
	*talk
	top   string // where it changes files
	again bool   // it had begun before, and some of what it is told is done

	done    map[string]string // what it did, by path
	summary string
	asked   bool // whether it may propose that
}

var _ agent.Conversation = (*dev)(nil)

// edit is a line of a wish that says what is to be done.
var edit = pattern.Of(`^(write|append|program|remove|show) ([^\s:]+)(?:: ?(.*))?$`)

// changeLines are the kinds of such lines.
const changeLines = "write PATH: TEXT, append PATH: TEXT, program PATH: TEXT, remove PATH, show FOLDER"

const (
	proposes  = "Ready to propose these changes: "
	maySubmit = ". OK to submit for approval?"
)

// Prompt does what the wish says and asks whether to propose it; later words are the answer, or more to do.
func (d *dev) Prompt(ctx context.Context, words string) (string, error) {
	answer := strings.ToLower(strings.TrimSpace(words))
	switch {
	case d.asked && strings.Contains(words, "call request_swap again"):
		return "", d.propose(ctx)
	case d.asked && strings.HasPrefix(answer, "yes"):
		return "", d.propose(ctx)
	case d.asked && strings.HasPrefix(answer, "no"):
		d.asked = false
		return "I propose nothing. Tell me what else to do, in lines such as append template/runner/prompts/system.md: WORDS.", nil
	}
	said, err := d.follow(ctx, words)
	if err != nil {
		return "", err
	}
	if said == "" && len(d.done) == 0 {
		said = "I found nothing to do in that. Ask again, with lines of these kinds: /change " + changeLines
	}
	if said != "" && !d.asked { // nobody tells it more before it asks
		return "", errors.New(said)
	}
	if said != "" {
		return said, nil
	}
	d.summary, d.asked = d.all(), true
	_, err = d.told(ctx, tool.AskUserQuestion, tool.Question{Question: proposes + d.summary + maySubmit})
	return "", err
}

// follow does what the lines of a text say, and returns what is wrong with one.
func (d *dev) follow(ctx context.Context, words string) (wrong string, err error) {
	root, err := os.OpenRoot(d.top)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for line := range strings.Lines(words) {
		m := edit().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		id := d.begin("edit", m[1]+" "+m[2], 0)
		err := d.edit(root, m[1], m[2], strings.ReplaceAll(m[3], `\n`, "\n"))
		d.show.Ended(id, err != nil)
		if err != nil {
			return fmt.Sprintf("I could not %s %s: %v", m[1], m[2], err), nil
		}
		if m[1] != "show" { // mounts notes it
			d.done[m[2]] = strings.TrimSpace(m[1] + " " + m[3])
		}
	}
	return "", ctx.Err()
}

// edit does what one line says.
func (d *dev) edit(root *os.Root, what, name, text string) error {
	if what == "show" {
		return d.mounts(root, name, false)
	}
	return d.change(root, what, name, text)
}

// change does one edit of a file. What an interrupted session has done is not done twice.
func (d *dev) change(root *os.Root, what, name, text string) error {
	if what == "remove" {
		err := root.Remove(name)
		if d.again && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if what == "append" {
		before, err := root.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if d.again && strings.Contains("\n"+string(before)+"\n", "\n"+text+"\n") {
			return nil
		}
		if len(before) > 0 && !strings.HasSuffix(string(before), "\n") {
			before = append(before, '\n')
		}
		text = string(before) + text
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	mode := os.FileMode(0o644)
	if what == "program" {
		mode = 0o755
	}
	if err := root.WriteFile(name, []byte(text), mode); err != nil {
		return err
	}
	return root.Chmod(name, mode)
}

// all is one sentence of what was done.
func (d *dev) all() string {
	var parts []string
	for path, what := range d.done {
		verb, _, _ := strings.Cut(what, " ")
		parts = append(parts, verb+" "+path)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// propose has the host take what was done. If a person has a folder shown in another way, that is written first.
func (d *dev) propose(ctx context.Context) error {
	err := d.offer(ctx)
	if problem.KindOf(err) == problem.Conflict {
		again, wrong := d.heed(problem.Of(err).Text)
		if wrong != nil {
			return wrong
		}
		if again {
			err = d.offer(ctx)
		}
	}
	if problem.KindOf(err) == problem.Refused { // by what its lines say, which it cannot mend
		return err
	}
	return d.refused(err)
}

// offer commits what was done and asks the host to take it. An interrupted session may have committed it already.
func (d *dev) offer(ctx context.Context) error {
	for _, args := range [][]string{{"add", "--all"},
		{"-c", "user.name=" + Name, "-c", "user.email=" + Name + "@agents.invalid", "commit", "--quiet", "--allow-empty", "--message", d.summary}} {
		if out, err := exec.CommandContext(ctx, "git", append([]string{"-C", d.top}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	head, err := exec.CommandContext(ctx, "git", "-C", d.top, "rev-parse", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("name the commit: %w", err)
	}
	_, err = d.ask(ctx, tool.RequestSwap, tool.Swap{PerFileSummaries: d.done, OverallSummary: d.summary, CommitSHA: strings.TrimSpace(string(head))})
	return err
}

// change asks for a change of what the group runs.
func changes(ctx context.Context, t *talk, rest string) (says string, err error) {
	if rest == "" {
		return "What is to be changed? Write /change append template/runner/prompts/system.md: Greeting: Hello, {name}!", nil
	}
	err = t.call(ctx, tool.RequestDevChanges, tool.DevChanges{Summary: rest, Message: t.now}, func(r tool.Result) {
		says = "I have asked for that change of myself: " + r.ID + ". You will see a card, and decide."
	})
	return says, err
}

// permit answers a dev agent that asks whether it may propose what it did: a person is asked anyway, on its card.
func (t *talk) permit(ctx context.Context, m said) (says string, ok bool, err error) {
	if !strings.HasPrefix(m.text, proposes) || !strings.HasSuffix(m.text, maySubmit) {
		return "", false, nil
	}
	err = t.call(ctx, tool.SendMessage, tool.Message{Text: "yes", To: m.sender}, func(tool.Result) {
		says = m.sender + " proposes: " + strings.TrimSuffix(strings.TrimPrefix(m.text, proposes), maySubmit)
	})
	return says, true, err
}

// errNoTools says why echo changes no files for a person.
var errNoTools = problem.Errorf(problem.Usage, "sallyport agent list",
	"the agent echo only answers in conversations and changes no files but those of its own group; name another agent")

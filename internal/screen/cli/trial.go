package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// trialQuestion is what is on the screen while a trial waits for a person.
type trialQuestion struct {
	due  time.Time // then everything goes back by itself
	host bool      // it is confirmed with its code
	typing
}

// prompt is the question in one line of at most so many columns.
func (q *trialQuestion) prompt(now time.Time, columns int) string {
	left := duration(q.due.Sub(now).Truncate(time.Second))
	text := fmt.Sprintf("confirm or rollback? [c]onfirm, [r]ollback, [l]ater (%s left) > ", left)
	if q.host {
		text = fmt.Sprintf("confirm or rollback? confirm CODE, [r]ollback, [l]ater (%s left) > ", left)
	}
	if len(text)+len(q.typed) >= columns {
		text = fmt.Sprintf("confirm or rollback? (%s) > ", left)
	}
	return clip(text+string(q.typed), columns-1)
}

// lookAgain is how old the time that is left may be on the screen.
const lookAgain = 2 * time.Second

// look sees how a trial stands, and asks if it is time to.
func (f *following) look(ctx context.Context) error {
	f.looked = time.Now()
	d, err := client.Call(ctx, f.client, api.ChangeShow, f.change)
	if err != nil {
		return err
	}
	t := d.Change.Trial
	switch {
	case d.Change.State != api.InTrial || !t.Asks():
		f.ask(nil)
	case f.trial == trialEnd || f.trial == trialAsked && !f.canAsk:
		if f.asked { // until then its question is on its way
			return errEnough
		}
	case f.trial == trialStay && !f.told && !f.json: // they are told once how long it takes, and what ends it before
		f.told = true
		printTrialQuestion(f.app, f.sheet(f.Err), d.Change)
	case f.trial == trialAsked && f.question == nil:
		f.ask(&trialQuestion{due: time.Now().Add(t.Left()), host: t.Host})
	case f.question != nil: // the time was moved
		f.question.due = time.Now().Add(t.Left())
	}
	return nil
}

// ask puts a question on the screen, nil takes the one that is there away.
func (f *following) ask(q *trialQuestion) {
	if q != nil && f.question == nil {
		f.dropKeys()
	}
	f.question = q
	f.view.trial(q)
	if q != nil {
		f.bell()
	}
}

// reply takes a key of the answer to a trial's question; the answer is a line, so that no key alone decides.
func (f *following) reply(ctx context.Context, k byte) error {
	q := f.question
	if k == endOfInputKey {
		return errEnough
	}
	if word, whole := q.key(k); whole {
		return f.answer(ctx, word)
	}
	f.view.trial(q)
	return nil
}

// answer does what a person said. If it was decided meanwhile, they are told by whom, and go on watching.
func (f *following) answer(ctx context.Context, line string) (err error) {
	word, code, _ := strings.Cut(line, " ")
	if code != "" && !f.question.host {
		word = line
	}
	switch word {
	case "c", "confirm":
		err = client.Do(ctx, f.client, api.ChangeConfirm, api.Confirm{Of: f.change, Code: code})
	case "r", "rollback":
		_, err = client.Call(ctx, f.client, api.ChangeRollback, api.Rollback{Of: f.change, Reason: "asked for at the terminal", Approve: "later"})
	case "l", "later":
		return errEnough
	default:
		f.view.trial(nil)
		if word != "" {
			f.sheet(f.Err).line("nothing was decided: answer %s, rollback or later", f.question.confirm())
			f.dropKeys()
		}
		f.view.trial(f.question)
		return nil
	}
	host := f.question.host
	f.ask(nil)
	switch kind := problem.KindOf(err); {
	case kind == problem.Conflict, host && (kind == problem.Usage || kind == problem.Refused || kind == problem.Denied):
		p := problem.Of(err)
		f.say(p.Text, "")
		if host { // a wrong code: there are others to try
			return f.look(ctx)
		}
		return nil
	}
	return err
}

// confirm is how the question is answered by who keeps the change.
func (q *trialQuestion) confirm() string {
	if q.host {
		return "confirm CODE"
	}
	return "confirm"
}

// printTrialQuestion says how to answer a trial that asks.
func printTrialQuestion(a *app, s sheet, c api.Change) {
	t := c.Trial
	s.line("%s %s for a person: %s left, then sallyport rolls it back", c.ID, s.yellow("waits"), duration(t.Left().Truncate(time.Second)))
	s.line("  rollback: %s", a.command("sallyport rollback "+c.ID))
	if c.Dev != "" {
		say := trialQuestion{host: t.Host}
		s.line("  or say:   %s or rollback, in %s", say.confirm(), a.command("sallyport chat "+c.Group))
	}
	s.line("next: %s", a.command(confirmWith(c)))
}

// confirmWith is the command that keeps what is on trial.
func confirmWith(c api.Change) string {
	if c.Trial != nil && c.Trial.Host {
		return "sallyport confirm " + c.ID + " --code CODE"
	}
	return "sallyport confirm " + c.ID
}

// trialLine says in one line how the trial of a change stands.
func trialLine(c api.Change) string {
	t := c.Trial
	left := duration(t.Left().Truncate(time.Second)) + " left"
	switch {
	case t.Asks():
		return "confirm or rollback? " + left + ", then sallyport rolls it back"
	case t.Handshake == api.PendingRestart && t.Restart+t.Probe == "":
		return "nothing restarts and nothing is probed; " + left
	case t.Handshake == api.PendingRestart:
		return "its target restarts and is probed; " + left
	case t.Handshake == api.Confirmed:
		return "confirmed"
	}
	if t.Say != "" { // it is over
		return "was rolled back: " + inert.Line(t.Reason)
	}
	if api.Final(c.State) { // somebody has ended that
		return "was to be rolled back: " + inert.Line(t.Reason)
	}
	return "is being rolled back: " + inert.Line(t.Reason)
}

// printTrial shows what a change went through after it landed.
func printTrial(s sheet, c api.Change) {
	t := c.Trial
	if t == nil {
		return
	}
	s.line("")
	s.line("its trial:")
	if t.Restart != "" {
		s.line("  restart: %s; answered after %s", clip(inert.Line(t.Restart), 200), count(t.Restarts, "restart"))
	}
	if t.Probe != "" {
		s.line("  probe:   %s", clip(inert.Line(t.Probe), 200))
	}
	what := trialLine(c)
	if t.By != nil && t.At != nil {
		end, why, told := strings.Cut(what, ": ")
		what = fmt.Sprintf("%s by %s at %s", end, inert.Line(t.By.Name), t.At.Local().Format("15:04:05"))
		if told {
			what += ": " + why
		}
	}
	s.line("  %s", what)
}

// waitsForPerson reports whether a change needs somebody.
func waitsForPerson(c api.Change) bool {
	switch c.State {
	case api.AwaitingApproval, api.RollbackFailed, api.Blocked:
		return true
	}
	return c.State == api.InTrial && c.Trial.Asks()
}

// wayOn is what a person runs for a change that needs them.
func wayOn(c api.Change) string {
	switch {
	case c.State == api.AwaitingApproval && c.Problem != "" && c.Next != "": // it could not land: approved again as it stands, it may not either
		return c.Next
	case c.State == api.AwaitingApproval:
		return "sallyport approve " + c.ID
	case c.State == api.InTrial:
		return confirmWith(c)
	}
	return "sallyport change show " + c.ID
}

// stands is a change's state, and how long its trial has.
func stands(c api.Change) string {
	if c.State == api.InTrial && c.Trial != nil {
		return fmt.Sprintf("%s, %s left", c.State, duration(c.Trial.Left().Truncate(time.Second)))
	}
	return c.State
}

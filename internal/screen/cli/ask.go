package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// askApproval shows the card of a change that waits and takes the person's answer. It returns
// true when something was decided and the change goes on; false when it is left waiting.
//
// What is approved is exactly what the card shows: if it changed meanwhile, the new card
// is shown and nothing was decided.
func askApproval(ctx context.Context, a *app, c *client.Client, ref string, with api.Approve) (again bool, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT)
	defer signal.Stop(signals)
	for {
		q, err := client.Call(ctx, c, api.ApprovalShow, ref)
		if err != nil {
			return false, err
		}
		if err := decidable(q); err != nil {
			return false, err
		}
		sheet := a.sheet(a.Out)
		sheet.folds = true
		printAsked(sheet, q)
		printShortDiff(ctx, c, sheet, q.Approval.Change)
		decided, later, err := readDecision(ctx, a, c, q, with, signals)
		switch {
		case problem.KindOf(err) == problem.Conflict || problem.KindOf(err) == problem.Refused:
			p := problem.Of(err) // it changed under the card, or cannot land as it stands: say so and show it as it is now
			a.say(p.Text, p.Next)
			if problem.KindOf(err) == problem.Refused {
				return false, exit(exitRefused)
			}
		case err != nil:
			return false, err
		case later:
			if now, err := client.Call(ctx, c, api.ApprovalShow, ref); err == nil && decidable(now) != nil { // somebody has answered meanwhile
				return false, decidable(now)
			}
			printWaiting(a, a.sheet(a.Out), q.Approval.Change, &q.Proposal)
			return false, nil
		case decided:
			return true, nil
		}
	}
}

// decidable refuses an approval that needs no answer any more.
func decidable(q api.Question) error {
	if q.Approval.Decision == api.Pending {
		return nil
	}
	who := ""
	if q.Approval.By != nil {
		who = " by " + q.Approval.By.Name
	}
	return problem.Errorf(problem.Conflict, "sallyport change show "+q.Approval.Change, "%s was answered already: %s%s", q.Approval.ID,
		q.Approval.Decision, who)
}

// yesTo is what a card's yes is asked with, the words of one that covers all, and why another yes is not enough; "" = any is. What is said
// in passing covers neither what is marked nor a change of the host.
func yesTo(c api.Card) (question, whole, short string) {
	const rest = "[m]essage, [d]iff, [r]efuse, [l]ater? "
	switch {
	case c.Typed != "":
		return "[" + c.Typed + "] approves exactly this and what is marked, " + rest, c.Typed, "a plain yes is not enough to change the host"
	case c.MarksWord:
		return "[approve marked] approves exactly this and what is marked, " + rest, "approve marked", "a plain yes does not cover what is marked"
	}
	return "[a]pprove exactly this, " + rest, "approve", ""
}

// early is how long a yes to a card has to wait yet, in whole seconds; 0 = it counts.
func early(q api.Question) time.Duration {
	left := time.Until(q.Approval.Asked.Add(time.Duration(q.Proposal.Card.ThinkMS) * time.Millisecond))
	return max(0, (left + time.Second - 1).Truncate(time.Second))
}

// readDecision asks until there is an answer. A diff and a word that is none ask again, the word with a hint.
func readDecision(ctx context.Context, a *app, c *client.Client, q api.Question, with api.Approve, signals <-chan os.Signal) (decided, later bool, err error) {
	for {
		question, whole, short := yesTo(q.Proposal.Card)
		if c := q.Proposal.Card; c.Moved != nil {
			question = movedBy(c) + ". " + question
		}
		if early := early(q); early > 0 {
			question = fmt.Sprintf("read it first: a yes counts in %s. %s", duration(early), question)
		}
		word, err := a.prompt(question, signals)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, errInterrupted):
			fmt.Fprintln(a.Err)
			return false, true, nil
		case err != nil:
			return false, false, fmt.Errorf("read the answer: %w", err)
		}
		word = strings.ToLower(strings.Join(strings.Fields(word), " "))
		switch word {
		case strings.ToLower(whole), "approve marked", "a", "approve", "yes":
			if short != "" && word != strings.ToLower(whole) {
				fmt.Fprintf(a.Err, "nothing was decided: %s. To approve it, type: %s\n", short, whole)
				continue
			}
			with.Digest, with.Marked, with.Typed = q.Proposal.Digest, short != "" || word == "approve marked", q.Proposal.Card.Typed
			with.Of = q.Approval.ID
			before := early(q) > 0
			said, err := client.Call(ctx, c, api.ApprovalApprove, with)
			if before && problem.KindOf(err) == problem.Refused { // the card stays as it is, and so does the question
				fmt.Fprintf(a.Err, "nothing was decided: %s. Type it again then\n", inert.Line(problem.Of(err).Text))
				continue
			}
			if err == nil {
				showCode(a, q.Approval.Change, said.Code)
			}
			return true, false, err
		case "m", "message":
			if words, err := a.prompt("message of the commit: ", signals); err == nil && strings.TrimSpace(words) != "" {
				with.Message = strings.TrimSpace(words)
				fmt.Fprintf(a.Err, "once you approve it, it lands as: %s\n", inert.Line(with.Message))
			}
		case "d", "diff":
			if err := a.page(ctx, func(w io.Writer) error { return client.Copy(ctx, c, api.ChangeDiff, q.Approval.Change, w) }); err != nil {
				return false, false, err
			}
		case "r", "refuse", "n", "no":
			reason, err := a.prompt("why? ", signals)
			if err != nil || strings.TrimSpace(reason) == "" {
				fmt.Fprintln(a.Err, "nothing was decided: a refusal needs a reason")
				continue
			}
			return true, false, client.Do(ctx, c, api.ApprovalRefuse, api.Reason{Of: q.Approval.ID, Reason: strings.TrimSpace(reason)})
		case "l", "later":
			return false, true, nil
		default:
			yes := "a"
			if short != "" {
				yes = whole
			}
			fmt.Fprintf(a.Err, "nothing was decided: answer %s, m, d, r or l\n", yes)
		}
	}
}

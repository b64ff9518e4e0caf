package submit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
)

// headline is what the host calls a change that an agent asks for.
func headline(row change.Row, reaches right.Class) string {
	switch reaches {
	case right.Host:
		return "Change the host"
	case right.Combined:
		return "Change the host, and what the group " + row.Request.Group + " runs"
	}
	return row.Request.Headline()
}

// propose computes the proposal and its card.
func (s *Submissions) propose(ctx context.Context, row change.Row, o grounds.Offer, results []proposal.CheckResult) (proposal.Proposal, error) {
	number := 1
	before, err := s.Proposal(ctx, row.ID)
	if err != nil {
		return proposal.Proposal{}, err
	}
	if before != nil {
		number = before.Number + 1
	}
	text, wish := row.Request.Text, ""
	if row.Request.OfAgent() {
		text, wish = headline(row, right.Class(o.Class)), row.Request.Text
	}
	spoken, at, err := s.speak(ctx, o)
	if err != nil {
		return proposal.Proposal{}, err
	}
	if hidden := spoken.HiddenSays(); hidden != "" {
		o.Marks = append([]policy.Mark{{Path: at, Kind: policy.MarkHidden, Says: hidden}}, o.Marks...)
	}
	p, err := proposal.Make(ctx, proposal.Making{
		Objects: o.Host, Change: row.ID, Kind: string(row.Request.Kind), Number: number,
		Text: text, Wish: wish, Repo: row.Request.Project.Top, Branch: row.Request.Branch,
		Checkpoint: o.From, Base: o.Base, Commit: o.Commit, Tree: o.Tree, Edits: o.Edits,
		Policy: o.Policy, Marks: o.Marks, MarksWord: row.Request.Worked() && o.Judging.Rules.Marks != policy.MarksShow, Checks: results,
		Note: o.Noted(), AgentSays: o.LastWord, Host: o.Rehearsed, At: ledger.Now(),
	})
	if err != nil {
		return proposal.Proposal{}, fmt.Errorf("compute the card: %w", err)
	}
	p.Card.Reworks = row.Swap != nil
	p.Card.Class, p.Card.Typed, p.Card.Think, p.Card.People, p.Card.Banner = o.Class, o.Typed, o.Think, o.People, o.Banner
	p.Card.Reach = append(p.Card.Reach, o.Reach...)
	if row.Request.Chat != "" {
		p.Card.Spoken = spoken
		s.Moved(ctx, row, &p) // nobody looks at that card again, as on the command line
	}
	p.Card.Made = madeBy(row.Request)
	if p.Card.Setup, err = s.Stocks.LostBy(ctx, s.Opener.Spec(row)); err != nil {
		return p, err
	}
	if p.Card.Then, err = s.beside(ctx, row); err != nil {
		return p, err
	}
	then, err := s.Trials.Foretell(ctx, row, p)
	if err != nil {
		return p, err
	}
	p.Card.Then = append(p.Card.Then, then...)
	if len(o.Edits) > 0 { // else no commit is made
		err = s.Commits.Foretell(ctx, row, o.Host, o.Base, o.Judging.Subject, &p.Card)
	}
	if err != nil {
		return p, err
	}
	err = s.DB.Read(ctx, func(tx store.Tx) error {
		uses, err := tx.Uses(ctx, row.ID.Subject())
		if err != nil {
			return err
		}
		p.Card.Used = budget.Words(uses)
		asked, err := tx.Asked(ctx, row.ID.Subject())
		p.Card.Network = reached(row.Request.Egress, asked)
		return err
	})
	return p, err
}

// speak reads the diff as a conversation shows it, without secrets, and which file is the first of which it does not show all.
func (s *Submissions) speak(ctx context.Context, o grounds.Offer) (spoken *proposal.Spoken, at string, err error) {
	if len(o.Edits) == 0 {
		return proposal.Speak("", false), "", nil
	}
	var b bounded
	clean := s.Secrets.DiffRedactor(&b)
	timed, cancel := context.WithTimeout(ctx, proposal.CountMax)
	defer cancel()
	err = o.Host.Patch(timed, clean, o.Base, o.Commit, false)
	// The beginning of a diff that takes too long or too much memory to make.
	if err != nil && ctx.Err() == nil && (timed.Err() != nil || errors.Is(err, git.ErrDiffMemory)) {
		err, b.longer = nil, true
	}
	if err := errors.Join(err, clean.Close()); err != nil {
		return nil, "", fmt.Errorf("read the diff of %.12s as it is shown: %w", o.Commit, err)
	}
	spoken = proposal.Speak(b.String(), b.longer)
	spoken.Hidden = clean.Hidden()
	if at = clean.HiddenAt(); at == "" && len(o.Edits) > 0 { // a name is hidden, maybe
		at = o.Edits[0].Path
	}
	return spoken, at, nil
}

// bounded keeps the beginning of what is written, as much as a conversation may show.
type bounded struct {
	strings.Builder
	longer bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := min(proposal.SpokenBytesMax-b.Len(), len(p))
	b.longer = b.longer || room < len(p)
	b.Builder.Write(p[:room])
	return len(p), nil
}

// madeBy names the command that made a change, as a shell takes it, or the agent with its model; "" where no agent took part.
func madeBy(r request.Request) string {
	switch {
	case !r.Worked():
		return ""
	case len(r.Argv) > 0:
		return inert.Command(r.Argv)
	case r.Model != "":
		return r.Agent + ", " + r.Model
	}
	return r.Agent
}

// hostsOnCard is how many hosts that were refused a card names.
const hostsOnCard = 5

// reached says on a card what the person let a sandbox reach beside its model, and what else it asked for and was refused.
func reached(granted []string, asked []session.Asked) (lines []string) {
	for _, e := range granted {
		lines = append(lines, "the agent's sandbox could reach "+e)
	}
	var hosts []string
	times := map[string]int64{}
	for _, a := range asked {
		if a.Verdict != string(egress.Refused) || a.Route != "" {
			continue
		}
		if a.Host == "" && a.Method == "" { // so many were asked for that they are told together
			lines = append(lines, fmt.Sprintf("sallyport refused %d requests to other hosts, or to its model", a.Count))
			continue
		}
		if a.Host == "" {
			continue
		}
		if times[a.Host] == 0 {
			hosts = append(hosts, a.Host)
		}
		times[a.Host] += a.Count
	}
	for i, h := range hosts {
		if i == hostsOnCard {
			return append(lines, fmt.Sprintf("sallyport refused requests to %d other hosts", len(hosts)-hostsOnCard))
		}
		what := "a request"
		if n := times[h]; n > 1 {
			what = fmt.Sprintf("%d requests", n)
		}
		lines = append(lines, "sallyport refused "+what+" to "+h)
	}
	return lines
}

// beside says for a card that what lands is not where the person stands.
func (s *Submissions) beside(ctx context.Context, row change.Row) ([]string, error) {
	r := row.Request
	if r.From == "" {
		return nil, nil
	}
	there, err := r.Project.Common(s.Ops).Branch(ctx, r.Branch)
	kind := "the new branch"
	if there {
		kind = "the branch"
	}
	return []string{fmt.Sprintf("it lands on %s %s, not on %s: no file that is checked out changes", kind, r.Branch, r.From)}, err
}

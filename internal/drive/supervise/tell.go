package supervise

import (
	"context"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
)

// tellMax is how long a person waits for an agent to take their words.
const tellMax = 15 * time.Second

// Tell hands a person's words to a running agent (SV-086).
func (ss *Supervisors) Tell(ctx context.Context, change id.Change, by audit.Actor, text string) (session.Delivery, error) {
	s, err := ss.supervised(ctx, change, by)
	if err != nil {
		return session.Delivery{}, err
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return session.Delivery{}, problem.Errorf(problem.Usage, "sallyport change tell --help", "the text is empty: there is nothing to tell the agent")
	case len(text) > request.TextBytesMax:
		return session.Delivery{}, problem.Errorf(problem.Usage, "sallyport change tell --help", "the text has %d bytes; %d is the limit",
			len(text), request.TextBytesMax)
	case s.run.Talk == nil:
		return session.Delivery{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(change),
			"the agent of %s reads no messages: only an agent with a name, or a COMMAND that was started with run --messages, does", change)
	}
	if err := ss.Secrets.RefuseIn(ctx, "sallyport change tell --help", "the text", text); err != nil {
		return session.Delivery{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, tellMax)
	defer cancel()
	d := s.run.Talk.Tell(ctx, text)
	ss.recordDelivery(context.WithoutCancel(ctx), change, string(s.run.Session.ID), request.FirstLine(text), by, d)
	return d, nil
}

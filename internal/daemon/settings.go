package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/rule/config"
	"sallyport/internal/store"
)

// settingsEvery is how often the home's files are looked at though nobody asks for them.
const settingsEvery = 2 * time.Second

// herald tells the owner of a file of the home that does not load, and that it loads again.
type herald struct {
	settings *config.Settings
	ledger   *ledger.Ledger
	owner    id.Person
}

// Run tells what there is to tell until ctx ends.
func (h herald) Run(ctx context.Context) error {
	tick := time.NewTicker(settingsEvery)
	defer tick.Stop()
	for {
		for _, n := range h.settings.News() {
			if err := h.tell(ctx, n); err != nil && ctx.Err() == nil {
				h.ledger.Log.Warn("the owner could not be told of a file of the home; it is tried again", slog.String("file", n.File), slog.Any("error", err))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tell says it once in every chat in which the owner is alone with the host, and by the home's notify.command. A crash in between has the
// same words tried again, which no chat has twice.
func (h herald) tell(ctx context.Context, n config.News) error {
	text, next := newsText(n)
	said := text
	if next != "" {
		said += "\nTo correct it: " + next
	}
	err := h.ledger.DB.InTx(ctx, func(tx store.Tx) error { return h.ledger.Origin.TellAlone(ctx, tx, h.owner, said) })
	if err == nil {
		err = h.settings.Told(n)
	}
	if err != nil {
		return err
	}
	h.ledger.Log.Warn(text)
	h.ledger.Notify(ledger.Note{Kind: ledger.NoteSettings, Text: text, Next: next}, func() {})
	return nil
}

// newsText says what became of a file, and how it is corrected. Its time makes the words of each time others.
func newsText(n config.News) (text, next string) {
	since := n.Since.UTC().Format("2006-01-02 15:04:05 MST")
	if n.Loads {
		return fmt.Sprintf("%s loads again, and counts. It had not loaded since %s.", n.File, since), ""
	}
	p := problem.Of(n.Why)
	return fmt.Sprintf("%s does not load since %s, so what it says now does not count. %s\n%s", n.File, since, n.InForce(), p.Text), p.Next
}

// unloaded are the files that do not load, as a person is shown them.
func unloaded(s *config.Settings) func() []api.Unloaded {
	return func() (all []api.Unloaded) {
		for _, u := range s.Unloaded() {
			all = append(all, api.Unloaded{File: u.File, Since: u.Since, Line: u.Line, Problem: u.Text(), InForce: u.InForce(), Next: problem.Of(u.Why).Next})
		}
		return all
	}
}

// checkKept has a line if what counts now would not count over a restart with a typo in it.
func checkKept(s *config.Settings) []api.Check {
	err := s.Unkept()
	if err == nil {
		return nil
	}
	return []api.Check{{Name: "settings", Detail: "they load, and cannot be kept for a time at which they do not: " +
		problem.Of(err).Text, Fix: problem.Of(err).Next}}
}

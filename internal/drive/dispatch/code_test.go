package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/decide"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/guard"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
)

// coded takes the codes that trials are confirmed with, and confirms none.
type coded struct {
	dispatch.Changes
	codes     []string
	meanwhile func() // at the first code; nil = nothing
}

func (c *coded) Confirm(_ context.Context, of id.Change, _ audit.Actor, code string) error {
	c.codes = append(c.codes, code)
	if len(c.codes) == 1 && c.meanwhile != nil {
		c.meanwhile()
	}
	return problem.Errorf(problem.Refused, "sallyport confirm "+string(of), "that is not its code; 4 tries are left")
}

// TestTheCodeOfAHostTrialDecidesInWordsAndIsKeptNowhere holds SM-122 and SM-923: whoever can read what was said here has no code by it.
func TestTheCodeOfAHostTrialDecidesInWordsAndIsKeptNowhere(t *testing.T) {
	asksThere(t, right.Host, func(t *testing.T, s *changing) {
		var asked id.Approval
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			a, _, err := tx.PendingApproval(ctx, s.change)
			asked = a.ID
			return err
		})
		s.looks(t)
		time.Sleep(time.Minute)
		s.says("CONFIRM HOST")
		var plain string
		if !s.control.GiveCode(gittest.Context(t), asked, s.By(), func(_ id.Change, code string) (string, error) { plain = code; return "here", nil }) {
			t.Fatal("the approval came with no code")
		}
		s.Asked(s.control, s.change)
		if err := s.kept.Arm(t.Context(), guard.HostChange{Change: s.change}); err != nil {
			t.Fatal(err)
		}
		s.kept.Moves(keeper.Asked, nil)
		s.Tx(func(ctx context.Context, tx store.Tx) error { // the host is on trial
			on, _, err := tx.Trial(ctx, s.change)
			if err != nil {
				return err
			}
			on.Target.Host = true
			return tx.MoveTrial(ctx, trial.Message1Sent, on)
		})
		spy := &coded{Changes: s.control}
		s.d.Changes, s.d.Coded = spy, s.control.Codes.Any
		s.looks(t)

		for _, text := range []string{"confirm", "confirm " + plain[1:]} {
			if m, told := s.says(text); m.Decides == nil || m.Decides.Kind != decide.Typed || !strings.Contains(told, "reply `confirm` and its code") {
				t.Errorf("%q: %+v, %q", text, m, told)
			}
		}
		if len(spy.codes) > 0 {
			t.Errorf("words that are no code were tried: %q", spy.codes)
		}
		m, told := s.says("Confirm " + strings.ToLower(plain))
		if m.Text != "confirm ••••" || len(spy.codes) != 1 || spy.codes[0] != strings.ToLower(plain) || !strings.Contains(told, "4 tries are left") {
			t.Errorf("the code: %+v, tried %q, told %q", m, spy.codes, told)
		}

		other := s.By()
		other.Person, other.UID = "psn-0000else", 4711
		for _, text := range []string{"confirm " + plain, "the code is " + plain} { // from somebody who may not: talk
			m, err := s.d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: text, Account: "1000", Name: "else", By: other})
			if synctest.Wait(); err != nil || m.Decides != nil || !strings.HasSuffix(m.Text, " ••••") {
				t.Errorf("another's %q is kept as %q, %v", text, m.Text, err)
			}
		}
		if len(spy.codes) != 1 {
			t.Errorf("others tried a code, too: %q", spy.codes)
		}

		q, card := s.asked("And the code?")
		s.says(fmt.Sprintf("%d confirm %s", card.Digits, plain))
		s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
			if q, err = tx.Question(ctx, q.ID); err == nil && (q.Answer == nil || q.Answer.Text != "confirm ••••") {
				t.Errorf("an agent that asks for the code is told %+v", q.Answer)
			}
			return err
		})

		s.end()
		next := &coded{Changes: s.control}
		parts := s.d.Parts
		parts.Changes = next
		s.d = dispatch.New(parts)
		ctx, end := context.WithCancel(gittest.Context(t))
		var running sync.WaitGroup
		defer running.Wait()
		defer end()
		next.meanwhile = func() { // the next daemon finds the words, which its other half has just heard
			running.Go(func() { _ = s.d.Run(ctx) })
			synctest.Wait()
		}
		s.says("confirm " + plain)
		if len(next.codes) != 1 || next.codes[0] != plain {
			t.Errorf("words that came while a daemon began were carried out with %q", next.codes)
		}
		noCodeIn(t, filepath.Dir(s.Repo), plain)
	})
}

// noCodeIn looks for a code in everything below a folder.
func noCodeIn(t *testing.T, folder, plain string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !e.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // what lands comes and goes
			return nil
		}
		if raw = bytes.ToUpper(raw); bytes.Contains(raw, []byte(plain[1:])) || bytes.Contains(raw, []byte(strings.ReplaceAll(plain, "-", ""))) {
			t.Errorf("the code stands in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

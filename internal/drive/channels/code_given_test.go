package channels_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/port/channel"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
)

// ofHost asks anew about the change, as of one of the host.
func (s *changing) ofHost() {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		row, err := tx.Change(ctx, s.change)
		if err != nil {
			return err
		}
		p, _, err := tx.Proposal(ctx, s.change)
		if err != nil {
			return err
		}
		p.Number, p.At, p.Card.Class = p.Number+1, ledger.Now(), string(right.Host)
		_, err = s.control.Origin.OpenApproval(ctx, tx, row, p)
		return err
	})
	time.Sleep(time.Minute)
	synctest.Wait()
}

// TestTheCodeOfAHostChangeArrivesWhereItsApproverIsAloneAndInNoRow holds SM-923.
func TestTheCodeOfAHostChangeArrivesWhereItsApproverIsAloneAndInNoRow(t *testing.T) {
	gives := func(s *scene) {
		drivetest.Keep(s.Home)
		s.parts = func(p *channels.Parts) {
			p.Code = func(ctx context.Context, ref id.Approval, by audit.Actor, hand func(id.Change, string) (string, error)) bool {
				return s.control.GiveCode(ctx, ref, by, hand)
			}
		}
	}
	asksOnOne(t, gives, func(t *testing.T, s *changing) {
		s.ofHost()
		s.tells(olga, "CONFIRM HOST")
		synctest.Wait()
		var code string
		for _, text := range s.texts(olgaDM) {
			if _, rest, ok := strings.Cut(text, "This code keeps "+string(s.change)+" once it is on trial: "); ok {
				code, _, _ = strings.Cut(rest, "\n")
			}
		}
		hash, err := s.control.Codes.Take(t.Context(), s.change)
		if err != nil || !hash.Matches(code) {
			t.Fatalf("%v; who approved it has read %q", err, s.texts(olgaDM))
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			chats, err := tx.Chats(ctx, "")
			for _, c := range chats {
				outs, err := tx.NewestOuts(ctx, c.ID, 100)
				if err != nil {
					return err
				}
				for _, o := range outs {
					if strings.Contains(o.Text, code) {
						t.Errorf("it stands in a row: %q", o.Text)
					}
				}
			}
			return err
		})
		if said := s.Reasons(s.control, s.change, "gave the code"); len(said) != 1 || !strings.HasSuffix(said[0], "where they are alone with the assistant, on "+chatName) {
			t.Errorf("where it went is told as %q", said)
		}
	})
}

// TestAHomeThatGivesCodesAtItsMachineSaysSoOnTheCard holds `host: code: terminal` (SM-923).
func TestAHomeThatGivesCodesAtItsMachineSaysSoOnTheCard(t *testing.T) {
	asksOnOne(t, func(s *scene) { s.Parts.Terminal = func() bool { return true } }, func(t *testing.T, s *changing) {
		s.ofHost()
		s.tells(olga, "CONFIRM HOST")
		synctest.Wait()
		told := s.texts(olgaDM)
		if last := told[len(told)-1]; !strings.Contains(last, string(s.change)+" cannot be approved here: the code that it is confirmed with is given at this machine alone (host: code: terminal). To approve it: sallyport approve "+string(s.change)) {
			t.Errorf("it is told as %q", last)
		}
		if s.control.Codes.Any() {
			t.Error("a code was made")
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
	})
}

// refusing is a platform that takes no code.
type refusing struct{ channel.Driver }

func (r refusing) Deliver(ctx context.Context, m channel.Message) (string, error) {
	if strings.Contains(m.Text, "This code keeps") {
		return "", channel.ErrDead
	}
	return r.Driver.Deliver(ctx, m)
}

// TestACodeThatNoPlatformTookIsLost holds SM-923: the landing is refused, and says why.
func TestACodeThatNoPlatformTookIsLost(t *testing.T) {
	gives := func(s *scene) {
		drivetest.Keep(s.Home)
		s.parts = func(p *channels.Parts) {
			p.Code = func(ctx context.Context, ref id.Approval, by audit.Actor, hand func(id.Change, string) (string, error)) bool {
				return s.control.GiveCode(ctx, ref, by, hand)
			}
			open := p.Open
			p.Open = func(c conversation.Channel) (channel.Driver, error) {
				d, err := open(c)
				return refusing{d}, err
			}
		}
	}
	asksOnOne(t, gives, func(t *testing.T, s *changing) {
		s.ofHost()
		s.tells(olga, "CONFIRM HOST")
		synctest.Wait()
		if _, err := s.control.Codes.Take(t.Context(), s.change); !errors.Is(err, approve.ErrUngiven) || !strings.Contains(err.Error(), "the platform does not take it") {
			t.Errorf("%v", err)
		}
		if said := s.Reasons(s.control, s.change, "gave the code"); len(said) > 0 {
			t.Errorf("it is told as given: %q", said)
		}
	})
}

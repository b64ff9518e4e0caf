package daemon

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/trial"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// TestAHostComesToRestBeforeAnotherTakesItsPlace holds the order of a hand-over: turns end, then what they said leaves; and what does not
// come about is taken back.
func TestAHostComesToRestBeforeAnotherTakesItsPlace(t *testing.T) {
	for _, c := range []struct{ turn, until time.Duration }{{0, 0}, {30 * time.Second, 30 * time.Second}, {time.Hour, restMax}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var did []string
			note := func(what string) { did = append(did, what+" "+time.Since(began).Round(time.Second).String()) }
			resume := resting{
				hold: func() func() { note("hold"); return func() { note("goes on") } },
				turns: func() int {
					if time.Since(began) < c.turn {
						return 1
					}
					return 0
				},
				flush: func(context.Context) func() {
					note("flush")
					time.Sleep(10 * time.Second)
					return func() { note("speaks on") }
				},
			}.rest(t.Context())
			resume()
			end := (c.until + 10*time.Second).String()
			if want := []string{"hold 0s", "flush " + c.until.String(), "speaks on " + end, "goes on " + end}; !slices.Equal(did, want) {
				t.Errorf("%q, not %q", did, want)
			}
		})
	}
}

// TestARemovedReleaseIsToldAsThat: a change that waits with a release that was pruned can be asked for anew, and nothing is wrong with the home.
func TestARemovedReleaseIsToldAsThat(t *testing.T) {
	home, r := t.TempDir(), keeper.Record{Change: "chg-1", New: strings.Repeat("a", 64)}
	_, _, gone := release.In(home, disk.Ops{}).Open(r.New)
	err := unarmed(home, r, gone)
	if next := problem.Of(err).Next; problem.KindOf(err) != problem.Refused || next != "sallyport refuse chg-1" || strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("%v; next: %s", err, next)
	}
}

// slowly is a platform that takes two seconds for each message.
type slowly struct{ channel.Driver }

func (s slowly) Deliver(ctx context.Context, m channel.Message) (string, error) {
	time.Sleep(2 * time.Second)
	return s.Driver.Deliver(ctx, m)
}

// What a trial wrote into a database that cannot be read is missed by whoever spoke with the assistant meanwhile: they are told, also after a
// time-out, whose words are fixed.
func TestThatADatabaseCouldNotBeReadIsToldWithWhyTheHostGoesBack(t *testing.T) {
	unread, lost := sqlite.Reverted{Unread: "/home/.state/db.unread"}, sqlite.Reverted{Lost: true}
	for _, c := range []struct {
		why  string
		done sqlite.Reverted
		want string
	}{
		{keeper.Unconfirmed, sqlite.Reverted{}, trial.TimeoutSay},
		{keeper.Unconfirmed, unread, "Rolled back to previous version — deadman timeout; what was written in the meantime could not be read, and is in .state/db.unread alone"},
		{"it was silent", sqlite.Reverted{}, "Rolled back to previous version — it was silent"},
		{"it was silent", unread, "Rolled back to previous version — it was silent; what was written in the meantime could not be read, and is in .state/db.unread alone"},
		{"it was silent", lost, "Rolled back to previous version — it was silent; what was written in the meantime is lost: its database was gone"},
	} {
		d := wentBack(keeper.Record{Why: c.why}, c.done)
		if got := (trial.Trial{}).Decide(d).Said(); got != c.want || d.To != trial.RolledBack {
			t.Errorf("%s, %+v: it is %s, and says %q", c.why, c.done, d.To, got)
		}
	}
}

// TestADaemonsChannelsHearWhatItsHostDoes holds that a hand-over reaches the channels of the daemon, and that they know when it is quiet.
func TestADaemonsChannelsHearWhatItsHostDoes(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		d := &Daemon{Options: Options{Home: t.TempDir()}, log: slog.New(slog.DiscardHandler), control: control.New(h.Parts)}
		d.chats = dispatch.New(dispatch.Parts{Ledger: d.control.Ledger})
		d.channels = channelsOf(d)
		platform := channeltest.NewScripted()
		d.channels.Open = func(conversation.Channel) (channel.Driver, error) { return slowly{platform.Driver(t)}, nil }
		h.Tx(func(ctx context.Context, tx store.Tx) error {
			return tx.PutChannel(ctx, conversation.Channel{Name: "chat", Platform: "scripted", Settings: map[string]string{}, Added: time.Now()})
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.channels.Run(ctx) }()
		synctest.Wait()

		says := func(text string) {
			h.Tx(func(ctx context.Context, tx store.Tx) error {
				where, err := tx.PutConversation(ctx, conversation.Conversation{
					ID: id.NewConversation(), Platform: "chat", Address: "hall", Kind: channel.Group, Name: "hall", Created: time.Now(),
				})
				if err != nil {
					return err
				}
				chat, err := ledger.HostChat(ctx, tx, where.ID)
				if err != nil {
					return err
				}
				_, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Text: text, At: time.Now()})
				return err
			})
		}
		arrived := func(want ...string) {
			t.Helper()
			var got []string
			for _, a := range platform.Arrived(t, "hall") {
				got = append(got, a.Text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q has arrived, not %q", got, want)
			}
		}
		says("before")
		resume := hosted{d}.resting().rest(ctx)
		arrived("before")
		says("after")
		time.Sleep(time.Minute)
		arrived("before")
		resume()
		time.Sleep(time.Minute)
		arrived("before", "after")

		if why := d.channels.Quiet(); why != "" {
			t.Errorf("a host that is not on trial says %q", why)
		}
		d.quiet.begin("chg-tried")
		if why := d.channels.Quiet(); why != "a host change is on trial" {
			t.Errorf("one that is says %q", why)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

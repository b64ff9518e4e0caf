package e2e_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/slack/slacktest"
	"sallyport/internal/port/channel/telegram/telegramtest"
)

// speaker is a platform on which a person is alone with the assistant.
type speaker interface {
	channeltest.Platform
	channeltest.Presser
	API() string
}

// desk is one person of the home on a platform of theirs.
type desk struct {
	speaker
	channel string
}

// here is where they are alone with the assistant.
func (d desk) here() channel.Place { return d.Direct() }

// says has them say something there.
func (d desk) says(t *testing.T, text string) {
	d.Say(t, channeltest.Saying{By: d.People()[0], Place: d.here(), Text: text})
}

// await waits until something has arrived there, and returns it.
func (d desk) await(t *testing.T, what string, is func(channeltest.Arrived) bool) (found channeltest.Arrived) {
	t.Helper()
	await(t, what+" on "+d.channel, func() (bool, error) {
		all := d.Arrived(t, d.here().Address)
		i := slices.IndexFunc(all, is)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0, nil
	})
	return found
}

// presses waits for a card with a button, and has it pressed.
func (d desk) presses(t *testing.T, option string) {
	t.Helper()
	card := d.await(t, "a card to "+option, func(a channeltest.Arrived) bool {
		return slices.ContainsFunc(a.Buttons, func(o channel.Option) bool { return o.Key == option })
	})
	d.Press(t, d.here().Address, card.ID, d.People()[0], option)
}

// add adds the channel of a desk to the home, with its credential in a file.
func (d desk) add(t *testing.T, c *client.Client, credential string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), d.channel)
	disktest.Put(t, file, credential, 0o600)
	_, err := client.Call(t.Context(), c, api.ChannelAdd, api.NewChannel{Name: d.channel, Platform: d.channel, Settings: map[string]string{"api": d.API()}, Credential: "file:" + file})
	if err != nil {
		t.Fatal(err)
	}
	await(t, d.channel+" to be connected", func() (bool, error) {
		ch, err := client.Call(t.Context(), c, api.ChannelShow, d.channel)
		return ch.Status == api.ChannelConnected, err
	})
}

// joins makes them somebody of the home with a role, by a code that they send, and has echo hear them.
func (d desk) joins(t *testing.T, c *client.Client, name, role string) {
	t.Helper()
	_, err := client.Call(t.Context(), c, api.PersonAdd, api.NewPerson{Name: name})
	_, err2 := client.Call(t.Context(), c, api.PersonRole, api.SetRole{Person: name, Role: role, Group: "echo"})
	link, err3 := client.Call(t.Context(), c, api.PersonLink, name)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	d.says(t, link.Code)
	d.await(t, name+" to be known", func(a channeltest.Arrived) bool { return strings.HasPrefix(a.Text, "This account is "+name) })
	all, err := client.Call(t.Context(), c, api.WiringList, api.OfChannel{Channel: d.channel})
	if err != nil || len(all) != 1 {
		t.Fatalf("%s has the conversations %+v, %v", d.channel, all, err)
	}
	if _, err := client.Call(t.Context(), c, api.WiringSet, api.SetWiring{Conversation: all[0].ID, Group: "echo"}); err != nil {
		t.Fatal(err)
	}
}

// TestAChangeAskedForOnSlackIsApprovedOnTelegram goes all the way with one daemon and the drivers of both: a member has the group change itself
// on Slack, its admin approves that on Telegram, and who asked confirms it where they asked.
func TestAChangeAskedForOnSlackIsApprovedOnTelegram(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newSilence(t)
	c := w.start(t)
	member, admin := desk{slacktest.Open(t), "slack"}, desk{telegramtest.Open(t), "telegram"}
	defer func() {
		if t.Failed() {
			t.Logf("on Slack %+v\non Telegram %+v\n%s", member.Arrived(t, member.here().Address), admin.Arrived(t, admin.here().Address), w.said())
		}
	}()
	member.add(t, c, slacktest.BotToken+"\n"+slacktest.AppToken+"\n")
	admin.add(t, c, telegramtest.Token+"\n")
	member.joins(t, c, "mia", "member")
	admin.joins(t, c, "ada", "group_admin")

	member.says(t, wish)
	admin.presses(t, "approve")
	tells := func(words string) func(channeltest.Arrived) bool {
		return func(a channeltest.Arrived) bool { return strings.Contains(a.Text, words) }
	}
	member.await(t, "that it was approved", tells(" approved chg-"))
	member.presses(t, "confirm")
	for _, d := range []desk{member, admin} {
		d.await(t, "that it is kept", tells(" is landed and kept: confirmed by "))
	}
	if prompt := git(t, w.home, "show", "HEAD:"+prompts); !strings.HasSuffix(prompt, greets+"\n") {
		t.Errorf("the group's prompt is %q", prompt)
	}
	member.says(t, "good day")
	member.await(t, "an answer of the new version", func(a channeltest.Arrived) bool { return strings.HasPrefix(a.Text, "Hello, ") })

	for _, d := range []desk{member, admin} {
		await(t, "all that it said to be known as sent", func() (bool, error) {
			ch, err := client.Call(t.Context(), c, api.ChannelShow, d.channel)
			if err == nil && ch.Dead > 0 {
				err = fmt.Errorf("%d messages do not arrive on %s: %+v", ch.Dead, d.channel, ch.Newest)
			}
			return ch.Waiting == 0, err
		})
	}
	w.stop(t, c)
	w.leftNothing(t)
}

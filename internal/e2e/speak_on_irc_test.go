package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lrstanley/girc"
	"golang.org/x/sys/unix"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/channel/irc/irctest"
)

// ircServer names the server that a lane speaks with.
const ircServer = "SALLYPORT_TEST_IRC"

// says has somebody say something in the team's channel, and waits for the answer.
func (w *world) says(t *testing.T, ann *irctest.User, text string) {
	t.Helper()
	ann.Send("PRIVMSG #team :port: " + text)
	await(t, "an answer to "+text, func() (bool, error) { return answers(ann, text) > 0, nil })
}

// answers counts those that somebody has had in the team's channel.
func answers(ann *irctest.User, text string) (n int) {
	for _, a := range ann.Got("#team", "port") {
		if a.Text == "port: "+text { // echo says what it heard
			n++
		}
	}
	return n
}

// joins counts how often the assistant has entered.
func joins(ann *irctest.User) (n int) {
	ann.Each(func(e *girc.Event) {
		if e.Command == girc.JOIN && e.Source != nil && e.Source.Name == "port" {
			n++
		}
	})
	return n
}

// TestAStrangersChannelGetsANewGroupAndAnswersAfterAKill goes from a channel that nobody hears to one that answers, on a real server: the owner is
// asked, names a new group, what was said is answered, a stranger makes no group, and a daemon that is killed comes back and answers.
func TestAStrangersChannelGetsANewGroupAndAnswersAfterAKill(t *testing.T) {
	if os.Getenv(lane) == "" { // it is no child of the lane, which counts all that is left
		if err := os.Setenv(ircServer, irctest.Ngircd(t).Addr); err != nil {
			t.Fatal(err)
		}
	}
	if !apart(t) {
		return
	}
	server := &irctest.Server{Addr: os.Getenv(ircServer)}
	w := newSilence(t)
	c := w.start(t)
	owner := newTerminal()
	owner.group = "host"
	defer owner.watch(t, c)()
	defer func() {
		if !t.Failed() {
			return
		}
		all, err := client.Call(context.WithoutCancel(t.Context()), c, api.MessageList, api.Messages{})
		owner.mu.Lock()
		defer owner.mu.Unlock()
		t.Logf("the owner was told %+v\nof the messages %+v, %v\n%s", owner.outs, all, err, w.said())
	}()
	ann := server.Enter(t, "ann").Join("#team")

	settings := map[string]string{"server": server.Addr, "nick": "port", "channels": "#team", "tls": "no", "pace": "1ms"}
	if _, err := client.Call(t.Context(), c, api.ChannelAdd, api.NewChannel{Name: "team", Platform: "irc", Settings: settings}); err != nil {
		t.Fatal(err)
	}
	await(t, "the assistant to come", func() (bool, error) { return joins(ann) == 1, nil })
	ann.Send("PRIVMSG #team :port: hello")
	await(t, "the owner to be asked", owner.sees(func(n *terminal) bool {
		for _, o := range n.outs {
			if strings.HasPrefix(o.Text, "🔌 New channel") && strings.Contains(o.Text, "➕ Create new") {
				return true
			}
		}
		return false
	}))
	if waiting, err := client.Call(t.Context(), c, api.ApprovalList, api.Waiting{Pending: true}); err != nil || len(waiting) != 1 || waiting[0].Kind != "channel" {
		t.Errorf("what waits is %+v, %v", waiting, err)
	}
	if _, err := client.Call(t.Context(), c, api.ChatSay, api.Say{Group: "host", Text: "create Helper", Nonce: "name"}); err != nil {
		t.Fatal(err)
	}
	await(t, "what was said to be answered", func() (bool, error) { return answers(ann, "hello") == 1, nil })
	if subject := strings.TrimSpace(git(t, w.home, "log", "-1", "--format=%s")); subject != "Make the group helper" {
		t.Errorf("the home's last commit says %q", subject)
	}
	w.says(t, ann, "create other")
	if _, err := os.Stat(filepath.Join(w.home, "groups", "other")); err == nil {
		t.Error("a stranger has made a group")
	}

	await(t, "all that it said to be known as sent", func() (bool, error) { // a platform without nonces is told again what is not
		team, err := client.Call(t.Context(), c, api.ChannelShow, "team")
		return team.Waiting == 0, err
	})
	d, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(d.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the daemon to be gone", func() (bool, error) {
		reap()
		return errors.Is(unix.Kill(d.PID, 0), unix.ESRCH), nil
	})
	c = w.start(t)
	await(t, "the assistant to come back", func() (bool, error) { return joins(ann) == 2, nil })
	w.says(t, ann, "again")
	for _, text := range []string{"hello", "create other", "again"} {
		if n := answers(ann, text); n != 1 {
			t.Errorf("%q was answered %d times", text, n)
		}
	}
	w.stop(t, c)
	w.leftNothing(t)
}

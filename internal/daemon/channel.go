package daemon

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/discord"
	"sallyport/internal/port/channel/irc"
	"sallyport/internal/port/channel/matrix"
	"sallyport/internal/port/channel/slack"
	"sallyport/internal/port/channel/telegram"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
	"sallyport/internal/who/group"
)

// platform is one that a channel can speak with.
type platform struct {
	settings []channel.Setting
	open     func(settings map[string]string, credential func() (string, error)) (channel.Driver, error)
	secret   string // what the credential is; "" = it goes without one
}

// platforms are those that there are, by name.
var platforms = map[string]platform{
	"discord":  {discord.Settings, discord.Open, "the bot's token"},
	"irc":      {settings: irc.Settings, open: irc.Open},
	"matrix":   {matrix.Settings, matrix.Open, "the account's access token"},
	"slack":    {slack.Settings, slack.Open, "the app-level token and the bot's token, a line each"},
	"telegram": {telegram.Settings, telegram.Open, "the bot's token"},
}

// tokens are what channels prove themselves by. Each is held for as long as the daemon lives, so that it is shown nowhere.
type tokens struct {
	held *secret.Held

	mu  sync.Mutex
	all map[string]bool
}

// open returns the driver of a channel. Its credential is read from its file at each connect.
func (t *tokens) open(c conversation.Channel) (channel.Driver, error) {
	p, ok := platforms[c.Platform]
	if !ok {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help", "there is no platform %q; there are %s",
			inert.Short(c.Platform, 40), strings.Join(slices.Sorted(maps.Keys(platforms)), ", "))
	}
	var proof func() (string, error)
	if c.Credential != "" {
		proof = func() (string, error) { return t.read(c.Credential) }
	} else if p.secret != "" {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help",
			"%s wants a credential, %s: give --credential file:PATH", c.Platform, p.secret)
	}
	return p.open(c.Settings, proof)
}

// check refuses what no channel can be of, and a credential that cannot be read.
func (t *tokens) check(c conversation.Channel) error {
	if _, err := t.open(c); err != nil || c.Credential == "" {
		return err
	}
	_, err := t.read(c.Credential)
	return err
}

// tokensMax is the longest credential of a channel, in bytes.
const tokensMax = 16 << 10

// read reads what a channel proves itself by: file:PATH, of a file that is the host's alone, a token in each line.
func (t *tokens) read(from string) (string, error) {
	path, ok := strings.CutPrefix(from, "file:")
	if !ok || !filepath.IsAbs(path) {
		return "", problem.Errorf(problem.Refused, "sallyport channel add --help", "the channel has no credential: it is said as file:/PATH")
	}
	raw, err := credential.ReadFile(path, os.Getuid(), tokensMax+1)
	if err != nil {
		return "", err
	}
	if len(raw) > tokensMax {
		return "", problem.Errorf(problem.Refused, "sallyport channel list", "%q is no credential: a file of at most %d bytes is", path, tokensMax)
	}
	text := strings.TrimSpace(string(raw))
	t.hold(strings.Fields(text))
	return text, nil
}

// hold has tokens shown nowhere.
func (t *tokens) hold(some []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range some {
		if !t.all[token] {
			t.all[token] = true
			t.held.Hold(secret.Hold(token))
		}
	}
}

// channelsOf runs the channels of the home.
func channelsOf(d *Daemon) *channels.Channels {
	home := &groupsNow{dir: d.chats.Home}
	return channels.New(channels.Parts{
		Ledger: d.control.Ledger, Voices: dispatch.Voices{Dispatcher: d.chats}, Open: d.tokens.open, Groups: home.list,
		Create: d.control.MakeGroup, Code: d.control.GiveCode, Anyone: anyone(d.settings), Quiet: d.admitsNobody,
	})
}

// anyone reports whether a home's policy lets everybody talk at the moment at which it is asked (CH-059).
func anyone(s *config.Settings) func() bool {
	return func() bool { return s.Policy().Permissions == config.PermissionsOff }
}

// groupsNow are the groups of a home as it is committed; they are listed once for each commit.
type groupsNow struct {
	dir git.Dir

	mu     sync.Mutex
	commit git.OID
	groups []group.Folder
}

func (g *groupsNow) list(ctx context.Context) ([]group.Folder, error) {
	head, err := g.dir.Head(ctx)
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "sallyport doctor", "the home's repository has no branch that can be read: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.commit == head {
		return g.groups, nil
	}
	all, _, err := group.List(ctx, g.dir, head)
	if err == nil {
		g.commit, g.groups = head, all
	}
	return all, err
}

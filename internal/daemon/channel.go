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

// openChannel returns the driver of a channel. Its credential is read from its file at each connect.
func openChannel(c conversation.Channel) (channel.Driver, error) {
	p, ok := platforms[c.Platform]
	if !ok {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help", "there is no platform %q; there are %s", inert.Short(c.Platform, 40), strings.Join(slices.Sorted(maps.Keys(platforms)), ", "))
	}
	var credential func() (string, error)
	if c.Credential != "" {
		credential = func() (string, error) { return readCredential(c.Credential) }
	} else if p.secret != "" {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help", "%s wants a credential, %s: give --credential file:PATH", c.Platform, p.secret)
	}
	return p.open(c.Settings, credential)
}

// checkChannel refuses what no channel can be of, and a credential that cannot be read.
func checkChannel(c conversation.Channel) error {
	if _, err := openChannel(c); err != nil || c.Credential == "" {
		return err
	}
	_, err := readCredential(c.Credential)
	return err
}

// credentialMax is the longest credential of a channel, in bytes.
const credentialMax = 16 << 10

// readCredential reads what a channel proves itself by: file:PATH, of a file that is the host's alone.
func readCredential(from string) (string, error) {
	path, ok := strings.CutPrefix(from, "file:")
	if !ok || !filepath.IsAbs(path) {
		return "", problem.Errorf(problem.Refused, "sallyport channel add --help", "the channel has no credential: it is said as file:/PATH")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", problem.Errorf(problem.Unavailable, "sallyport channel list", "the credential of the channel cannot be read: %w", err)
	case !info.Mode().IsRegular() || info.Size() > credentialMax:
		return "", problem.Errorf(problem.Refused, "sallyport channel list", "%q is no credential: a file of at most %d bytes is", path, credentialMax)
	case info.Mode().Perm()&0o077 != 0:
		return "", problem.Errorf(problem.Refused, "chmod 600 "+path, "others can read the credential %q", path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", problem.Errorf(problem.Unavailable, "sallyport channel list", "the credential of the channel cannot be read: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// channelsOf runs the channels of the home.
func channelsOf(d *Daemon) *channels.Channels {
	home := &groupsNow{dir: d.chats.Home}
	return channels.New(channels.Parts{
		Ledger: d.control.Ledger, Voices: dispatch.Voices{Dispatcher: d.chats}, Open: openChannel, Groups: home.list,
	})
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

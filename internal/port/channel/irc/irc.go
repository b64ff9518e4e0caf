// Package irc speaks with an IRC network.
//
// Who somebody is there is their account with the network's services, and only as the server says so on the very line (account-tag). Without
// that tag somebody is a stranger with a nick: a nick belongs to whoever holds it. A place of one person with an account is named by the
// account, "=ann", and each message to it goes to a nick only once WHOX has shown that account on it. A place of a stranger is their nick.
//
// Lines are read and written here, and parsed by girc. Its client is not used: it drops events when their handlers are slow, reads lines of
// any length, remembers every user, asks about each who joins, and decodes a tag twice, so that two accounts could read the same.
package irc

import (
	"context"
	"encoding/hex"
	"net"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

// Settings are what a person says of a network.
var Settings = []channel.Setting{
	{Name: "server", About: "host, or host:port, of a server of the network", Required: true},
	{Name: "nick", About: "the assistant's nick; with _ behind it while somebody else has it", Required: true},
	{Name: "channels", About: "where it is, with commas: #team,#ops"},
	{Name: "account", About: "its account with the services; the credential is the account's password. Without: the credential is the server's password"},
	{Name: "tls", About: "yes; no for a server that has none (then a password only goes to this machine)", Default: "yes"},
	{Name: "certificate", About: "SHA-256 of the server's certificate in hex, where no authority vouches for it"},
	{Name: "pace", About: "time between two lines, once five have gone at once; at most 4s", Default: "2s"},
}

const (
	channelsMax = 50
	paceMax     = 4 * time.Second
	// lineText is how long a line of text may be, whatever the network's names are: 512 bytes less CR, LF, the longest prefix and the target.
	lineText = 320
	// lineCost is what a line costs beyond its text, so that a message has no more than nine.
	lineCost = 36
)

// Driver is an account on a network.
type Driver struct {
	address     string // host:port
	host        string
	nick        string
	channels    []string
	account     string
	tls         bool
	certificate []byte // SHA-256; nil = as the authorities say
	pace        time.Duration
	credential  func() (string, error)

	mu      sync.Mutex
	now     *session // that is ready; nil = none
	ran     bool     // there was one before
	patient time.Duration
}

// Open returns a driver by its settings. credential reads the password anew; nil = there is none. Errors: problem.Usage.
func Open(settings map[string]string, credential func() (string, error)) (channel.Driver, error) {
	said, err := channel.Check(Settings, settings)
	if err != nil {
		return nil, err
	}
	d := &Driver{nick: said["nick"], account: said["account"], credential: credential, patient: 30 * time.Second}
	if !nickGood().MatchString(d.nick) {
		return nil, wrong("nick", d.nick, "is no nick: letters, digits and _-[]\\`^{}|, a letter first")
	}
	if d.account != "" && !word(d.account) {
		return nil, wrong("account", d.account, "is no name of an account")
	}
	if d.account != "" && credential == nil {
		return nil, problem.Errorf(problem.Usage, "sallyport channel add --help",
			"the account %s needs its password: give --credential file:PATH", inert.Short(d.account, 40))
	}
	for _, parse := range []func(map[string]string) error{d.parseServer, d.parseChannels, d.parseManners} {
		if err := parse(said); err != nil {
			return nil, err
		}
	}
	return d, nil
}

var nickGood = pattern.Of("^[A-Za-z_\\[\\]\\\\`^{}|][A-Za-z0-9_\\[\\]\\\\`^{}|-]{0,29}$")

// wrong refuses a setting.
func wrong(name, value, why string) error {
	return problem.Errorf(problem.Usage, "sallyport channel add --help", "the setting %s: %q %s", name, inert.Short(value, 60), why)
}

func (d *Driver) parseServer(said map[string]string) error {
	switch said["tls"] {
	case "yes":
		d.tls = true
	case "no":
	default:
		return wrong("tls", said["tls"], "is neither yes nor no")
	}
	port := "6697"
	if !d.tls {
		port = "6667"
	}
	d.host = said["server"]
	if host, p, err := net.SplitHostPort(said["server"]); err == nil {
		d.host, port = host, p
	}
	if d.host == "" || strings.ContainsAny(d.host, " /@") || !portGood().MatchString(port) {
		return wrong("server", said["server"], "is no host and no host:port")
	}
	d.address = net.JoinHostPort(strings.Trim(d.host, "[]"), port)
	if ip := net.ParseIP(d.host); !d.tls && d.credential != nil && d.host != "localhost" && !ip.IsLoopback() {
		return wrong("tls", "no", "would send the password to "+inert.Short(d.host, 60)+" for everybody to read: set tls=yes, or give no credential")
	}
	if finger := said["certificate"]; finger != "" {
		sum, err := hex.DecodeString(strings.ReplaceAll(finger, ":", ""))
		if err != nil || len(sum) != 32 || !d.tls {
			return wrong("certificate", finger, "is no SHA-256 in hex of a server's certificate, with tls=yes")
		}
		d.certificate = sum
	}
	return nil
}

var portGood = pattern.Of(`^[1-9][0-9]{0,4}$`)

func (d *Driver) parseChannels(said map[string]string) error {
	for name := range strings.SplitSeq(said["channels"], ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !word(name) || !strings.ContainsRune(chantypes, rune(name[0])) {
			return wrong("channels", name, "is no channel, such as #team; one with a key cannot be named")
		}
		d.channels = append(d.channels, name)
	}
	if len(d.channels) > channelsMax {
		return problem.Errorf(problem.Usage, "", "the setting channels: %d are more than %d", len(d.channels), channelsMax)
	}
	return nil
}

func (d *Driver) parseManners(said map[string]string) error {
	pace, err := time.ParseDuration(said["pace"])
	if err != nil || pace < time.Millisecond || pace > paceMax {
		return wrong("pace", said["pace"], "is no time such as 2s, at most 4s")
	}
	d.pace = pace
	return nil
}

// Can says what IRC takes: lines of text. A message may have several.
func (d *Driver) Can() channel.Can {
	return channel.Can{Direct: true, TextMax: lineText, Length: func(text string) int { return len(text) + lineCost*strings.Count(text, "\n") }}
}

// Update fails: IRC edits nothing.
func (d *Driver) Update(context.Context, string, channel.Message) error {
	return problem.Case(channel.ErrDead, "", "on IRC no message can be changed once it is sent")
}

// Run connects, and listens until the session is lost.
func (d *Driver) Run(ctx context.Context, l channel.Listener) error {
	s, err := d.connect(ctx, l)
	if err == nil {
		err = s.serve(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// session returns the one that is ready.
func (d *Driver) session() (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now == nil {
		return nil, channel.ErrAway
	}
	return d.now, nil
}

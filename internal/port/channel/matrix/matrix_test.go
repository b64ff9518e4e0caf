package matrix_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/matrix"
)

// platform is a room and a direct one on a homeserver.
type platform struct{ *server }

const (
	team = "!team:h.example"
	dm   = "!dm:h.example"
)

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{newServer(t)}
	p.makes(team, "The team", "@ann:h.example", us, "@bob:h.example")
	p.makes(dm, "", "@ann:h.example", us)
	p.data["m.direct"] = object{"@ann:h.example": []string{dm}}
	return p
}

func (p *platform) Driver(t *testing.T) channel.Driver {
	t.Helper()
	d, err := matrix.Open(map[string]string{"server": p.URL}, func() (string, error) { return token + "\n", nil })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (p *platform) Place() channel.Place {
	return channel.Place{Address: team, Kind: channel.Threaded, Name: "The team"}
}

func (p *platform) Direct() channel.Place {
	return channel.Place{Address: dm, Kind: channel.Direct, Name: dm}
}

func (p *platform) People() [2]channeltest.Person {
	return [2]channeltest.Person{
		{Account: "@ann:h.example", Handle: "@ann:h.example", Name: "Ann"},
		{Account: "@bob:h.example", Handle: "@bob:h.example", Name: "Bob"},
	}
}

func (p *platform) Say(_ *testing.T, s channeltest.Saying) string {
	content := object{"msgtype": "m.text", "body": s.Text, "m.mentions": object{}}
	if s.Bot {
		content["msgtype"] = "m.notice"
	}
	if s.Mention {
		content["body"], content["m.mentions"] = "Port: "+s.Text, object{"user_ids": []string{us}}
	}
	if s.Quote != nil {
		content["body"] = "> <" + s.Quote.From + "> " + s.Quote.Text + "\n\n" + s.Text
		content["m.relates_to"] = object{"m.in_reply_to": object{"event_id": s.Quote.ID}}
	}
	if s.Thread != "" {
		content["m.relates_to"] = object{"rel_type": "m.thread", "event_id": s.Thread, "is_falling_back": true, "m.in_reply_to": object{"event_id": s.Thread}}
	}
	return p.says(s.Place.Address, "m.room.message", s.By.Account, content)
}

func (p *platform) Arrived(_ *testing.T, place string) (all []channeltest.Arrived) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := map[string]int{}
	for _, e := range p.stream {
		if e.room != place || e.data["sender"] != us || e.data["type"] != "m.room.message" {
			continue
		}
		content := e.data["content"].(object)
		a := channeltest.Arrived{ID: e.data["event_id"].(string), Text: reads(content), Calls: calls(content)}
		relation, _ := content["m.relates_to"].(object)
		switch relation["rel_type"] {
		case "m.replace":
			if i, ok := at[relation["event_id"].(string)]; ok {
				now := content["m.new_content"].(object)
				all[i].Text, all[i].Calls = reads(now), all[i].Calls || a.Calls || calls(now)
			}
			continue
		case "m.thread":
			a.Thread = relation["event_id"].(string)
		}
		at[a.ID] = len(all)
		all = append(all, a)
	}
	return all
}

// reads is a message as a client shows it.
func reads(content object) string {
	if content["format"] != nil || content["formatted_body"] != nil {
		return "formatted: " + fmt.Sprint(content["formatted_body"])
	}
	return content["body"].(string)
}

// calls reports whether a message calls somebody: by m.mentions, or where that is not there, by the words of its text.
func calls(content object) bool {
	mentions, is := content["m.mentions"].(object)
	if !is {
		return strings.ContainsAny(content["body"].(string), "@")
	}
	return mentions["room"] == true || len(fmt.Sprint(mentions["user_ids"])) > len("<nil>")
}

func (p *platform) Again(_ *testing.T, place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.stream) - 1; i >= 0; i-- {
		if e := p.stream[i]; e.room == place && e.data["type"] == "m.room.message" {
			p.put(place, e.data)
			return
		}
	}
}

func (p *platform) Edit(_ *testing.T, place, id, text string) {
	p.says(place, "m.room.message", "@ann:h.example", object{
		"msgtype": "m.text", "body": "* " + text, "m.new_content": object{"msgtype": "m.text", "body": text}, "m.relates_to": object{"rel_type": "m.replace", "event_id": id},
	})
}

func (p *platform) Rename(_ *testing.T, who channeltest.Person, name string) channeltest.Person {
	p.says(team, "m.room.member", who.Account, object{"membership": "join", "displayname": name}, who.Account)
	who.Name = name
	return who
}

func (p *platform) Limit(_ *testing.T, _ string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = wait
}

func (p *platform) Refuse(_ *testing.T, place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[place] = true
}

func (p *platform) Cut(*testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.wake()
}

func (p *platform) HasBots() {}

func TestMatrixKeepsWhatChannelsPromise(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return newPlatform(t) })
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	secret := func() (string, error) { return token, nil }
	for said, want := range map[string]string{
		"server=https://matrix.h.example": "", "server=http://127.0.0.1:8008/": "", "server=https://h.example invites=server": "",
		"": "the setting server is missing", "server=http://matrix.h.example": "for everybody to read", "server=matrix.h.example": "is no address",
		"server=https://u:p@h.example": "is no address", "server=https://h.example?a=b": "is no address", "server=https://h.example invites=some": "none of all",
		"server=https://h.example room=x": `no setting "room"`,
	} {
		settings := map[string]string{}
		for word := range strings.FieldsSeq(said) {
			name, value, _ := strings.Cut(word, "=")
			settings[name] = value
		}
		_, err := matrix.Open(settings, secret)
		if want == "" && err != nil || want != "" && (problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", said, err)
		}
	}
	if _, err := matrix.Open(map[string]string{"server": "https://h.example"}, nil); problem.KindOf(err) != problem.Usage {
		t.Errorf("without a token: %v", err)
	}
}

func TestABadTokenAsksForAPerson(t *testing.T) {
	p := newPlatform(t)
	d, err := matrix.Open(map[string]string{"server": p.URL}, func() (string, error) { return "syt_wrong", nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(t.Context(), channel.Listener{}); problem.KindOf(err) != problem.Denied || strings.Contains(err.Error(), "syt_wrong") {
		t.Errorf("%v, %v", problem.KindOf(err), err)
	}
	if _, err := d.Deliver(t.Context(), channel.Message{Place: team, Text: "x"}); !errors.Is(err, channel.ErrAway) {
		t.Errorf("without a session: %v", err)
	}
	p.Close()
	if err := d.Run(t.Context(), channel.Listener{}); problem.KindOf(err) != problem.Unavailable || strings.Contains(err.Error(), "syt_wrong") {
		t.Errorf("without a server: %v, %v", problem.KindOf(err), err)
	}
}

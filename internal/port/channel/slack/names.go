package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"sync"
	"time"
)

const (
	namesMax = 5000             // kept; then all are forgotten
	namesAge = 10 * time.Minute // then asked for again
)

// names keeps how people and places are called, by id.
type names struct {
	mu   sync.Mutex
	kept map[string]called
}

type called struct {
	name string
	at   time.Time
}

func (n *names) get(id string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.kept[id]
	return c.name, ok && time.Since(c.at) < namesAge
}

func (n *names) set(id, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept == nil || len(n.kept) >= namesMax {
		n.kept = map[string]called{}
	}
	n.kept[id] = called{name: name, at: time.Now()}
}

// profile is how a user is called.
type profile struct {
	ID      string `json:"id"`
	Handle  string `json:"name"`
	Profile struct {
		Display string `json:"display_name"`
		Real    string `json:"real_name"`
	} `json:"profile"`
}

func (p profile) name() string {
	return cmp.Or(p.Profile.Display, p.Profile.Real, p.Handle, p.ID)
}

// looksMax is how many names one event has Slack asked for. A text may have thousands, which would hold up everybody.
const looksMax = 10

// known returns a name that needs no asking: one that is kept, or the id itself when the event has asked for so many.
func (s *session) known(id string) (name string, ok bool) {
	if name, ok = s.driver.names.get(id); ok {
		return name, true
	}
	s.looks++
	return id, s.looks > looksMax
}

// user is how somebody is called; their id if Slack does not say.
func (s *session) user(ctx context.Context, id string) string {
	name, ok := s.known(id)
	if ok {
		return name
	}
	var is struct {
		User profile `json:"user"`
	}
	if s.driver.look(ctx, s.bot, "users.info", url.Values{"user": {id}}, &is) == nil {
		name = cmp.Or(is.User.name(), id)
	}
	s.driver.names.set(id, name)
	return name
}

// renamed hears that somebody is called otherwise now.
func (s *session) renamed(raw json.RawMessage) {
	var p profile
	if json.Unmarshal(raw, &p) == nil && p.ID != "" {
		s.driver.names.set(p.ID, p.name())
	}
}

// room is how a place is called; its id if Slack does not say.
func (s *session) room(ctx context.Context, id string) string {
	name, ok := s.known(id)
	if ok {
		return name
	}
	var is struct {
		Channel struct {
			Name string `json:"name"`
		} `json:"channel"`
	}
	if s.driver.look(ctx, s.bot, "conversations.info", url.Values{"channel": {id}}, &is) == nil {
		name = cmp.Or(is.Channel.Name, id)
	}
	s.driver.names.set(id, name)
	return name
}

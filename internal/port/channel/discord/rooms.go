package discord

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"sallyport/internal/port/channel"
)

const (
	roomsMax = 5000             // kept; then all are forgotten
	roomsAge = 10 * time.Minute // then asked for again
)

// room is a channel of Discord's, which a thread is too.
type room struct {
	ID     string                `json:"id"`
	Type   discordgo.ChannelType `json:"type"`
	Name   string                `json:"name"`
	Parent string                `json:"parent_id"`

	at time.Time
}

// thread says whether a room is one of another room.
func (r room) thread() bool {
	return r.Parent != "" && (r.Type == discordgo.ChannelTypeGuildNewsThread || r.Type == discordgo.ChannelTypeGuildPublicThread ||
		r.Type == discordgo.ChannelTypeGuildPrivateThread)
}

// rooms keeps what rooms are, and where people are alone with the bot.
type rooms struct {
	mu   sync.Mutex
	kept map[string]room
}

func (r *rooms) get(key string) (room, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is, ok := r.kept[key]
	return is, ok && time.Since(is.at) < roomsAge
}

func (r *rooms) set(key string, is room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= roomsMax {
		r.kept = map[string]room{}
	}
	is.at = time.Now()
	r.kept[key] = is
}

func (r *rooms) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, key)
}

// place is where something was said: a thread belongs to its room, which may have threads whether it has one now or not. with is who is
// alone there with the bot, if that is so.
func (s *session) place(ctx context.Context, id, with string) (p channel.Place, thread string, err error) {
	is, err := s.room(ctx, id)
	if err != nil {
		return p, "", err
	}
	switch {
	case is.Type == discordgo.ChannelTypeDM:
		return channel.Place{Address: id, Kind: channel.Direct, Name: with}, "", nil
	case !is.thread():
		return channel.Place{Address: id, Kind: channel.Threaded, Name: is.Name}, "", nil
	}
	of, err := s.room(ctx, is.Parent)
	return channel.Place{Address: is.Parent, Kind: channel.Threaded, Name: of.Name}, id, err
}

// room asks what a room is. One that the bot may not look at is one for itself.
func (s *session) room(ctx context.Context, id string) (room, error) {
	if is, ok := s.driver.rooms.get(id); ok {
		return is, nil
	}
	if !number().MatchString(id) {
		return room{}, errUnread
	}
	var is room
	err := s.driver.call(ctx, s.token, http.MethodGet, "/channels/"+id, nil, &is)
	if errors.Is(err, channel.ErrDead) {
		is, err = room{ID: id, Name: id}, nil
	}
	if err == nil {
		s.driver.rooms.set(id, is)
	}
	return is, err
}

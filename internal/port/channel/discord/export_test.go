package discord

import (
	"context"
	"encoding/json"
)

// Escape is a text as it is sent.
func Escape(text string) string { return escape(text) }

// Plain is a text as people read it, where one is named.
func Plain(text, id, name string) string { return plain(text, []user{{ID: id, Global: name}}) }

// Cursor reads a cursor and writes it; "" if it is none.
func Cursor(cursor string) string {
	m := parse(cursor)
	if m.id == "" {
		return ""
	}
	return m.String()
}

// Read reads a message of a room that is known.
func Read(raw json.RawMessage) {
	var m message
	if json.Unmarshal(raw, &m) != nil {
		return
	}
	s := session{driver: &driver{}, me: user{ID: "4711"}}
	s.driver.rooms.set(m.Channel, room{})
	_, _, _ = s.said(context.Background(), m, false)
	_, _, _ = s.said(context.Background(), m, true)
}

package telegram

import (
	"encoding/json"

	"github.com/go-telegram/bot/models"
)

// Read reads an update, if it can be read.
func Read(raw json.RawMessage) {
	var u models.Update
	if json.Unmarshal(raw, &u) == nil {
		event(u, models.User{ID: 4711, Username: "port_bot"})
	}
}

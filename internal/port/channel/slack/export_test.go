package slack

// Plain is a text as people read it, where everybody is called by their id.
func Plain(text string) string {
	return plain(text, func(id string) string { return "user-" + id }, func(id string) string { return "room-" + id })
}

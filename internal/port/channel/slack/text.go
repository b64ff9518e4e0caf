package slack

import (
	"context"
	"strings"

	"sallyport/internal/base/pattern"
)

var (
	// unescapes are the three letters that Slack writes otherwise.
	unescapes = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	escapes   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	links     = pattern.Of(`https?://[^\s<>"]*[^\s<>"'.,;:!?)\]}]`)
)

// calls says whether a text names a user, before it is made plain.
func calls(text, user string) bool {
	return user != "" && (strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|"))
}

// plain is a text as people read it: what stands in angle brackets is a name or a link.
func (s *session) plain(ctx context.Context, text string) string {
	return plain(text, func(id string) string { return s.user(ctx, id) }, func(id string) string { return s.room(ctx, id) })
}

func plain(text string, user, room func(id string) string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "<")
		b.WriteString(unescapes.Replace(before))
		if !ok {
			return b.String()
		}
		mark, after, ok := strings.Cut(rest, ">")
		if !ok {
			b.WriteString("<" + unescapes.Replace(rest))
			return b.String()
		}
		b.WriteString(read(mark, user, room))
		text = after
	}
}

// read is what stands between angle brackets, as people read it.
func read(mark string, user, room func(id string) string) string {
	what, label, _ := strings.Cut(mark, "|")
	label = unescapes.Replace(label)
	switch {
	case strings.HasPrefix(what, "@"):
		if label == "" {
			label = user(what[1:])
		}
		return "@" + label
	case strings.HasPrefix(what, "#"):
		if label == "" {
			label = room(what[1:])
		}
		return "#" + label
	case strings.HasPrefix(what, "!"):
		if label == "" {
			name, _, _ := strings.Cut(what[1:], "^")
			label = "@" + name
		}
		return label
	}

	address := unescapes.Replace(what)
	bare := address[strings.Index(address, ":")+1:]
	if label == "" || label == address || label == bare || label == strings.TrimPrefix(bare, "//") {
		if label != "" && strings.HasPrefix(address, "mailto:") {
			return label
		}
		return address
	}
	return label + " (" + address + ")"
}

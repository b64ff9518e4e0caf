package irc

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lrstanley/girc"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/port/channel"
)

const (
	lineMax   = 512   // of a line that is sent, with CR and LF
	readMax   = 16384 // of one that is read, with its tags
	chantypes = "#&+!"
	byAccount = "=" // before the account in the address of a place of one person: no nick has it
)

// parse reads a line; nil if it is none.
func parse(line string) *girc.Event {
	e := girc.ParseEvent(line)
	if e == nil || e.Command == "" {
		return nil
	}
	return e
}

// tag is a tag of a line as the server sent it: girc's Get decodes a second time.
func tag(e *girc.Event, name string) string { return e.Tags[name] }

// param is a parameter of a line; "" if it has not so many.
func param(e *girc.Event, i int) string {
	if i >= len(e.Params) {
		return ""
	}
	return e.Params[i]
}

// word reports whether a name can stand as one parameter that means one thing.
func word(name string) bool {
	return name != "" && len(name) <= 200 && name[0] != ':' && utf8.ValidString(name) && !strings.ContainsAny(name, ",*?!@") &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// lower folds the letters that every network folds: of names that are accounts, a and A are never two.
func lower(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// fold folds a nick or a channel as the server does, by its CASEMAPPING.
func fold(casemap, name string) string {
	name = lower(name)
	if casemap == "ascii" {
		return name
	}
	pairs := []string{"[", "{", "]", "}", "\\", "|", "^", "~"}
	if casemap == "rfc1459-strict" {
		pairs = pairs[:6]
	}
	return strings.NewReplacer(pairs...).Replace(name)
}

// colour is how IRC marks colours and styles within a text.
var colour = pattern.Of("\x03(?:[0-9]{1,2}(?:,[0-9]{1,2})?)?|\x04(?:[0-9A-Fa-f]{6}(?:,[0-9A-Fa-f]{6})?)?|[\x02\x0f\x11\x12\x16\x1d\x1e\x1f]")

// plain is a text without colours, styles and whatever else is not to be read; tabs become spaces.
func plain(text string) string {
	text = colour().ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || inert.Bidi(r):
			return -1
		}
		return r
	}, text)
}

// said is the text of a PRIVMSG as a person would write it; false if it is a request of a program (CTCP).
func said(text string) (string, bool) {
	if !strings.HasPrefix(text, "\x01") {
		return plain(text), true
	}
	action, ok := strings.CutPrefix(strings.TrimSuffix(text, "\x01"), "\x01ACTION ")
	if !ok {
		return "", false
	}
	return "/me " + plain(action), true
}

// names reports whether a text is said to a nick, as people do on IRC: "port: hello".
func names(casemap, text, nick string) bool {
	if len(text) <= len(nick) || fold(casemap, text[:len(nick)]) != fold(casemap, nick) {
		return false
	}
	return text[len(nick)] == ':' || text[len(nick)] == ','
}

// lines are what is sent of a text: each no longer than room bytes, none of them blank.
func lines(text string, room int) (all []string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	for line := range strings.SplitSeq(text, "\n") {
		for _, piece := range (channel.Can{TextMax: room}).Cut(plain(line)) {
			if strings.TrimSpace(piece) != "" {
				all = append(all, piece)
			}
		}
	}
	return all
}

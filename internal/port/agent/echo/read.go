package echo

import (
	"regexp"
	"strings"

	"sallyport/internal/base/pattern"
)

// elements are those of a batch whose text is for an agent to answer. What the host says (system) is none.
var elements = []string{"message", "task", "answer"}

// unescape undoes what a batch has escaped.
var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&")

// said is one message of a batch.
type said struct{ sender, id, text string }

// ofDev reports whether a dev agent of ours said it, by the name that the host gives one.
func (m said) ofDev() bool { return strings.HasPrefix(m.sender, "dev-") }

// Who a message is from and what it is called, as its tag says.
var (
	senderOf = pattern.Of(` sender="([^"]*)"`)
	idOf     = pattern.Of(` id="([^"]*)"`)
)

// read returns the messages of a batch, in their order, without what they quote. What is no batch is one text.
func read(batch string) (all []said) {
	_, inner, begun := strings.Cut(batch, "<messages>")
	inner, _, ended := strings.Cut(inner, "</messages>")
	if !begun || !ended {
		return append(all, said{text: strings.TrimSpace(batch)})
	}
	for {
		_, rest, more := strings.Cut(inner, "<")
		tag, body, whole := strings.Cut(rest, ">")
		if !more || !whole {
			return all
		}
		name, _, _ := strings.Cut(tag, " ")
		text, after, closed := strings.Cut(body, "</"+name+">")
		if !closed {
			return all
		}
		for _, e := range elements {
			if e == name {
				m := said{text: unescape.Replace(unquoted(text))}
				if name == "message" {
					m.sender, m.id = attribute(senderOf(), tag), attribute(idOf(), tag)
				}
				all = append(all, m)
			}
		}
		inner = after
	}
}

// attribute is what a tag says; "" if it does not.
func attribute(of *regexp.Regexp, tag string) string {
	if found := of.FindStringSubmatch(tag); found != nil {
		return unescape.Replace(found[1])
	}
	return ""
}

// unquoted is the text of a message behind what it quotes.
func unquoted(text string) string {
	if strings.HasPrefix(text, "<quoted_message") {
		if _, after, ok := strings.Cut(text, "</quoted_message>"); ok {
			return after
		}
	}
	return text
}

package discord

import (
	"strings"

	"sallyport/internal/base/pattern"
)

var (
	links   = pattern.Of(`https?://[^\s<]+[^\s<.,:;"'\])]`) // as Discord finds them
	smileys = pattern.Of(`^:[A-Za-z0-9_+~-]+:`)
	starts  = pattern.Of(`^[ \t]*([-+>#]|[0-9]+[.)])`)
	marks   = pattern.Of(`<(@!?|@&|#|a?:)([A-Za-z0-9_]+)(?::[0-9]+)?>`)
)

// escape writes a text so that people read it letter by letter. A link stays one: in it nothing is markup.
func escape(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		escapeLine(&b, line)
	}
	return b.String()
}

func escapeLine(b *strings.Builder, line string) {
	if f := starts().FindStringSubmatchIndex(line); f != nil { // a heading, a list, a quote
		b.WriteString(line[:f[3]-1] + `\` + line[f[3]-1:f[3]])
		line = line[f[3]:]
	}
	at := 0
	for _, f := range links().FindAllStringIndex(line, -1) {
		escapeWords(b, line[at:f[0]])
		b.WriteString(line[f[0]:f[1]])
		at = f[1]
	}
	escapeWords(b, line[at:])
}

func escapeWords(b *strings.Builder, text string) {
	for i, r := range text {
		switch {
		case strings.ContainsRune("\\`*_~|<[", r), r == ':' && smileys().MatchString(text[i:]):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
}

// plain is a text as people read it: people by their names, smileys by theirs.
func plain(text string, people []user) string {
	return marks().ReplaceAllStringFunc(text, func(mark string) string {
		f := marks().FindStringSubmatch(mark)
		switch f[1] {
		case "@", "@!":
			for _, u := range people {
				if u.ID == f[2] {
					return "@" + u.name()
				}
			}
		case ":", "a:":
			return ":" + f[2] + ":"
		}
		return mark
	})
}

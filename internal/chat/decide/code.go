package decide

import (
	"strings"

	"sallyport/internal/base/code"
	"sallyport/internal/base/pattern"
)

// Hushed is what is kept of words that have a code in them; hidden is what stands in its place.
const (
	Hushed = string(Confirm) + " " + hidden
	hidden = "••••"
)

// Letters that words have which were meant for a code: what was mistyped says much of it, too.
const (
	codeLeast = 8
	codeMost  = 16
)

// Code returns the code of words that confirm a trial of the host with one (SM-923), where all of them are that; like says that they are, or
// were meant to be. Words may name a card by its digits. The code itself is in no verdict: whoever does what was decided reads it here, and
// it is kept nowhere.
func Code(text string) (plain string, like bool) {
	words := strings.Fields(dashes.Replace(text))
	if len(words) > 2 && isName(words[0]) {
		words = words[1:]
	}
	if len(words) < 2 || lower(words[0]) != string(Confirm) {
		return "", false
	}
	words = words[1:]
	if n := len(words) - 1; n > 0 && isName(words[n]) && !code.Is(strings.Join(words, " ")) {
		words = words[:n]
	}
	plain = strings.Join(words, " ")
	letters := strings.NewReplacer(" ", "", "-", "").Replace(plain)
	other := func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }
	return plain, len(letters) >= codeLeast && len(letters) <= codeMost && strings.IndexFunc(letters, other) < 0
}

// dashes makes one of those that keyboards write of their own accord, or that a message is copied with.
var dashes = strings.NewReplacer("\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-", "\u00ad", "",
	"\u200b", "", "*", "", "`", "")

// isName reports whether a word can be the name of a card.
func isName(word string) bool { return len(word) == 2 && strings.Trim(word, "0123456789") == "" }

// between is what may stand between the parts of a code, however it was copied; letters is one part.
const (
	between = `[\s\p{Zs}\p{Pd}\x{2212}\x{ad}\x{200b}]{0,3}`
	dashed  = `[\s\p{Zs}]?[\p{Pd}\x{2212}\x{ad}][\s\p{Zs}]?`
	letters = `[A-HJ-NP-Z2-9]{4}`
)

// codes are those in other words: in a quote of the message that gave one, say. In small letters without dashes, what has no digit is words
// of a sentence, but where somebody says that they confirm.
var (
	codes    = pattern.Of(`^(?:` + letters + `(?:` + between + letters + `){2}|(?i:` + letters + `(?:` + dashed + letters + `){2}))$`)
	anyCodes = pattern.Of(`(?i)\b` + letters + `(?:` + between + letters + `){2}\b`)
	confirms = pattern.Of(`(?i)\b` + string(Confirm) + `\b`)
)

// Hush returns words as they are kept while somebody may know a code: without any.
func Hush(text string) string {
	if _, like := Code(text); like {
		return Hushed
	}
	confirmed := len(text)
	if at := confirms().FindStringIndex(text); at != nil {
		confirmed = at[1]
	}
	var b strings.Builder
	kept := 0 // up to here
	for from := 0; ; {
		at := anyCodes().FindStringIndex(text[from:])
		if at == nil {
			b.WriteString(text[kept:])
			return b.String()
		}
		is := text[from+at[0] : from+at[1]]
		if from+at[0] >= confirmed || strings.ContainsAny(is, "23456789") || codes().MatchString(is) {
			if from+at[0] >= kept {
				b.WriteString(text[kept:from+at[0]] + hidden)
			}
			kept = from + at[1]
		}
		from += at[0] + 1 // another may begin within it
	}
}

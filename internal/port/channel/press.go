package channel

import "strings"

// How what a press is about begins, where it names a question and not a card (CH-054, CH-072).
const (
	AboutSender   = "nsa:" // may a stranger talk
	AboutQuestion = "ncq:" // what an agent wants to know
	AboutPlace    = "nca-" // which group is a place for
)

// Word is a press as one word, which platforms hand back that keep a word with each button; "" if it is longer than so many bytes, or would
// be read as another press.
func (p Press) Word(bytesMax int) string {
	word := p.Question + ":" + p.Option
	if back := PressOf(word); len(word) > bytesMax || back == nil || *back != p {
		return ""
	}
	return word
}

// PressOf reads a word that a platform handed back; nil if it is none of ours.
func PressOf(word string) *Press {
	kind := ""
	for _, k := range []string{AboutSender, AboutQuestion} {
		if strings.HasPrefix(word, k) {
			kind = k
		}
	}
	question, option, ok := strings.Cut(word[len(kind):], ":")
	if !ok || question == "" || option == "" {
		return nil
	}
	return &Press{Question: kind + question, Option: option}
}

// Asks returns the question that a press names, and nothing of one that names a card.
func (p Press) Asks() string {
	for _, k := range []string{AboutSender, AboutQuestion, AboutPlace} {
		if of, is := strings.CutPrefix(p.Question, k); is {
			return of
		}
	}
	return ""
}

// Words returns the word of each button; nil if the card has none, or more than the platform takes, or one of them has no word: then people
// answer by typing.
func (c *Card) Words(bytesMax, countMax int) (words []string) {
	if c == nil || len(c.Options) > countMax {
		return nil
	}
	for _, o := range c.Options {
		word := Press{Question: c.Question, Option: o.Key}.Word(bytesMax)
		if word == "" {
			return nil
		}
		words = append(words, word)
	}
	return words
}

// Short is what stands on the button of an option: its label, cut to so many letters.
func (o Option) Short(lettersMax int) string {
	letters := []rune(o.Label)
	if len(letters) <= lettersMax {
		return o.Label
	}
	return string(letters[:lettersMax-1]) + "…"
}

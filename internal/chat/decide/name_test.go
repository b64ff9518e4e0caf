package decide_test

import (
	"strings"
	"testing"
	"time"

	"sallyport/internal/chat/decide"
)

// TestTheNextWordsOfWhoWasAskedForANameAreThatName holds CH-067: whole words that decide nothing else, within ten minutes, and nobody else's.
func TestTheNextWordsOfWhoWasAskedForANameAreThatName(t *testing.T) {
	place := func(digits int, asked time.Duration, change ...func(*decide.Card)) decide.Card {
		at := noon.Add(-asked)
		c := card(digits, decide.Admission, append([]func(*decide.Card){func(c *decide.Card) { c.Asked = &at }}, change...)...)
		c.Options, c.Names = []decide.Option{{Key: "agent-group-ada", Label: "ada"}, {Key: "create", Label: "Create new"}}, "create"
		return c
	}
	stranger := func(c *decide.Card) { c.Entitled = false }
	never := func(c *decide.Card) { c.Asked = nil }
	for name, c := range map[string]struct {
		text  string
		cards []decide.Card
		want  string
	}{
		"a name":                         {" Kitchen Table ", []decide.Card{place(50, time.Minute)}, "decided 50 name Kitchen Table"},
		"a name of a group":              {"ada", []decide.Card{place(50, time.Minute)}, "decided 50 choose agent-group-ada"},
		"the option once more":           {"2", []decide.Card{place(50, time.Minute)}, "decided 50 choose create"},
		"with the word before it":        {"create kitchen", []decide.Card{place(50, time.Minute)}, "decided 50 name kitchen"},
		"a word of another card":         {"confirm", []decide.Card{place(50, time.Minute), card(20, decide.Trial)}, "decided 20 confirm"},
		"none after all":                 {"Cancel", []decide.Card{place(50, time.Minute)}, "decided 50 leave"},
		"nothing":                        {"  ", []decide.Card{place(50, time.Minute)}, "talk"},
		"just in time":                   {"kitchen", []decide.Card{place(50, 10*time.Minute-1)}, "decided 50 name kitchen"},
		"too late":                       {"kitchen", []decide.Card{place(50, 10*time.Minute)}, "talk"},
		"before it was asked for":        {"kitchen", []decide.Card{place(50, -time.Second)}, "talk"},
		"somebody else":                  {"kitchen", []decide.Card{place(50, time.Minute, stranger)}, "talk"},
		"who was not asked for it":       {"kitchen", []decide.Card{place(50, time.Minute, never)}, "talk"},
		"a card that has its answer":     {"kitchen", []decide.Card{place(50, time.Minute, ended(time.Second))}, "talk"},
		"two cards, and the later one":   {"kitchen", []decide.Card{place(50, 2*time.Minute), place(51, time.Minute)}, "decided 51 name kitchen"},
		"the word, to two cards":         {"create kitchen", []decide.Card{place(50, time.Minute), place(51, time.Minute)}, "which 50 create kitchen or 51 create kitchen"},
		"two cards, the last that asked": {"kitchen", []decide.Card{place(50, time.Minute), place(51, 2*time.Minute)}, "decided 50 name kitchen"},
	} {
		w := decide.Word{Text: c.text, Received: noon}
		if got := say(decide.Decide(w, c.cards)); strings.TrimSpace(got) != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
		for how, change := range map[string]func(*decide.Word){
			"quoted": func(w *decide.Word) { w.Quoted = true }, "forwarded": func(w *decide.Word) { w.Forwarded = true },
			"edited": func(w *decide.Word) { w.Edited = true }, "a bot's": func(w *decide.Word) { w.Bot = true },
		} {
			other := w
			change(&other)
			if got := say(decide.Decide(other, c.cards)); got != "talk" {
				t.Errorf("%s, %s: %s", name, how, got)
			}
		}
	}
	w := decide.Word{Text: "kitchen", Received: noon, To: card(51, decide.Admission).ID}
	if got := say(decide.Decide(w, []decide.Card{place(50, time.Minute), place(51, 2*time.Minute)})); got != "decided 51 name kitchen" {
		t.Errorf("to a card where it stands: %s", got)
	}
}

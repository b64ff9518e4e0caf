package decide

import (
	"slices"
	"strings"
)

// row is what some words do to one kind of card.
type row struct {
	asks  Asks
	does  Does
	host  bool     // to a change of the host alone
	more  bool     // words of somebody's own may stand behind it and a colon
	words []string // in lower case; the first is the one that a person is told to say
}

// cut returns the word before a colon and what is said behind it, of words that take more; false if they are no such words.
func (r row) cut(text string) (word, more string, ok bool) {
	word, more, ok = strings.Cut(text, ":")
	word = strings.TrimSpace(word)
	return word, strings.TrimSpace(more), ok && r.more && slices.Contains(r.words, lower(word)) && strings.Trim(word, "0123456789") != ""
}

// Differently reports whether words ask for something else in what is proposed, whichever card they are for.
func Differently(w Word) bool {
	return w.own() && slices.ContainsFunc(table, func(r row) bool {
		_, _, ok := r.cut(w.Text)
		return ok && r.does == Rework
	})
}

// Backward reports whether words are those that roll a trial back, and no more.
func Backward(w Word) bool {
	return w.own() && slices.ContainsFunc(table, func(r row) bool {
		return r.does == RollBack && slices.Contains(r.words, lower(strings.TrimSpace(w.Text)))
	})
}

// goesOn reports whether words have more behind a colon, also where a card is named before them.
func goesOn(text string) bool {
	text = strings.TrimLeft(text, "0123456789 ")
	return slices.ContainsFunc(table, func(r row) bool { _, _, ok := r.cut(text); return ok })
}

// table has every word that decides an approval or a trial, and nothing else does. A word for yes is only what the card names: it is typed,
// and not said in passing. A no may be said in other words, too: nobody is harmed by one that was not meant.
var table = []row{
	{Approval, Approve, true, false, []string{"confirm host"}}, // SM-084
	{Approval, Approve, false, false, []string{"approve", "1"}},
	{Approval, Refuse, false, true, []string{"refuse", "2", "reject"}}, // SM-081
	{Approval, Rework, false, true, []string{"change"}},
	{Trial, Confirm, false, false, []string{"confirm", "1"}},                          // SM-122
	{Trial, RollBack, false, false, []string{"rollback", "2", "roll back", "revert"}}, // SM-121, SM-123
}

// Say is the word that a person is told to say for what does something to a card; host says that the card is about a change of the host.
func Say(does Does, host bool) string {
	word := string(does)
	for _, r := range table {
		if r.does == does && r.host == (host && does == Approve) {
			word = r.words[0]
		}
	}
	if host && does == Approve {
		word = strings.ToUpper(word)
	}
	return word
}

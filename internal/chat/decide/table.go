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

// Ahead returns what words want of a card that is still to come: something else in what is proposed, or that what is on trial goes back; ""
// if neither. What rolls a trial back is the word alone.
func Ahead(w Word) Does {
	if !w.own() {
		return ""
	}
	for _, r := range table {
		if _, _, more := r.cut(w.Text); more && r.does == Rework || r.does == RollBack && slices.Contains(r.words, lower(strings.TrimSpace(w.Text))) {
			return r.does
		}
	}
	return ""
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

package decide

import "strings"

// row is what some words do to one kind of card.
type row struct {
	asks  Asks
	does  Does
	host  bool     // to a change of the host alone
	words []string // in lower case; the first is the one that a person is told to say
}

// table has every word that decides an approval or a trial, and nothing else does. A word for yes is only what the card names: it is typed,
// and not said in passing. A no may be said in other words, too: nobody is harmed by one that was not meant.
var table = []row{
	{Approval, Approve, true, []string{"confirm host"}}, // SM-084
	{Approval, Approve, false, []string{"approve", "1"}},
	{Approval, Refuse, false, []string{"refuse", "2", "reject"}},               // SM-081
	{Trial, Confirm, false, []string{"confirm", "1"}},                          // SM-122
	{Trial, RollBack, false, []string{"rollback", "2", "roll back", "revert"}}, // SM-121, SM-123
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

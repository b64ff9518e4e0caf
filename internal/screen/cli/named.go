package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const (
	changeIDLength = len("chg-1a2b3c4d")
	shortestPart   = 3      // characters of an id that are looked up without its prefix
	lookedUp       = 10_000 // changes, or approvals, newest first
	namedMax       = 5      // ids that an error lists
)

// restsOn are the states of the change that a command is about when none is named.
// A command that is not here wants its change named.
var restsOn = map[string][]string{
	"approve APPROVAL|CHANGE":              {api.AwaitingApproval},
	"refuse APPROVAL|CHANGE --reason TEXT": {api.AwaitingApproval},
	"show APPROVAL|CHANGE":                 {api.AwaitingApproval},
	"confirm CHANGE":                       {api.InTrial},
	"cancel CHANGE":                        open,
	"redo CHANGE":                          {api.AwaitingApproval},
	"branch CHANGE [NAME]":                 {api.AwaitingApproval},
	"pause CHANGE":                         {api.Working},
	"resume CHANGE":                        {api.Paused, api.Blocked},
	"watch CHANGE":                         open,
	"show CHANGE":                          open,
	"diff CHANGE":                          open,
	"log CHANGE":                           open,
	"shell CHANGE":                         open,
	"list CHANGE":                          open,
	"now CHANGE":                           {api.Working, api.Paused, api.Blocked},
}

// open are the states in which something is still to happen to a change.
var open = slices.DeleteFunc(slices.Clone(states), api.Final)

// byItself are the states in which something moves by itself, and nothing is asked of anybody.
var byItself = []string{api.Requested, api.Preparing, api.Working, api.Submitted}

// onlyLook are the verbs that change nothing: of several open changes they take the one that moves by itself, if there is just one.
var onlyLook = []string{"watch", "show", "diff", "log", "list"}

// takesChange reports whether the first word of a usage line is the id of a change.
func takesChange(use string) bool {
	_, words, _ := strings.Cut(use, " ")
	first, _, _ := strings.Cut(words, " ")
	return first == "CHANGE" || first == "APPROVAL|CHANGE"
}

// unnamed reports whether the home has to be asked which change the words of a command mean: the
// id was left out, or only its beginning is there.
func unnamed(use string, words []string) bool {
	switch {
	case !takesChange(use):
		return false
	case len(words) == 0:
		return restsOn[use] != nil
	}
	return isPart(words[0])
}

// isPart reports whether a word may be the beginning of an id, and is not a whole one.
func isPart(word string) bool {
	body, prefixed := word, false
	for _, prefix := range []string{"chg-", "apr-"} {
		if rest, ok := strings.CutPrefix(word, prefix); ok {
			body, prefixed = rest, true
		}
	}
	if strings.Trim(body, "0123456789abcdefghijklmnopqrstuvwxyz") != "" || len(body) >= changeIDLength-len("chg-") {
		return false
	}
	return prefixed && body != "" || len(body) >= shortestPart
}

// wholeWords returns the words with the whole id in the place of what was left out or cut short.
func (a *app) wholeWords(ctx context.Context, use string, words []string) ([]string, error) {
	if !unnamed(use, words) {
		return words, nil
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		verb, _, _ := strings.Cut(use, " ")
		one, err := a.only(ctx, c, verb, restsOn[use])
		return []string{one}, err
	}
	whole, err := wholeID(ctx, c, words[0], strings.Contains(use, "APPROVAL"))
	if err != nil {
		return nil, err
	}
	return append([]string{whole}, words[1:]...), nil
}

// wholeChange returns the id of the change that a word names: whole, or by its beginning.
func wholeChange(ctx context.Context, a *app, word string) (string, error) {
	words, err := a.wholeWords(ctx, "show CHANGE", []string{word})
	if err != nil {
		return "", err
	}
	_, err = id.ParseChange(words[0])
	return words[0], err
}

// only returns the one change that a command can be about: of several, that of the repository in which the person stands. One of another
// repository is only looked at there; one of a group is meant anywhere. None and several are two answers.
func (a *app) only(ctx context.Context, c *client.Client, verb string, states []string) (string, error) {
	rows, err := client.Call(ctx, c, api.ChangeList, api.Filter{States: states, Limit: lookedUp})
	if err != nil {
		return "", err
	}
	where, here := "", here(a)
	if near := ofHere(here, rows); len(rows) > 1 && len(near) > 0 {
		rows, where = near, " of this repository"
	}
	rests := func(r api.Change) bool { return !slices.Contains(byItself, r.State) }
	if moving := slices.DeleteFunc(slices.Clone(rows), rests); len(moving) == 1 && slices.Contains(onlyLook, verb) {
		rows = moving
	}
	switch len(rows) {
	case 0:
		more, next := "", "sallyport change list"
		if verb == "rollback" && slices.Equal(states, []string{api.InTrial}) {
			more, next = "; one that has landed has to be named", "sallyport rollback --list"
		}
		return "", problem.Errorf(problem.NotFound, next, "%s needs a change, and none is %s%s", verb, either(states), more)
	case 1:
		one, at := rows[0], ""
		if one.Group == "" && one.Repo != here {
			at = " (in " + inert.Path(one.Repo) + ")"
		}
		if at != "" && here != "" && !slices.Contains(onlyLook, verb) {
			return "", problem.Errorf(problem.NotFound, "sallyport change show "+one.ID,
				"no change of this repository is %s; to mean %s%s, name it", either(states), one.ID, at)
		}
		if !a.json {
			fmt.Fprintf(a.Err, "%s %s%s\n", one.ID, wish(one), at)
		}
		return one.ID, nil
	}
	return "", problem.Errorf(problem.Usage, "sallyport status", "%d changes%s could be meant by %s; name one: %s", len(rows), where, verb, listed(rows))
}

// here is the repository in which the person stands; "" if they stand in none.
func here(a *app) string {
	dir, err := a.Dir()
	if err != nil {
		return ""
	}
	at, err := top(dir)
	if err != nil {
		return ""
	}
	return at
}

// ofHere are those of a repository; none of "".
func ofHere(here string, rows []api.Change) []api.Change {
	if here == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r api.Change) bool { return r.Repo != here })
}

// either joins the states of open changes in words.
func either(of []string) string {
	if len(of) == len(open) {
		return "under way"
	}
	var words []string
	for _, state := range of {
		words = append(words, api.Words(state))
	}
	return strings.Join(words, " or ")
}

func listed(rows []api.Change) string {
	var names []string
	for i, r := range rows {
		if i == namedMax {
			names = append(names, fmt.Sprintf("and %d more", len(rows)-namedMax))
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", r.ID, clip(wish(r), 40)))
	}
	return strings.Join(names, ", ")
}

// wholeID returns the id that begins with part. A part that begins none is refused.
func wholeID(ctx context.Context, c *client.Client, part string, approvals bool) (string, error) {
	var found []string
	add := func(id, prefix string) {
		if strings.HasPrefix(id, part) || strings.HasPrefix(id, prefix+part) {
			found = append(found, id)
		}
	}
	rows, err := client.Call(ctx, c, api.ChangeList, api.Filter{Limit: lookedUp})
	if err != nil {
		return "", err
	}
	for _, r := range rows {
		add(r.ID, "chg-")
	}
	if approvals {
		asked, err := client.Call(ctx, c, api.ApprovalList, api.Waiting{Limit: lookedUp})
		if problem.KindOf(err) == problem.Usage { // an earlier release, which lists the newest hundred
			asked, err = client.Call(ctx, c, api.ApprovalList, api.Waiting{})
		}
		if err != nil {
			return "", err
		}
		for _, q := range asked {
			add(q.ID, "apr-")
		}
	}
	switch len(found) {
	case 0:
		what := "change"
		if approvals {
			what = "change or approval"
		}
		return "", problem.Errorf(problem.Usage, "sallyport change list", "no %s has an id that begins with %q", what, part)
	case 1:
		return found[0], nil
	}
	more := ""
	if len(found) > namedMax {
		more = fmt.Sprintf(", and %d more", len(found)-namedMax)
	}
	return "", problem.Errorf(problem.Usage, "sallyport change list", "%q begins %d ids: %s%s", part, len(found),
		strings.Join(found[:min(len(found), namedMax)], ", "), more)
}

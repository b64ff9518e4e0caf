// Package wiring says which groups hear what is said in a conversation. It is pure: a conversation's wirings, who speaks and what they say
// in; what each group does with it out, with the reason.
package wiring

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/who/group"
)

// Mode is what makes a group answer (CH-001).
type Mode string

const (
	Pattern Mode = "pattern"        // the text matches
	Mention Mode = "mention"        // the group is named, or the assistant's account is
	Sticky  Mode = "mention-sticky" // as Mention, and from then on all that is said in that thread (CH-017)
)

// Scope is who a group listens to (CH-003).
type Scope string

const (
	All   Scope = "all"
	Known Scope = "known" // its members, and who stands higher
)

// Ignored is what becomes of what a group does not answer (CH-004).
type Ignored string

const (
	Drop       Ignored = "drop"
	Accumulate Ignored = "accumulate" // it is context for the next turn
)

// Always is the pattern that every message matches, also one without text (CH-007).
const Always = "."

// patternMax is the longest pattern, in characters.
const patternMax = 1000

// Wiring has a group hear a conversation.
type Wiring struct {
	Conversation id.Conversation `json:"conversation"`
	Group        group.Folder    `json:"group"`
	Mode         Mode            `json:"engage_mode"`
	Pattern      string          `json:"engage_pattern,omitempty"`
	Scope        Scope           `json:"sender_scope"`
	Ignored      Ignored         `json:"ignored_message_policy"`
	Created      time.Time       `json:"created"`
}

// New returns the wiring that a conversation of a kind begins with (CH-018).
func New(of id.Conversation, kind conversation.Kind, g group.Folder, at time.Time) Wiring {
	w := Wiring{Conversation: of, Group: g, Mode: Mention, Scope: All, Ignored: Drop, Created: at}
	switch kind {
	case conversation.Direct:
		w.Mode, w.Pattern = Pattern, Always
	case conversation.Threaded:
		w.Mode = Sticky
	}
	return w
}

// Check refuses what cannot be saved. Errors: problem.Usage.
func (w Wiring) Check() error {
	bad := func(text string, args ...any) error {
		return problem.Errorf(problem.Usage, "sallyport wiring set --help", text, args...)
	}
	switch {
	case w.Mode != Pattern && w.Mode != Mention && w.Mode != Sticky:
		return bad("%q is no engage mode: pattern, mention or mention-sticky", inert.Short(string(w.Mode), 40))
	case w.Scope != All && w.Scope != Known:
		return bad("%q is no sender scope: all or known", inert.Short(string(w.Scope), 40))
	case w.Ignored != Drop && w.Ignored != Accumulate:
		return bad("%q is no policy for ignored messages: drop or accumulate", inert.Short(string(w.Ignored), 40))
	case w.Mode == Pattern && w.Pattern == "":
		return bad("engage mode pattern needs a pattern; %q matches every message", Always)
	case w.Mode != Pattern && w.Pattern != "":
		return bad("engage mode %s has no pattern", w.Mode)
	case utf8.RuneCountInString(w.Pattern) > patternMax:
		return bad("the pattern has %d characters; %d is the limit", utf8.RuneCountInString(w.Pattern), patternMax)
	}
	if w.Mode == Pattern {
		if _, err := regexp.Compile(w.Pattern); err != nil {
			return bad("%q is no pattern: %w", inert.Short(w.Pattern, 80), err)
		}
	}
	return nil
}

// Place is a conversation with its wirings, ready to route. It never changes.
type Place struct {
	kind   conversation.Kind
	policy conversation.Policy
	heard  []listener // in the order in which they were wired
}

// listener is one wiring, with its pattern compiled.
type listener struct {
	Wiring
	matches *regexp.Regexp // nil: every text does
	broken  error          // why it engages on nothing
}

// Compile makes a conversation ready to route. A wiring whose pattern is none engages on nothing; Broken tells of it (CH-007).
func Compile(kind conversation.Kind, policy conversation.Policy, wirings []Wiring) Place {
	p := Place{kind: kind, policy: policy}
	for _, w := range wirings {
		l := listener{Wiring: w}
		if l.broken = w.Check(); l.broken == nil && w.Mode == Pattern && w.Pattern != Always {
			l.matches = regexp.MustCompile(w.Pattern)
		}
		p.heard = append(p.heard, l)
	}
	return p
}

// Broken returns why a group engages on nothing that is said here, by its folder.
func (p Place) Broken() map[group.Folder]error {
	all := map[group.Folder]error{}
	for _, l := range p.heard {
		if l.broken != nil {
			all[l.Group] = l.broken
		}
	}
	return all
}

// Groups are those that hear this conversation, in the order in which they were wired.
func (p Place) Groups() (all []group.Folder) {
	for _, l := range p.heard {
		all = append(all, l.Group)
	}
	return all
}

// Mentions reports whether a text begins with @ and one of the names, in any case and up to a word boundary (CH-132). A name stands for
// itself, whatever characters it has.
func Mentions(text string, names ...string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "@")
	return ok && slices.ContainsFunc(names, func(name string) bool {
		at := 0
		for range name {
			_, size := utf8.DecodeRuneInString(rest[at:])
			at += size
		}
		next, _ := utf8.DecodeRuneInString(rest[at:])
		return name != "" && strings.EqualFold(rest[:at], name) && (at == len(rest) || next != '_' && !unicode.IsLetter(next) && !unicode.IsDigit(next))
	})
}

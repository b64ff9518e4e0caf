// Package channel is how a platform is spoken with: what people say there comes in as events, and messages go out. A driver below it speaks
// with one platform; the host decides what becomes of what was said.
//
// What a driver promises, channeltest holds: events of one place come in the order in which they were said, each until it was taken; a
// message arrives as text, whatever it holds; and an error says whether trying again helps.
package channel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Kind is what a place is.
type Kind string

const (
	Direct   Kind = "direct"   // one person
	Group    Kind = "group"    // many, in one stream
	Threaded Kind = "threaded" // many, in threads
)

// Place is a conversation as its platform has it.
type Place struct {
	Address string // the same one for ever
	Kind    Kind
	Name    string // a label: shown, never compared
}

// Sender is who said something.
type Sender struct {
	Account string // as the platform authenticates it, the same one for ever; "" = it does not say who that is
	Handle  string // by which the place knows them now: a nick; the account where there is none
	Name    string // a label: shown, never compared
	Bot     bool   // a program
}

// Quote is what somebody answers to.
type Quote struct {
	ID   string // of the platform
	From string // a label
	Text string
}

// Press is a button of a card that somebody pressed.
type Press struct {
	Question string // as Card.Question had it; whatever the platform sent, checked by the host
	Option   string // as Option.Key had it
}

// Event is one thing that somebody said, or a button that they pressed.
type Event struct {
	ID        string // of the platform, within its place: an event that comes again has the same; "" = the platform has none
	Place     Place
	Thread    string // "" = none
	Sender    Sender
	Text      string
	Mention   bool // the platform says that the assistant's account is meant
	Quote     *Quote
	Forwarded bool
	Edited    bool // it is another text of what was said before
	Press     *Press
	At        time.Time // by the platform's clock; zero = it does not say
	Came      time.Time // by our clock: it had been said by then, though it may be handed over much later; zero = when it is handed over
	Cursor    string    // from here on the platform goes on, once this was taken; "" = it stays
}

// Option is a button.
type Option struct{ Key, Label string }

// Card is what a message asks. Its text has the options in words: who sees no buttons answers by typing.
type Card struct {
	Question string
	Options  []Option // none: it was answered, and cannot be any more
}

// Message is what goes out, in one piece.
type Message struct {
	Place   string // address
	Thread  string
	Account string // who alone is meant, in a direct place: not sent unless the platform says that they are there; "" = whoever is
	Nonce   string // the same for each try
	Text    string // what people are to read, letter by letter: nothing in it is markup, and it calls nobody
	Card    *Card
	ReplyTo string // id of an event; "" = none
}

// Can is what a platform takes.
type Can struct {
	Buttons bool
	Threads bool
	Edits   bool // Update works
	Direct  bool // Direct works
	History bool // what is said while nobody listens comes afterwards
	Roots   bool // the id of a message in a threaded place names the thread that begins with it
	// Before reports whether of two messages in one place, by their ids, the platform had the first one first; false where an id does not say.
	// nil: no id of the platform says when it came.
	Before func(first, second string) bool

	TextMax int                   // longest text of one message, by Length
	Length  func(text string) int // nil: bytes
}

// Self is the assistant's account on the platform.
type Self struct {
	Account string
	Names   []string // by which people mention it
}

// Listener is the host's side of a session with a platform.
type Listener struct {
	// Cursor is where the last session had come to; "" = nowhere.
	Cursor string
	// Ready is called once the platform knows the account, and again when the account's names change.
	Ready func(Self)
	// Take hands over an event. It may be called from several goroutines, but for one place in order. Once it returns nil the event is kept,
	// and the platform may hear so; with an error it is not, and it is handed over again.
	Take func(ctx context.Context, e Event) error
	// Move is called with a cursor that no event has.
	Move func(ctx context.Context, cursor string) error
	// Lost is called when what was said meanwhile cannot be had any more, and says of which place; "" = of all.
	Lost func(ctx context.Context, place string)
}

// Driver speaks with one platform as one account.
type Driver interface {
	// Can says what the platform takes, also before Run.
	Can() Can
	// Run listens until ctx ends, and then returns nil. It returns an error when the session is lost, which says why; who calls it again
	// connects anew. An error with problem.Denied or problem.Refused is not mended by that: a person has to do something.
	Run(ctx context.Context, l Listener) error
	// Deliver sends a message, and returns the platform's id of it. Messages to one place and thread are given one after the other.
	// Errors: ErrDead; *Later; else it is tried again.
	Deliver(ctx context.Context, m Message) (id string, err error)
	// Update has a message that was delivered show something else. Errors: as Deliver.
	Update(ctx context.Context, id string, m Message) error
	// Direct returns the address of the direct place of an account. Errors: ErrDead if there is none.
	Direct(ctx context.Context, account string) (address string, err error)
}

// ErrDead says that a message will never arrive: the place is gone, or the platform does not take such a one.
var ErrDead = problem.New(problem.Refused, "the platform does not take it")

// ErrAway says that there is no session with the platform at the moment.
var ErrAway = problem.New(problem.Unavailable, "the platform is not connected")

// Later says that the platform takes nothing before a time (Retry-After).
type Later struct {
	Until time.Time
	All   bool // in no place; else in this one alone
}

func (l *Later) Error() string {
	return fmt.Sprintf("the platform takes nothing before %s", l.Until.UTC().Format(time.RFC3339))
}

// Setting is one thing that a person says of a channel.
type Setting struct {
	Name     string
	About    string // one line, for help
	Required bool
	Default  string // "" = none
}

// Check refuses settings that a platform has not, and fills in what is not said. Errors: problem.Usage.
func Check(known []Setting, said map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range known {
		value := cmp.Or(said[s.Name], s.Default)
		if value == "" && s.Required {
			return nil, problem.Errorf(problem.Usage, "sallyport channel add --help", "the setting %s is missing: %s", s.Name, s.About)
		}
		all[s.Name] = value
	}
	for name := range said {
		if !slices.ContainsFunc(known, func(s Setting) bool { return s.Name == name }) {
			return nil, problem.Errorf(problem.Usage, "sallyport channel add --help", "this platform has no setting %q", inert.Short(name, 40))
		}
	}
	return all, nil
}

// Package channeltest holds what every channel promises, and has a platform in memory that does what the worst of them do.
package channeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/port/channel"
)

// Person is somebody on a platform.
type Person struct {
	Account string // as the driver is to report it; "" = the platform does not say who that is
	Handle  string
	Name    string
}

// Saying is what somebody says.
type Saying struct {
	By        Person
	Place     channel.Place
	Thread    string
	Text      string
	Mention   bool // by the platform's own means
	Quote     *channel.Quote
	Forwarded bool
	Bot       bool
}

// Arrived is a message as people see it on the platform.
type Arrived struct {
	ID      string
	Thread  string
	Text    string // as it is read: without the escapes of the platform's markup
	Buttons []channel.Option
	Calls   bool // it calls everybody, or somebody
}

// Platform is a platform with one account of the assistant's, real or made from its documentation.
type Platform interface {
	// Driver returns a new one for the account, as a host has that was started again.
	Driver(t *testing.T) channel.Driver
	// Place is one where several people are, and the assistant; Direct is one with a person alone.
	Place() channel.Place
	Direct() channel.Place
	// People are two who may speak in Place; the first is the one of Direct.
	People() [2]Person
	// Say has somebody say something, and returns the platform's id.
	Say(t *testing.T, s Saying) string
	// Arrived returns what the assistant has sent to a place, oldest first, as it stands now.
	Arrived(t *testing.T, place string) []Arrived
}

// What platforms are made to do where they can. A platform that has not the method is not held to it.
type (
	// Again hands over once more what was handed over last in a place.
	Again interface {
		Again(t *testing.T, place string)
	}
	// Editor has a person edit what they said.
	Editor interface {
		Edit(t *testing.T, place, id, text string)
	}
	// Renamer gives a person another name, and where there are nicks another nick.
	Renamer interface {
		Rename(t *testing.T, p Person, name string) Person
	}
	// Presser has somebody press a button.
	Presser interface {
		Press(t *testing.T, place, message string, p Person, option string)
	}
	// Limiter refuses what comes next, and says when to come again.
	Limiter interface {
		Limit(t *testing.T, place string, wait time.Duration)
	}
	// Refuser refuses all that comes to a place, for ever.
	Refuser interface {
		Refuse(t *testing.T, place string)
	}
	// Forwarder says that people forward there, and Bots that programs speak.
	Forwarder interface{ Forwards() }
	Bots      interface{ HasBots() }
	// NoQuotes says that nobody quotes there: who repeats what another said, forwards it.
	NoQuotes interface{ NoQuotes() }
	// Cutter cuts the connection.
	Cutter interface{ Cut(t *testing.T) }
)

// patience is how long the suite waits for what must come; it is long because machines are slow.
const patience = time.Minute

// host is the host's side of a driver.
type host struct {
	t      *testing.T
	driver channel.Driver

	mu      sync.Mutex
	events  []channel.Event
	self    channel.Self
	readies int
	cursor  string
	lost    []string
	refuse  int // so many events are not taken
	moved   chan struct{}
	stop    func() error
}

// listen runs a driver from a cursor on as the host does, anew when a session is lost, until the test ends or stop is called. It waits
// until the driver is ready.
func listen(t *testing.T, p Platform, cursor string) *host {
	t.Helper()
	h := &host{t: t, driver: p.Driver(t), cursor: cursor, moved: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.run(ctx) }()
	var once sync.Once
	h.stop = func() (err error) {
		once.Do(func() {
			cancel()
			select {
			case err = <-done:
			case <-time.After(patience):
				t.Error("Run does not end when it is told to")
			}
		})
		return err
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("told to end: %v", err)
		}
	})
	h.readyAgain(1)
	return h
}

// lostMax is how many sessions a driver may lose.
const lostMax = 20

func (h *host) run(ctx context.Context) error {
	for range lostMax {
		h.mu.Lock()
		l := channel.Listener{Cursor: h.cursor, Ready: h.ready, Take: h.take, Move: h.move, Lost: h.miss}
		h.mu.Unlock()
		err := h.driver.Run(ctx, l)
		if ctx.Err() != nil {
			return err
		}
		if err == nil {
			h.t.Error("the session ended, and nothing says why")
		}
		h.t.Logf("the session is lost: %v", err)
	}
	h.t.Errorf("%d sessions were lost", lostMax)
	<-ctx.Done()
	return nil
}

func (h *host) ready(s channel.Self) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.self, h.readies = s, h.readies+1
	h.tell()
}

// readyAgain waits until the driver has been ready so many times.
func (h *host) readyAgain(times int) {
	h.t.Helper()
	h.await("the session", func([]channel.Event) bool { return h.readies >= times })
}

func (h *host) move(_ context.Context, cursor string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cursor = cursor
	return nil
}

func (h *host) miss(_ context.Context, place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = append(h.lost, place)
	h.tell()
}

func (h *host) take(_ context.Context, e channel.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse > 0 {
		h.refuse--
		return errors.New("not now")
	}
	h.events = append(h.events, e)
	if e.Cursor != "" {
		h.cursor = e.Cursor
	}
	h.tell()
	return nil
}

func (h *host) tell() {
	select {
	case h.moved <- struct{}{}:
	default:
	}
}

// await returns what was said once good is true of it; good is called with mu held.
func (h *host) await(what string, good func([]channel.Event) bool) []channel.Event {
	h.t.Helper()
	limit := time.After(patience)
	for {
		h.mu.Lock()
		all := slices.Clone(h.events)
		ok := good(all)
		h.mu.Unlock()
		if ok {
			return all
		}
		select {
		case <-h.moved:
		case <-limit:
			h.t.Fatalf("%s did not come; %d events: %+v", what, len(all), all)
		}
	}
}

// said waits for a text, and returns its event.
func (h *host) said(text string) channel.Event {
	h.t.Helper()
	is := func(e channel.Event) bool { return e.Text == text }
	all := h.await(fmt.Sprintf("%q", text), func(all []channel.Event) bool { return slices.ContainsFunc(all, is) })
	return all[slices.IndexFunc(all, is)]
}

// deliver sends a message, which must arrive.
func (h *host) deliver(m channel.Message) string {
	h.t.Helper()
	id, err := h.driver.Deliver(h.t.Context(), m)
	if err != nil {
		h.t.Fatalf("deliver %.60q: %v", m.Text, err)
	}
	return id
}

// arrives waits for the nth message to a place, from 1, and returns all.
func arrives(t *testing.T, p Platform, place string, n int) []Arrived {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		all := p.Arrived(t, place)
		if len(all) >= n {
			return all
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d messages arrived, not %d: %+v", len(all), n, all)
		}
	}
}

// Run holds a driver to what every channel promises. open makes a platform of its own for each part.
func Run(t *testing.T, open func(t *testing.T) Platform) {
	for name, part := range map[string]func(*testing.T, Platform){
		"what is said comes as it was said":          comes,
		"what is said in one place comes in order":   ordered,
		"a thing that was not taken comes again":     retaken,
		"who speaks is who the platform says":        recognized,
		"an account that is renamed is the same":     renamed,
		"a quote, a forward and a bot are told":      marked,
		"what was handed over comes again as itself": redelivered,
		"an edit is told":                            edited,
		"a message arrives letter by letter":         letters,
		"a message calls nobody":                     callsNobody,
		"messages arrive in order":                   arrivesInOrder,
		"the longest message arrives whole":          longest,
		"a card has its buttons":                     buttons,
		"a button is pressed":                        pressed,
		"a card that is answered shows it":           updated,
		"a direct place is found":                    direct,
		"what came first is known":                   first,
		"a limit says until when":                    limited,
		"a place that refuses is dead":               refused,
		"what was said meanwhile comes, or is lost":  meanwhile,
		"a cut ends the session":                     cut,
	} {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

func comes(t *testing.T, p Platform) {
	h := listen(t, p, "")
	who, place := p.People()[0], p.Place()
	text := "hello <b>&amp; *there* `x` [y](z) \"q\" \\ @everyone #1 é日😀"
	id := p.Say(t, Saying{By: who, Place: place, Text: text})
	e := h.said(text)
	if e.ID != id || e.Place != place || e.Thread != "" || e.Edited || e.Forwarded || e.Quote != nil || e.Press != nil || e.Mention || e.Sender.Bot {
		t.Errorf("%+v, of %q in %+v", e, id, place)
	}
	p.Say(t, Saying{By: who, Place: p.Direct(), Text: "for you alone"})
	if e := h.said("for you alone"); e.Place.Kind != channel.Direct || e.Place.Address != p.Direct().Address {
		t.Errorf("direct: %+v", e)
	}
	p.Say(t, Saying{By: who, Place: place, Text: "what do you think", Mention: true})
	h.await("a mention", func(all []channel.Event) bool {
		return slices.ContainsFunc(all, func(e channel.Event) bool { return e.Mention && strings.Contains(e.Text, "what do you think") })
	})
	if h.driver.Can().Threads {
		p.Say(t, Saying{By: who, Place: place, Thread: id, Text: "in its thread"})
		if e := h.said("in its thread"); e.Thread == "" || e.Place.Address != place.Address {
			t.Errorf("in a thread: %+v", e)
		}
	}
}

func ordered(t *testing.T, p Platform) {
	h := listen(t, p, "")
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("number %d", i))
		p.Say(t, Saying{By: p.People()[i%2], Place: p.Place(), Text: want[i]})
	}
	var got []string
	for _, e := range h.await("30 sayings", func(all []channel.Event) bool { return len(all) >= len(want) }) {
		got = append(got, e.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("it came as %q", got)
	}
}

func retaken(t *testing.T, p Platform) {
	h := listen(t, p, "")
	h.mu.Lock()
	h.refuse = 2
	h.mu.Unlock()
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "first"})
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "second"})
	all := h.await("both", func(all []channel.Event) bool { return len(all) >= 2 })
	if all[0].Text != "first" || all[1].Text != "second" {
		t.Errorf("it came as %q, %q", all[0].Text, all[1].Text)
	}
}

func recognized(t *testing.T, p Platform) {
	h := listen(t, p, "")
	for i, who := range p.People() {
		text := fmt.Sprintf("I am number %d", i)
		p.Say(t, Saying{By: who, Place: p.Place(), Text: text})
		if e := h.said(text); e.Sender.Account != who.Account || e.Sender.Handle != who.Handle || e.Sender.Name != who.Name {
			t.Errorf("%+v is %+v", who, e.Sender)
		}
	}
}

func renamed(t *testing.T, p Platform) {
	r, ok := p.(Renamer)
	if !ok {
		t.Skip("the platform has no names to change")
	}
	h := listen(t, p, "")
	who := p.People()[1]
	now := r.Rename(t, who, "mallory")
	p.Say(t, Saying{By: now, Place: p.Place(), Text: "it is me"})
	if e := h.said("it is me"); e.Sender.Account != who.Account || e.Sender.Name != now.Name {
		t.Errorf("%+v came as %+v, was %+v", now, e.Sender, who)
	}
}

func marked(t *testing.T, p Platform) {
	h := listen(t, p, "")
	who, other := p.People()[0], p.People()[1]
	if _, ok := p.(NoQuotes); !ok {
		quoted(t, p, h)
	}
	if _, ok := p.(Forwarder); ok {
		p.Say(t, Saying{By: who, Place: p.Place(), Text: "I forward", Forwarded: true})
		if e := h.said("I forward"); !e.Forwarded {
			t.Errorf("a forward came as %+v", e)
		}
	}
	if _, ok := p.(Bots); ok {
		p.Say(t, Saying{By: other, Place: p.Place(), Text: "I am a program", Bot: true})
		if e := h.said("I am a program"); !e.Sender.Bot {
			t.Errorf("a program came as %+v", e)
		}
	}
}

func quoted(t *testing.T, p Platform, h *host) {
	who, other := p.People()[0], p.People()[1]
	id := p.Say(t, Saying{By: other, Place: p.Place(), Text: "confirm"})
	first := h.said("confirm")
	p.Say(t, Saying{By: who, Place: p.Place(), Text: "I quote", Quote: &channel.Quote{ID: id, From: other.Name, Text: "confirm"}})
	e := h.said("I quote")
	if id != "" && (e.Quote == nil || e.Quote.ID != first.ID) {
		t.Errorf("a quote came as %+v", e)
	}
	if e.Quote != nil && e.Quote.Text != "" && e.Quote.Text != "confirm" {
		t.Errorf("what is quoted came as %q", e.Quote.Text)
	}
}

func redelivered(t *testing.T, p Platform) {
	again, ok := p.(Again)
	if !ok {
		t.Skip("the platform hands nothing over twice")
	}
	h := listen(t, p, "")
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "once"})
	h.said("once")
	again.Again(t, p.Place().Address)
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "after"})
	h.said("after")
	ids := map[string]bool{}
	for _, e := range h.await("once", func([]channel.Event) bool { return true }) {
		if e.Text == "once" {
			ids[e.ID] = true
		}
	}
	if len(ids) != 1 || ids[""] {
		t.Errorf("one saying has the names %v", ids)
	}
}

func edited(t *testing.T, p Platform) {
	editor, ok := p.(Editor)
	if !ok {
		t.Skip("nobody edits what they said there")
	}
	h := listen(t, p, "")
	id := p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "yes"})
	h.said("yes")
	editor.Edit(t, p.Place().Address, id, "confirm")
	if e := h.said("confirm"); !e.Edited || e.ID == id {
		t.Errorf("an edit came as %+v", e)
	}
}

// odd is a text with all that platforms take for markup.
const odd = "a <b>bold</b> & *b* _c_ ~d~ `e` ||f|| [g](http://h.example) > i # j - k \\ \"l\" :smile: {m} |n| é日😀"

func letters(t *testing.T, p Platform) {
	h := listen(t, p, "")
	h.deliver(channel.Message{Place: p.Place().Address, Nonce: "n1", Text: odd})
	if got := arrives(t, p, p.Place().Address, 1)[0]; got.Text != odd {
		t.Errorf("it reads\n%s\nnot\n%s", got.Text, odd)
	}
	h.deliver(channel.Message{Place: p.Place().Address, Nonce: "n2", Text: "two\nlines\n\nand a gap"})
	all := arrives(t, p, p.Place().Address, 2)
	var lines []string
	for _, a := range all[1:] {
		lines = append(lines, strings.Split(a.Text, "\n")...)
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
	if len(lines) > 0 && lines[0] == "two" && len(lines) < 3 {
		all = arrives(t, p, p.Place().Address, 4) // a line is a message there
		lines = []string{all[1].Text, all[2].Text, all[3].Text}
	}
	if !slices.Equal(lines, []string{"two", "lines", "and a gap"}) {
		t.Errorf("the lines are %q", lines)
	}
}

func callsNobody(t *testing.T, p Platform) {
	h := listen(t, p, "")
	who := p.People()[0]
	for i, text := range []string{"@everyone @here @channel @room", "<!channel> <!here> <@" + who.Account + "> <@!" + who.Account + ">",
		"@" + who.Handle + " @" + who.Name} {
		h.deliver(channel.Message{Place: p.Place().Address, Nonce: fmt.Sprint(i), Text: text})
		if got := arrives(t, p, p.Place().Address, i+1)[i]; got.Calls {
			t.Errorf("%q calls: %+v", text, got)
		}
	}
}

func arrivesInOrder(t *testing.T, p Platform) {
	h := listen(t, p, "")
	for i := range 10 {
		h.deliver(channel.Message{Place: p.Place().Address, Nonce: fmt.Sprint(i), Text: fmt.Sprintf("number %d", i)})
	}
	for i, a := range arrives(t, p, p.Place().Address, 10) {
		if a.Text != fmt.Sprintf("number %d", i) {
			t.Errorf("number %d is %q", i, a.Text)
		}
	}
}

func longest(t *testing.T, p Platform) {
	h := listen(t, p, "")
	text := strings.Repeat("word <&> é😀 ", 2000)
	pieces := h.driver.Can().Cut(text)
	if len(pieces) > 3 {
		pieces = pieces[:3]
	}
	for i, piece := range pieces {
		h.deliver(channel.Message{Place: p.Place().Address, Nonce: fmt.Sprint(i), Text: piece})
	}
	for i, a := range arrives(t, p, p.Place().Address, len(pieces)) {
		if a.Text != pieces[i] {
			t.Errorf("piece %d of %d bytes arrived as %d bytes", i, len(pieces[i]), len(a.Text))
		}
	}
}

// card is one that asks something.
func card(place string) channel.Message {
	return channel.Message{
		Place: place, Nonce: "card", Text: "May it land?\n1. approve\n2. refuse",
		Card: &channel.Card{Question: "qst-0000abcd", Options: []channel.Option{{Key: "approve", Label: "approve"}, {Key: "refuse", Label: "refuse"}}},
	}
}

func buttons(t *testing.T, p Platform) {
	h := listen(t, p, "")
	if id := h.deliver(card(p.Place().Address)); id == "" && h.driver.Can().Edits {
		t.Error("a card that can be edited has no name")
	}
	all := arrives(t, p, p.Place().Address, 1)
	var text []string
	var found []channel.Option
	for _, a := range all {
		text, found = append(text, a.Text), append(found, a.Buttons...)
	}
	if !h.driver.Can().Buttons && all[0].Text != card("").Text { // a line is a message there
		all = arrives(t, p, p.Place().Address, 3)
		text = []string{all[0].Text, all[1].Text, all[2].Text}
	}
	if got := strings.Join(text, "\n"); got != card("").Text {
		t.Errorf("the card reads %q", got)
	}
	if h.driver.Can().Buttons && !slices.Equal(found, card("").Card.Options) || !h.driver.Can().Buttons && len(found) > 0 {
		t.Errorf("its buttons are %+v", found)
	}
}

func pressed(t *testing.T, p Platform) {
	presser, ok := p.(Presser)
	if !ok {
		t.Skip("the platform has no buttons")
	}
	h := listen(t, p, "")
	h.deliver(card(p.Place().Address))
	a := arrives(t, p, p.Place().Address, 1)[0]
	who := p.People()[1]
	presser.Press(t, p.Place().Address, a.ID, who, "refuse")
	e := h.await("the press", func(all []channel.Event) bool { return len(all) > 0 })[0]
	if e.Press == nil || *e.Press != (channel.Press{Question: "qst-0000abcd", Option: "refuse"}) || e.Sender.Account != who.Account ||
		e.Place.Address != p.Place().Address {
		t.Errorf("a press came as %+v, %+v", e, e.Press)
	}
	presser.Press(t, p.Place().Address, a.ID, who, "refuse")
	all := h.await("the second press", func(all []channel.Event) bool { return len(all) > 1 })
	if all[1].ID == e.ID && e.ID != "" {
		t.Error("two presses have one name")
	}
}

func updated(t *testing.T, p Platform) {
	h := listen(t, p, "")
	if !h.driver.Can().Edits {
		t.Skip("the platform edits no messages")
	}
	id := h.deliver(card(p.Place().Address))
	arrives(t, p, p.Place().Address, 1)
	if err := h.driver.Update(t.Context(), id, channel.Message{Place: p.Place().Address, Text: "ann approved it",
		Card: &channel.Card{Question: "qst-0000abcd"}}); err != nil {
		t.Fatal(err)
	}
	all := p.Arrived(t, p.Place().Address)
	if len(all) != 1 || all[0].Text != "ann approved it" || len(all[0].Buttons) != 0 {
		t.Errorf("it shows %+v", all)
	}
}

func direct(t *testing.T, p Platform) {
	h := listen(t, p, "")
	if !h.driver.Can().Direct {
		t.Skip("the platform has no direct places that a program begins")
	}
	who := p.People()[0]
	if who.Account == "" {
		t.Skip("the platform does not say who anybody is")
	}
	to, err := h.driver.Direct(t.Context(), who.Account)
	if err != nil || to != p.Direct().Address {
		t.Fatalf("%q, %v; it is %q", to, err, p.Direct().Address)
	}
	h.deliver(channel.Message{Place: to, Account: who.Account, Nonce: "d", Text: "for you"})
	if got := arrives(t, p, to, 1)[0]; got.Text != "for you" {
		t.Errorf("%+v", got)
	}
	if _, err := h.driver.Direct(t.Context(), "nobody-of-this-name"); !errors.Is(err, channel.ErrDead) {
		t.Errorf("of nobody: %v", err)
	}
}

// first holds that of what is said and what arrives in a place it is known what was there first, where the platform's ids say so.
func first(t *testing.T, p Platform) {
	h := listen(t, p, "")
	before := h.driver.Can().Before
	if before == nil {
		t.Skip("no id of the platform says when it came")
	}
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "early"})
	early := h.said("early").ID
	card := h.deliver(card(p.Place().Address))
	arrives(t, p, p.Place().Address, 1)
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "late"})
	late := h.said("late").ID
	if !before(early, card) || before(card, early) || !before(card, late) || before(late, card) {
		t.Errorf("said as %q, asked as %q, said as %q: %v %v %v %v", early, card, late, before(early, card), before(card, early),
			before(card, late), before(late, card))
	}
}

func limited(t *testing.T, p Platform) {
	l, ok := p.(Limiter)
	if !ok {
		t.Skip("the platform names no time at its limit")
	}
	h := listen(t, p, "")
	before := time.Now()
	l.Limit(t, p.Place().Address, 90*time.Second)
	_, err := h.driver.Deliver(t.Context(), channel.Message{Place: p.Place().Address, Nonce: "l", Text: "too much"})
	var later *channel.Later
	if !errors.As(err, &later) {
		t.Fatalf("at the limit: %v", err)
	}
	if wait := later.Until.Sub(before); wait < 80*time.Second || wait > 90*time.Second+patience {
		t.Errorf("it says to wait %s", wait)
	}
}

func refused(t *testing.T, p Platform) {
	r, ok := p.(Refuser)
	if !ok {
		t.Skip("the platform refuses nobody")
	}
	h := listen(t, p, "")
	r.Refuse(t, p.Place().Address)
	if _, err := h.driver.Deliver(t.Context(), channel.Message{Place: p.Place().Address, Nonce: "r", Text: "x"}); !errors.Is(err, channel.ErrDead) {
		t.Errorf("refused: %v", err)
	}
}

func meanwhile(t *testing.T, p Platform) {
	h := listen(t, p, "")
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "before"})
	h.said("before")
	if err := h.stop(); err != nil {
		t.Fatalf("told to end: %v", err)
	}
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "meanwhile"})
	next := listen(t, p, h.cursor)
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "after"})
	next.said("after")
	came := slices.ContainsFunc(next.await("after", func([]channel.Event) bool { return true }), func(e channel.Event) bool { return e.Text == "meanwhile" })
	next.mu.Lock()
	defer next.mu.Unlock()
	if history := next.driver.Can().History; !came && (history || len(next.lost) == 0) {
		t.Errorf("what was said meanwhile came: %v; lost: %q; the platform keeps it: %v", came, next.lost, history)
	}
}

func cut(t *testing.T, p Platform) {
	cutter, ok := p.(Cutter)
	if !ok {
		t.Skip("the platform has no session to lose")
	}
	h := listen(t, p, "")
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "before"})
	h.said("before")
	cutter.Cut(t)
	h.readyAgain(2)
	p.Say(t, Saying{By: p.People()[0], Place: p.Place(), Text: "after"})
	h.said("after")
	h.deliver(channel.Message{Place: p.Place().Address, Nonce: "c", Text: "welcome back"})
	if all := arrives(t, p, p.Place().Address, 1); all[len(all)-1].Text != "welcome back" {
		t.Errorf("%+v", all)
	}
}

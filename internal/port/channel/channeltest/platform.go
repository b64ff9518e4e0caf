package channeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/internal/port/channel"
)

// Scripted is a platform in memory. It can do what any of them does, and does what a test has it do: redeliver, reorder, drop, edit, rename,
// limit its rate, go away.
type Scripted struct {
	mu      sync.Mutex
	can     channel.Can
	log     []channel.Event // all that was said; its cursor is the number behind it
	out     map[string][]Arrived
	nonces  map[string]string
	names   map[string]string
	limits  map[string]time.Time // by place; "" = all
	dead    map[string]bool
	gone    error // why there is no session now
	held    bool  // what is said is not handed over before it is released
	heldAt  int   // how much of the log was there then
	counts  bool  // an id is a number: those of what is said and of what arrives
	dates   bool  // it says when something came
	ids     int
	changed chan struct{}
	session context.CancelCauseFunc // of the driver that listens
}

// NewScripted returns one that keeps what is said while nobody listens, and has buttons, threads, edits and direct places.
func NewScripted() *Scripted {
	return &Scripted{
		can: channel.Can{Buttons: true, Threads: true, Edits: true, Direct: true, History: true, TextMax: 2000},
		out: map[string][]Arrived{}, nonces: map[string]string{}, names: map[string]string{}, limits: map[string]time.Time{}, dead: map[string]bool{},
		changed: make(chan struct{}),
	}
}

// Forgetful has what is said while nobody listens be lost, as on IRC.
func (s *Scripted) Forgetful() *Scripted {
	s.can.History = false
	return s
}

// Rooted has the id of a message in a threaded place name the thread that begins with it, as on Slack.
func (s *Scripted) Rooted() *Scripted {
	s.can.Roots = true
	return s
}

// Counting has ids say what came first, as on Telegram, Slack and Discord.
func (s *Scripted) Counting() *Scripted {
	s.counts, s.can.Before = true, channel.Counted
	return s
}

// Dating says when something had come, as on IRC and Matrix.
func (s *Scripted) Dating() *Scripted {
	s.dates = true
	return s
}

// Hold has what is said from now on be handed over late: once it is released. What is sent arrives.
func (s *Scripted) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.heldAt = true, len(s.log)
}

// Release hands over what was held back.
func (s *Scripted) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.wake()
}

// id is the next one; mu is held.
func (s *Scripted) id(kind string, so int) string {
	if s.ids++; s.counts {
		return fmt.Sprint(s.ids)
	}
	return fmt.Sprintf("%s%d", kind, so+1)
}

func (s *Scripted) Driver(*testing.T) channel.Driver { return &scriptedDriver{s: s} }

func (s *Scripted) Place() channel.Place {
	return channel.Place{Address: "room", Kind: channel.Threaded, Name: "the room"}
}

func (s *Scripted) Direct() channel.Place { return DirectOf(s.People()[0]) }

// DirectOf is the direct place of somebody.
func DirectOf(p Person) channel.Place {
	return channel.Place{Address: "dm-" + p.Account, Kind: channel.Direct, Name: p.Name}
}

func (s *Scripted) People() [2]Person {
	return [2]Person{{Account: "U1", Handle: "U1", Name: "ann"}, {Account: "U2", Handle: "U2", Name: "bob"}}
}

// Say has somebody say something.
func (s *Scripted) Say(_ *testing.T, y Saying) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id("m", len(s.log))
	name := y.By.Name
	if now, ok := s.names[y.By.Account]; ok {
		name = now
	}
	var came time.Time
	if s.dates {
		came = time.Now()
	}
	s.put(channel.Event{
		Came: came,
		ID:   id, Place: y.Place, Thread: y.Thread, Text: y.Text, Mention: y.Mention, Quote: y.Quote, Forwarded: y.Forwarded, At: time.Now(),
		Sender: channel.Sender{Account: y.By.Account, Handle: y.By.Handle, Name: name, Bot: y.Bot},
	})
	return id
}

// put adds to what was said; mu is held.
func (s *Scripted) put(e channel.Event) {
	s.log = append(s.log, e)
	s.wake()
}

func (s *Scripted) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Swap exchanges the last two things that were said, as a platform does that loses the order.
func (s *Scripted) Swap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.log)
	s.log[n-1], s.log[n-2] = s.log[n-2], s.log[n-1]
}

func (s *Scripted) Again(_ *testing.T, place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.log) {
		if e.Place.Address == place {
			s.put(e)
			return
		}
	}
}

func (s *Scripted) Edit(_ *testing.T, place, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.log {
		if e.ID == id && e.Place.Address == place {
			e.ID, e.Text, e.Edited = fmt.Sprintf("%s.%d", id, len(s.log)), text, true
			s.put(e)
			return
		}
	}
}

func (s *Scripted) Rename(_ *testing.T, p Person, name string) Person {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[p.Account] = name
	p.Name = name
	return p
}

func (s *Scripted) Press(_ *testing.T, place, message string, p Person, option string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.out[place] {
		if a.ID == message {
			s.put(channel.Event{
				ID: fmt.Sprintf("p%d", len(s.log)+1), Place: s.placeOf(place), Thread: a.Thread, At: time.Now(),
				Sender: channel.Sender{Account: p.Account, Handle: p.Handle, Name: p.Name},
				Press:  &channel.Press{Question: s.nonces["question "+message], Option: option},
			})
		}
	}
}

// Forge has a client press a button that it was not shown.
func (s *Scripted) Forge(_ *testing.T, at channel.Place, p Person, press channel.Press) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(channel.Event{
		ID: fmt.Sprintf("p%d", len(s.log)+1), Place: at, At: time.Now(),
		Sender: channel.Sender{Account: p.Account, Handle: p.Handle, Name: p.Name}, Press: &press,
	})
}

// Names is what the buttons of a message name.
func (s *Scripted) Names(message string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nonces["question "+message]
}

// placeOf is a place by its address.
func (s *Scripted) placeOf(address string) channel.Place {
	for _, e := range s.log {
		if e.Place.Address == address {
			return e.Place
		}
	}
	return channel.Place{Address: address, Kind: channel.Threaded, Name: "the " + address}
}

func (s *Scripted) Limit(_ *testing.T, place string, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[place] = time.Now().Add(wait)
}

func (s *Scripted) Refuse(_ *testing.T, place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[place] = true
}

// Cut ends the session of who listens; the next one may begin at once.
func (s *Scripted) Cut(*testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		s.session(errors.New("the platform has ended the session"))
	}
}

// Leave has the platform be away until Return.
func (s *Scripted) Leave(t *testing.T) {
	s.mu.Lock()
	s.gone = errors.New("the platform is away")
	s.mu.Unlock()
	s.Cut(t)
}

// Return has it be there again.
func (s *Scripted) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = nil
	s.wake()
}

func (s *Scripted) Forwards() {}
func (s *Scripted) HasBots()  {}

func (s *Scripted) Arrived(_ *testing.T, place string) []Arrived {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.out[place])
}

// Changed is closed when something is said or arrives.
func (s *Scripted) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

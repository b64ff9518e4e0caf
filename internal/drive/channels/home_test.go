package channels_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// People on the scripted platform. Olga is the owner of the home once she is linked.
var (
	olga = channeltest.Person{Account: "U0", Handle: "U0", Name: "olga"}
	bob  = channeltest.Person{Account: "U2", Handle: "U2", Name: "bob"}
	cyd  = channeltest.Person{Account: "U3", Handle: "U3", Name: "cyd"}
)

// chatName is the name of the channel that scenes have.
const chatName = "chat"

// scene is a home with groups, whose agents answer what they hear, and channels of scripted platforms.
type scene struct {
	*drivetest.Home
	repo     git.Dir
	platform *channeltest.Scripted            // of the channel "chat"
	others   map[string]*channeltest.Scripted // of further channels, by name; tests add them before live
	parts    func(*channels.Parts)            // changes what channels stand on; nil = nothing
	drives   bool                             // the host moves changes too
	quiet    string                           // why nobody is let in; "" = they are

	control  *control.Controller // of this life
	dispatch *dispatch.Dispatcher
	channels *channels.Channels

	mu     sync.Mutex
	groups []group.Folder
	turns  []string // of every turn, "<group>: <what its agent heard>"
	words  []string // of every turn, all that its agent was told
	turn   func(of group.Folder, words string) (string, error)
}

// play runs a test in a home in which time passes only when everybody waits for it. Its owner is olga, who has written to the assistant
// before, so that cards reach her there.
func play(t *testing.T, groups []string, test func(t *testing.T, s *scene)) {
	t.Helper()
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := &scene{Home: h, platform: channeltest.NewScripted(), others: map[string]*channeltest.Scripted{}}
		s.turn = func(_ group.Folder, words string) (string, error) { return "heard: " + words, nil }
		for _, g := range groups {
			s.groups = append(s.groups, group.Folder(g))
		}
		s.repo = drivetest.Groups(h, drivetest.Talking{}, groups)
		h.Cage.Program = s.run
		s.addChannel(chatName)
		s.link(h.Owner.ID, olga)
		test(t, s)
	})
}

// addChannel adds a channel to the home.
func (s *scene) addChannel(name string) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		return tx.PutChannel(ctx, conversation.Channel{Name: name, Platform: "scripted", Settings: map[string]string{}, Added: time.Now()})
	})
}

// link gives an account of the channel "chat" to a person, who was alone with the assistant there.
func (s *scene) link(who id.Person, p channeltest.Person) { s.linkBy(chatName, who, p) }

// linkBy gives them an account of another channel.
func (s *scene) linkBy(channel string, who id.Person, p channeltest.Person) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		i := person.Identity{Platform: channel, Account: p.Account}
		if err := tx.Link(ctx, i, who, p.Name); err != nil {
			return err
		}
		at := channeltest.DirectOf(p)
		where, err := tx.PutConversation(ctx, conversation.Conversation{
			ID: id.NewConversation(), Platform: channel, Address: at.Address, Kind: at.Kind, Name: at.Name, Created: time.Now(),
		})
		if err != nil {
			return err
		}
		return tx.NoteDirect(ctx, i, where.ID)
	})
}

// know makes somebody a person with roles.
func (s *scene) know(p channeltest.Person, held ...right.Held) id.Person {
	return s.knowBy(chatName, p, held...)
}

// knowBy makes somebody of another channel one.
func (s *scene) knowBy(channel string, p channeltest.Person, held ...right.Held) id.Person {
	s.T.Helper()
	who := id.NewPerson()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		return tx.AddPerson(ctx, person.Person{ID: who, Name: p.Name})
	})
	s.linkBy(channel, who, p)
	s.grant(who, held...)
	return who
}

func (s *scene) grant(who id.Person, held ...right.Held) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		for _, h := range held {
			err = errors.Join(err, tx.Grant(ctx, who, h))
		}
		return err
	})
}

// wire has a group hear a place of the channel "chat", as a new wiring does.
func (s *scene) wire(at channel.Place, g group.Folder) conversation.Conversation {
	s.T.Helper()
	var where conversation.Conversation
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		if where, err = s.place(ctx, tx, at); err != nil {
			return err
		}
		return tx.PutWiring(ctx, wiring.New(where.ID, where.Kind, g, time.Now()))
	})
	return where
}

// place is the conversation of a place; it is made if it is not there.
func (s *scene) place(ctx context.Context, tx store.Tx, at channel.Place) (conversation.Conversation, error) {
	return tx.PutConversation(ctx, conversation.Conversation{
		ID: id.NewConversation(), Platform: chatName, Address: at.Address, Kind: at.Kind, Name: at.Name, Created: time.Now(),
	})
}

// where is the conversation of a place.
func (s *scene) where(at channel.Place) (where conversation.Conversation) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		where, err = s.place(ctx, tx, at)
		return err
	})
	return where
}

// lives is one life of the host; end stops it.
func (s *scene) lives() (end func()) {
	s.T.Helper()
	c := control.New(s.Parts)
	d := dispatch.New(drivetest.Dispatches(s.Home, c, s.repo))
	why := s.quiet // of this life
	d.Quiet = func() string { return why }
	parts := channels.Parts{
		Ledger: c.Ledger, Voices: dispatch.Voices{Dispatcher: d}, Quiet: d.Quiet,
		Groups: func(context.Context) ([]group.Folder, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Clone(s.groups), nil
		},
		Open: func(ch conversation.Channel) (channel.Driver, error) {
			if ch.Name == chatName {
				return s.platform.Driver(s.T), nil
			}
			return s.others[ch.Name].Driver(s.T), nil
		},
	}
	if s.parts != nil {
		s.parts(&parts)
	}
	all := channels.New(parts)
	d.Admissions = all
	s.control, s.dispatch, s.channels = c, d, all

	runs := []func(context.Context) error{d.Run, all.Run}
	if s.drives {
		runs = append(runs, c.Run)
	}
	end = drivetest.Lives(s.T, context.Background(), runs...)
	synctest.Wait()
	return end
}

// says has somebody say something, and waits until nothing moves.
func (s *scene) says(p channeltest.Person, at channel.Place, text string) (id string) {
	s.T.Helper()
	id = s.platform.Say(s.T, channeltest.Saying{By: p, Place: at, Text: text})
	synctest.Wait()
	return id
}

// tells has somebody say something to the assistant, alone with it.
func (s *scene) tells(p channeltest.Person, text string) string {
	s.T.Helper()
	return s.says(p, channeltest.DirectOf(p), text)
}

// mentions has somebody mention the assistant in a place.
func (s *scene) mentions(p channeltest.Person, at channel.Place, text string) string {
	s.T.Helper()
	id := s.platform.Say(s.T, channeltest.Saying{By: p, Place: at, Text: text, Mention: true})
	synctest.Wait()
	return id
}

// arrived is what the assistant has sent to a place, as it stands now.
func (s *scene) arrived(at channel.Place) (all []channeltest.Arrived) {
	s.T.Helper()
	synctest.Wait()
	return s.platform.Arrived(s.T, at.Address)
}

// texts are those of what has arrived in a place.
func (s *scene) texts(at channel.Place) (all []string) {
	for _, a := range s.arrived(at) {
		all = append(all, a.Text)
	}
	return all
}

// newest is what arrived last in a place.
func (s *scene) newest(at channel.Place) channeltest.Arrived {
	s.T.Helper()
	all := s.arrived(at)
	if len(all) == 0 {
		s.T.Fatalf("nothing has arrived in %s", at.Address)
	}
	return all[len(all)-1]
}

// now is a message that has arrived, as it stands now.
func (s *scene) now(at channel.Place, id string) channeltest.Arrived {
	s.T.Helper()
	all := s.arrived(at)
	i := slices.IndexFunc(all, func(a channeltest.Arrived) bool { return a.ID == id })
	if i < 0 {
		s.T.Fatalf("%s is not in %s", id, at.Address)
	}
	return all[i]
}

// press has somebody press a button of the newest card of a place.
func (s *scene) press(p channeltest.Person, at channel.Place, option string) {
	s.T.Helper()
	all := s.arrived(at)
	for _, a := range slices.Backward(all) {
		if len(a.Buttons) > 0 {
			s.platform.Press(s.T, at.Address, a.ID, p, option)
			synctest.Wait()
			return
		}
	}
	s.T.Fatalf("no card with buttons stands in %s: %+v", at.Address, all)
}

// heard are the turns of all agents, "<group>: <the last message of the turn>".
func (s *scene) heard() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.turns)
}

// drops are how often something was dropped, by reason.
func (s *scene) drops() map[string]int {
	s.T.Helper()
	synctest.Wait()
	all := map[string]int{}
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		some, err := tx.CountDrops(ctx)
		for _, d := range some {
			all[d.Reason] += d.Count
		}
		return err
	})
	return all
}

// questions are those that wait about a place.
func (s *scene) questions(at channel.Place) (open []question.Question) {
	s.T.Helper()
	synctest.Wait()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		where, err := s.place(ctx, tx, at)
		if err != nil {
			return err
		}
		chat, err := tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: group.Host, Conversation: where.ID, Created: time.Now()})
		if err != nil {
			return err
		}
		open, err = tx.OpenQuestions(ctx, chat.ID.Subject())
		return err
	})
	return open
}

// person is what the home knows of an account; false if nobody has it.
func (s *scene) person(p channeltest.Person) (k person.Known, ok bool) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		all, err := tx.People(ctx)
		for _, one := range all {
			for _, a := range one.Accounts {
				if a.Identity == (person.Identity{Platform: chatName, Account: p.Account}) {
					k, ok = one, true
				}
			}
		}
		return err
	})
	return k, ok
}

// ins are the messages of a group's chats, oldest first.
func (s *scene) ins(of group.Folder) (all []message.In) {
	s.T.Helper()
	synctest.Wait()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		all, err = tx.Ins(ctx, message.Filter{Group: of, Limit: 100})
		return err
	})
	return all
}

func (s *scene) run(spec sandbox.Spec, killed <-chan struct{}) int {
	return drivetest.Adapt(spec, spec.Stdin, killed, &player{scene: s, of: s.groupOf(spec)})
}

// groupOf is the group whose folder a sandbox is shown.
func (s *scene) groupOf(spec sandbox.Spec) group.Folder {
	for _, b := range slices.Concat(spec.Own, spec.Binds) {
		if b.Target == dispatch.WorkFolder {
			below := strings.TrimPrefix(b.Source, filepath.Join(s.Parts.Home, "state", "groups")+string(filepath.Separator))
			first, _, _ := strings.Cut(below, string(filepath.Separator))
			return group.Folder(first)
		}
	}
	return ""
}

// player is the engine and the conversation of one session.
type player struct {
	*scene
	drivetest.Talk
	of   group.Folder
	show agent.Show
}

func (p *player) Open(_ context.Context, _ agent.Order, _ string, show agent.Show) (agent.Conversation, error) {
	p.show = show
	return p, nil
}

func (p *player) Prompt(_ context.Context, words string) (string, error) {
	said := drivetest.Last(words)
	p.mu.Lock()
	p.turns, p.words = append(p.turns, string(p.of)+": "+said), append(p.words, words)
	p.mu.Unlock()
	text, err := p.turn(p.of, said)
	if err == nil {
		p.show.Say(text)
	}
	return text, err
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

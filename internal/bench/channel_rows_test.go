package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

const (
	roomsAll  = 20 // conversations of a platform
	roomRate  = 50 // messages a second in each
	roomsTime = time.Minute
)

// rooms is a home that hears a platform, and notes what has become a row.
type rooms struct {
	platform *channeltest.Scripted
	db       store.DB

	mu   sync.Mutex
	took []time.Duration
	last map[id.Chat]int // number of the newest message
	bad  error           // what did not hold
}

// newRooms has an agent's group hear each of the rooms, and a person be its member.
func newRooms(b *testing.B, said func(room, n int) time.Time) *rooms {
	b.Helper()
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "home.db"), disk.Ops{})
	must(b, err)
	b.Cleanup(func() { must(b, db.Close()) })
	r := &rooms{platform: channeltest.NewScripted(), db: db, last: map[id.Chat]int{}}
	who := r.platform.People()[0]
	must(b, db.InTx(b.Context(), func(tx store.Tx) error {
		ctx, ann := b.Context(), person.Person{ID: id.NewPerson(), Name: who.Name}
		must(b, tx.PutChannel(ctx, conversation.Channel{Name: "chat", Platform: "scripted", Settings: map[string]string{}, Added: time.Now()}))
		must(b, tx.AddPerson(ctx, ann))
		must(b, tx.Link(ctx, person.Identity{Platform: "chat", Account: who.Account}, ann.ID, who.Name))
		must(b, tx.Grant(ctx, ann.ID, right.Held{Role: right.Member, Group: "echo"}))
		for n := range roomsAll {
			at := roomAt(n)
			where, err := tx.PutConversation(ctx, conversation.Conversation{ID: id.NewConversation(), Platform: "chat", Address: at.Address, Kind: at.Kind, Name: at.Name, Created: time.Now()})
			must(b, err)
			w := wiring.New(where.ID, where.Kind, "echo", time.Now())
			w.Mode, w.Pattern = wiring.Pattern, wiring.Always
			must(b, tx.PutWiring(ctx, w))
		}
		return nil
	}))
	db.Hear(func(rows message.Rows) { r.stored(rows, said) })

	home := b.TempDir() // the daemon looks at its policy for each message
	must(b, os.WriteFile(filepath.Join(home, config.PolicyFile), []byte("permissions: on\napprovals: {people: 1}\n"), 0o600))
	settings := config.Look(home)
	l := ledger.New(ledger.Parts{DB: db, Log: slog.New(slog.DiscardHandler)})
	all := channels.New(channels.Parts{
		Ledger: l, Voices: dispatch.Voices{Dispatcher: dispatch.New(dispatch.Parts{Ledger: l})},
		Open:   func(conversation.Channel) (channel.Driver, error) { return r.platform.Driver(nil), nil },
		Groups: func(context.Context) ([]group.Folder, error) { return []group.Folder{"echo"}, nil },
		Anyone: func() bool { return settings.Policy().Permissions == config.PermissionsOff },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- all.Run(ctx) }()
	b.Cleanup(func() { cancel(); must(b, <-ran) })
	return r
}

func roomAt(n int) channel.Place {
	return channel.Place{Address: fmt.Sprint("room-", n), Kind: channel.Group, Name: fmt.Sprint("room ", n)}
}

// stored notes what has been committed, and that each conversation's messages come one after the other, each once.
func (r *rooms) stored(rows message.Rows, said func(room, n int) time.Time) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range rows.Ins {
		of, at, _ := strings.Cut(m.Text, " ")
		room, err := strconv.Atoi(of)
		n, err2 := strconv.Atoi(at)
		if err != nil || err2 != nil || n != r.last[m.Chat]+1 {
			r.bad = fmt.Errorf("%q comes after message %d", m.Text, r.last[m.Chat])
		}
		r.last[m.Chat] = n
		r.took = append(r.took, now.Sub(said(room, n)))
	}
}

// BenchmarkChannels measures how long what somebody says on a platform takes to be a row, and how long the bare rows take by themselves
// on the same disk.
func BenchmarkChannels(b *testing.B) {
	ours, rows := saidInRooms(b), rowsOfRooms(b)
	r := row{path: "what somebody says on a platform, until it is a row", ours: fmt.Sprintf("%d conversations with %d messages a second in each, for %s: handed over, recognized, routed, stored durably; in order, none lost", roomsAll, roomRate, roomsTime),
		rival: "the same two rows alone, committed durably, at the same moments", took: ours, rivals: rows}
	record(b, r)
	hundredth := func(all []time.Duration) []time.Duration {
		slices.Sort(all)
		return []time.Duration{all[len(all)*99/100]}
	}
	record(b, row{path: "the same, the slowest but one in a hundred", ours: "as above", rival: "as above: what the disk takes", within: 20 * time.Millisecond, took: hundredth(ours), rivals: hundredth(rows)})
}

// everyRoom has something said in each room at its rate, and returns when all of it was.
func everyRoom(say func(room, at int)) {
	var all sync.WaitGroup
	for n := range roomsAll {
		all.Go(func() {
			<-time.After(time.Duration(n) * time.Second / roomRate / roomsAll) // not all in the same instant
			tick := time.NewTicker(time.Second / roomRate)
			defer tick.Stop()
			for at := range int(roomsTime.Seconds()) * roomRate {
				say(n, at+1)
				<-tick.C
			}
		})
	}
	all.Wait()
}

func saidInRooms(b *testing.B) []time.Duration {
	perRoom := int(roomsTime.Seconds()) * roomRate
	var times [roomsAll][]time.Time // when each message was said; written before it is
	for n := range times {
		times[n] = make([]time.Time, perRoom+1)
	}
	r := newRooms(b, func(room, n int) time.Time { return times[room][n] })
	who := r.platform.People()[0]
	unix.Sync() // neither waits for what was there to be written before
	everyRoom(func(room, at int) {
		times[room][at] = time.Now()
		r.platform.Say(nil, channeltest.Saying{By: who, Place: roomAt(room), Text: fmt.Sprint(room, " ", at)})
	})
	r.settle(b, roomsAll*perRoom)
	return r.took
}

func rowsOfRooms(b *testing.B) []time.Duration {
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bare.db"), disk.Ops{})
	must(b, err)
	defer db.Close()
	var bare [roomsAll]conversation.Chat
	must(b, db.InTx(b.Context(), func(tx store.Tx) (err error) {
		for n := range bare {
			if bare[n], err = putChat(b.Context(), tx, "echo", fmt.Sprint(n)); err != nil {
				return err
			}
		}
		return nil
	}))
	unix.Sync()
	took := make(chan time.Duration, roomsAll*int(roomsTime.Seconds())*roomRate)
	var all sync.WaitGroup
	everyRoom(func(room, at int) {
		began := time.Now()
		all.Go(func() { // who speaks does not wait for the row
			if err := db.InTx(b.Context(), func(tx store.Tx) error {
				return bareMessage(b.Context(), tx, bare[room], fmt.Sprint(room, " ", at))
			}); err != nil {
				b.Error(err)
			}
			took <- time.Since(began)
		})
	})
	all.Wait()
	close(took)
	return slices.Collect(func(yield func(time.Duration) bool) {
		for t := range took {
			if !yield(t) {
				return
			}
		}
	})
}

// settle waits until so many messages are rows, and holds that there is no more.
func (r *rooms) settle(b *testing.B, want int) {
	b.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		r.mu.Lock()
		got, bad := len(r.took), r.bad
		r.mu.Unlock()
		must(b, bad)
		if got == want {
			return
		}
		if got > want || time.Now().After(end) {
			b.Fatalf("%d messages were said, and %d are rows", want, got)
		}
	}
}

// BenchmarkRoutes measures how long routing takes to decide about one message.
func BenchmarkRoutes(b *testing.B) {
	all := []wiring.Wiring{wiring.New("cnv-00000001", conversation.Group, "ada", time.Now()), wiring.New("cnv-00000001", conversation.Direct, "bob", time.Now())}
	all[1].Pattern, all[1].Scope = "deploy|release", wiring.Known
	where := conversation.Conversation{ID: "cnv-00000001", Kind: conversation.Group, Policy: conversation.Request}
	var ready wiring.Ready
	said := wiring.Said{Text: "could somebody please release the thing of yesterday?", Account: []string{"port"}, Sender: wiring.Sender{Person: "psn-00000001", Over: true}}
	home := wiring.Home{Groups: []group.Folder{"ada", "bob"}, Approver: true}
	r := row{path: "deciding which groups hear 1,000 messages", ours: "a conversation with two groups, one of them by a pattern; whether a wiring is another by now is looked at for each", within: 5 * time.Millisecond, note: "the goal is 200,000 messages in a second"}
	inTurn(b, r, func() time.Duration {
		return timed(func() {
			for range 1000 {
				if place, _ := ready.Place(where, all); place.Route(said, home).Kind != wiring.Heard {
					b.Fatal("nobody hears it")
				}
			}
		})
	}, nil)
}

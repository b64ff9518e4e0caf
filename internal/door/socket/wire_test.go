package socket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/people"
	"sallyport/internal/drive/standing"
	"sallyport/internal/drive/view"
	"sallyport/internal/host/storage"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/right"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/person"
)

func TestAnAnswerIsJSONThatNobodyKeeps(t *testing.T) {
	s := New(options(&verbs{row: change.Row{ID: "chg-00000001"}}))
	for name, h := range map[string]http.Handler{"owner's": s.Handler(), "users'": s.userHandler()} {
		w := asked(t, h, os.Geteuid(), "GET /v1/daemon", "")
		head := w.Header()
		if w.Code != http.StatusOK || head.Get("Content-Type") != "application/json" || head.Get("Cache-Control") != "no-store" || head.Get(api.HeaderVersion) != strconv.Itoa(api.Version) || head.Get(api.HeaderBuild) != api.Build() {
			t.Errorf("%s: %d %v", name, w.Code, head)
		}
	}
	// Who is nobody, as far as the kernel says, is refused and told so.
	for name, h := range map[string]http.Handler{"owner's": s.Handler(), "users'": s.userHandler()} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/daemon", nil))
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"kind":"denied"`) || name == "owner's" && !strings.Contains(w.Body.String(), "an unknown user may not") {
			t.Errorf("%s, of nobody: %d %s", name, w.Code, w.Body)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if got := userOf(os.Geteuid()); got.Name != me.Username || got.UID != os.Geteuid() || got.Kind != "person" {
		t.Errorf("who asks is %+v", got)
	}
	if got := userOf(987654321).Name; got != "uid 987654321" {
		t.Errorf("who has no name is %q", got)
	}
	if got := orUnknown("ann"); got != "ann" {
		t.Errorf("ann is %q", got)
	}
	for build, says := range map[string]string{"": `this program is build "unknown"`, "v1": `this program is build "v1"`} {
		if err := Mismatch("/h", build, "7"); !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

// A fault of ours stays in the log, and what somebody only asked for wrongly does not. Nobody is answered whose daemon ends meanwhile.
func TestAFaultOfOursIsLogged(t *testing.T) {
	for sent, logged := range map[error]bool{errPlain: true, errRefused: false} {
		for _, gone := range []bool{false, true} {
			var log bytes.Buffer
			d := &door{slog.New(slog.NewTextHandler(&log, nil)), New(Options{}).Secrets}
			ctx, cancel := context.WithCancel(t.Context())
			if gone {
				cancel()
			}
			w := httptest.NewRecorder()
			aborted := func() (aborted bool) {
				defer func() { aborted = recover() == http.ErrAbortHandler }()
				d.refuseWith(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/x", nil), sent)
				return
			}()
			cancel()
			if aborted != (gone && logged) {
				t.Errorf("%v, gone %t: aborted %t", sent, gone, aborted)
			}
			if got := strings.Contains(log.String(), "disk on fire") && strings.Contains(log.String(), "/v1/x"); got != (logged && !gone) {
				t.Errorf("%v, gone %t: the log says %q", sent, gone, log.String())
			}
			if !aborted && w.Code == http.StatusOK {
				t.Errorf("%v is answered with %d", sent, w.Code)
			}
		}
	}
	h := New(options(&verbs{})).answer(func(*http.Request) (any, error) { return func() {}, nil })
	w := httptest.NewRecorder()
	if h(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); w.Code != http.StatusInternalServerError {
		t.Errorf("an answer that cannot be written is %d %s", w.Code, w.Body)
	}
}

// A stream says of what kind it is, also if nothing is in it. Lines are read as they are made, and other bytes need not be.
func TestAStreamBeginsWithItsKindAndLinesGoAtOnce(t *testing.T) {
	d := &door{slog.New(slog.DiscardHandler), New(Options{}).Secrets}
	for kind, flushes := range map[string]bool{api.LinesKind: true, api.DiffKind: false} {
		for _, text := range []string{"", "some\n"} {
			w := &flushed{ResponseRecorder: httptest.NewRecorder()}
			d.stream(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), kind, func(out io.Writer) error {
				if text == "" {
					return nil
				}
				_, err := io.WriteString(out, text)
				return err
			})
			if w.Header().Get("Content-Type") != kind || w.status != http.StatusOK || w.Body.String() != text || w.flushes > 0 != (flushes && text != "") {
				t.Errorf("%s: %d %v %q, flushed %d times", kind, w.status, w.Header(), w.Body, w.flushes)
			}
		}
	}
	gone := &flushed{ResponseRecorder: httptest.NewRecorder(), gone: true}
	out := &streamWriter{w: gone, control: http.NewResponseController(gone), kind: api.LinesKind}
	if _, err := out.Write([]byte("some\n")); !errors.Is(err, errPlain) || gone.flushes > 0 {
		t.Errorf("who is gone is not noticed: %v, flushed %d times", err, gone.flushes)
	}
	gone.gone, gone.stuck = false, true
	if _, err := out.Write([]byte("some\n")); !errors.Is(err, errPlain) {
		t.Errorf("a line that did not go is not noticed: %v", err)
	}
	v := &verbs{}
	bad := asked(t, New(options(v)).Handler(), os.Geteuid(), "GET /v1/changes/apr-00000001/diff", "")
	if bad.Code != http.StatusBadRequest || !strings.Contains(bad.Body.String(), `"kind":"usage"`) {
		t.Errorf("the diff of an approval: %d %s", bad.Code, bad.Body)
	}
}

// flushed counts how often it is flushed.
type flushed struct {
	*httptest.ResponseRecorder
	flushes, status int
	gone, stuck     bool
	until           time.Time // after which it is gone; zero = never
}

func (f *flushed) WriteHeader(status int) { f.status = status }

func (f *flushed) Write(p []byte) (int, error) {
	if f.gone || !f.until.IsZero() && time.Now().After(f.until) {
		return 0, errPlain
	}
	return f.Body.Write(p)
}

func (f *flushed) SetWriteDeadline(time.Time) error { return nil }

func (f *flushed) FlushError() error {
	f.flushes++
	if f.stuck {
		return errPlain
	}
	return nil
}

func TestAWatchSaysOfWhatKindItIsOrWhyThereIsNone(t *testing.T) {
	v := &verbs{notices: make(chan change.Notice)}
	close(v.notices)
	d := &door{slog.New(slog.DiscardHandler), New(Options{}).Secrets}
	w := &flushed{ResponseRecorder: httptest.NewRecorder()}
	changes{v}.watch(d, w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), "chg-00000001")
	if w.Header().Get("Content-Type") != api.EventsKind || w.status != http.StatusOK || !strings.Contains(w.Body.String(), "event: "+api.NoticeEnd) || w.flushes == 0 {
		t.Errorf("%d %v %q", w.status, w.Header(), w.Body)
	}
	v.err = errRefused
	none := httptest.NewRecorder()
	changes{v}.watch(d, none, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), "chg-00000001")
	if none.Code == http.StatusOK || !strings.Contains(none.Body.String(), `"kind":"refused"`) {
		t.Errorf("%d %s", none.Code, none.Body)
	}
}

// Whoever watches is sent something now and then, so that it is seen when they are gone. The controller is told that too.
func TestAWatchBeatsAndEndsWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := &flushed{ResponseRecorder: httptest.NewRecorder(), until: began.Add(2*heartbeatTime + time.Second)}
		err := sendEvents(t.Context(), w, make(chan change.Notice))
		if strings.Count(w.Body.String(), ": beat\n\n") != 2 || !errors.Is(err, errPlain) || time.Since(began) != 3*heartbeatTime {
			t.Errorf("it ends after %s with %v, told %q", time.Since(began), err, w.Body)
		}
	})

	v := &heard{verbs: &verbs{notices: make(chan change.Notice)}}
	close(v.notices)
	d := &door{slog.New(slog.DiscardHandler), New(Options{}).Secrets}
	changes{v}.watch(d, &flushed{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), "chg-00000001")
	if v.ctx.Err() == nil {
		t.Error("the controller is not told that nobody watches any more")
	}
}

// heard keeps the context of a watch.
type heard struct {
	*verbs
	ctx context.Context
}

func (h *heard) Watch(ctx context.Context, of id.Change) (<-chan change.Notice, error) {
	h.ctx = ctx
	return h.verbs.Watch(ctx, of)
}

func TestAChangeIsShownWithAllThatThereIsOfIt(t *testing.T) {
	if d := detailOf(view.Detail{}); d.Proposal != nil || d.Approval != nil || d.Landing != nil {
		t.Errorf("nothing is shown as %+v", d)
	}
	d := detailOf(view.Detail{
		Proposal: &proposal.Proposal{Number: 2}, Approval: &approval.Approval{ID: "apr-00000001", By: &audit.Actor{Name: "ann"}}, Landing: &landing.Landing{ID: "lnd-00000001"},
		Sessions: []session.Session{{ID: "sh-1"}, {ID: "sh-2", Exit: &sandbox.Exit{Code: 7}}, {ID: "sh-3", Exit: &sandbox.Exit{Code: -1, Signal: "SIGKILL", Limit: &sandbox.Limit{Name: sandbox.Memory, Value: "1", Observed: "2"}}}},
	})
	if d.Proposal == nil || d.Proposal.Number != 2 || d.Approval == nil || d.Approval.By == nil || d.Approval.By.Name != "ann" || d.Landing == nil || d.Landing.ID != "lnd-00000001" {
		t.Errorf("shown as %+v", d)
	}
	if all := d.Sessions; all[0].Exit != nil || all[1].Exit == nil || all[1].Exit.Code != 7 || all[1].Exit.Limit != nil || all[2].Exit.Signal != "SIGKILL" || all[2].Exit.Limit == nil || all[2].Exit.Limit.Name != sandbox.Memory {
		t.Errorf("its sessions are %+v", all)
	}
	if n := noticeOf(change.Notice{Asked: &session.Asked{Host: "example.org"}}); n.Asked == nil || n.Asked.Host != "example.org" || n.Checkpoint != nil {
		t.Errorf("a notice is %+v", n)
	}
	if got := trialOf(&trial.Trial{By: &audit.Actor{Name: "ann"}, Handshake: trial.RolledBack}, change.RolledBack); got.By == nil || got.By.Name != "ann" {
		t.Errorf("who ended a trial is %+v", got.By)
	}
	if got := targetOf(trust.Words{Home: &trust.Target{Restart: "make"}, Proposed: &trust.Target{Restart: "rm"}}); got.Counts != api.CountsHome || got.Trusted {
		t.Errorf("what the home says counts as %+v", got)
	}
}

// on lists changes, of which some are on trial.
type on struct {
	*verbs
	rows  []change.Row
	shown func(id.Change) (view.Detail, error)
}

func (o on) List(_ context.Context, f change.Filter) ([]change.Row, error) {
	if slices.Equal(f.States, []change.State{change.AwaitingApproval}) {
		return o.rows[:1], o.err
	}
	return o.rows, o.err
}

func (o on) Show(_ context.Context, of id.Change) (view.Detail, error) { return o.shown(of) }

// What is on trial is listed as it stands at one moment, and what has gone meanwhile as it was.
func TestAListSaysHowTrialsStand(t *testing.T) {
	at := func(n int, state change.State) change.Row {
		return change.Row{ID: id.Change(fmt.Sprint("chg-", n)), State: state}
	}
	o := on{verbs: &verbs{}, rows: []change.Row{at(1, change.InTrial), at(2, change.Working), at(3, change.InTrial), at(4, change.Working), at(5, change.InTrial)}}
	var looked []id.Change
	o.shown = func(of id.Change) (view.Detail, error) {
		if looked = append(looked, of); of == "chg-1" {
			return view.Detail{}, problem.Errorf(problem.NotFound, "sallyport change list", "gone")
		}
		return view.Detail{Change: change.Row{ID: of, State: change.Finalized}, Trial: &trial.Trial{Landing: "lnd-1"}}, nil
	}
	rows, err := changes{o}.list(t.Context(), audit.Actor{}, api.Filter{})
	if err != nil || len(rows) != 5 || fmt.Sprint(looked) != "[chg-1 chg-3 chg-5]" {
		t.Fatalf("%+v, %v, looked at %q", rows, err, looked)
	}
	for n, trial := range []bool{false, false, true, false, true} {
		if got := rows[n]; (got.Trial != nil) != trial || got.ID != fmt.Sprint("chg-", n+1) || trial != (got.State == string(change.Finalized)) {
			t.Errorf("%+v", got)
		}
	}
	o.shown = func(id.Change) (view.Detail, error) { return view.Detail{}, errPlain }
	if rows, err := (changes{o}).list(t.Context(), audit.Actor{}, api.Filter{}); !errors.Is(err, errPlain) || rows != nil {
		t.Errorf("a trial that cannot be read: %+v, %v", rows, err)
	}
}

func TestADaemonSaysWhatItDoesAndWhatIsWrongWithIt(t *testing.T) {
	o := on{verbs: &verbs{}}
	for n := range doingMax + 1 {
		o.rows = append(o.rows, change.Row{ID: id.Change(fmt.Sprint("chg-", n)), State: change.Working})
	}
	n := daemon{part: host{}, changes: o, home: t.TempDir()}
	d, err := n.show(t.Context(), audit.Actor{}, api.Nothing{})
	if err != nil || d.Working != doingMax+1 || d.Waiting != 1 || len(d.Doing) != doingMax || d.Doing[0] != "chg-0 working" || d.Open || d.Settings != nil {
		t.Errorf("%+v, %v", d, err)
	}
	for _, open := range []bool{false, true} {
		n.open = func() bool { return open }
		n.unloaded = func() []api.Unloaded { return []api.Unloaded{{File: "sallyport.yaml"}} }
		if d, err := n.show(t.Context(), audit.Actor{}, api.Nothing{}); err != nil || d.Open != open || len(d.Settings) != 1 {
			t.Errorf("open %t: %+v, %v", open, d, err)
		}
	}
}

func TestAChannelSaysHowItStands(t *testing.T) {
	lost := time.Unix(1e9, 0)
	for want, state := range map[string]channels.State{
		api.ChannelConnected: {Connected: true, Account: "us"}, api.ChannelConnecting: {}, api.ChannelAway: {Reason: "no route", Lost: lost},
	} {
		if got := channelOf(channels.Standing{State: state}); got.Status != want || (got.Lost != nil) != !state.Lost.IsZero() || got.Lost != nil && !got.Lost.Equal(lost) {
			t.Errorf("%+v is %+v, want %s", state, got, want)
		}
	}
	for pattern, broken := range map[string]bool{"(": true, "x": false} {
		w := channels.Wired{Conversation: conversation.Conversation{ID: "cnv-1", Kind: conversation.Group}, Wirings: []wiring.Wiring{{Group: "ada", Mode: wiring.Pattern, Pattern: pattern, Scope: wiring.All, Ignored: wiring.Drop}}}
		if got := wiredOf(w); len(got.Wirings) != 1 || (got.Wirings[0].Problem != "") != broken {
			t.Errorf("the pattern %q: %+v", pattern, got.Wirings)
		}
	}
}

// crew is the people of a home; it keeps which uid was added.
type crew struct {
	Members
	uid int
	err error
}

func (c *crew) Add(_ context.Context, _ audit.Actor, name string, uid int) (person.Known, error) {
	c.uid = uid
	return person.Known{Person: person.Person{Name: name}}, c.err
}

func (c *crew) Link(context.Context, audit.Actor, string) (person.Known, person.LinkCode, time.Time, []string, error) {
	return person.Known{}, "ABCDEFGH", time.Unix(1e9, 0), []string{"irc"}, c.err
}

// No uid is not root's.
func TestAPersonIsAddedWithTheUIDThatIsGivenOrNone(t *testing.T) {
	root, ann := 0, 1001
	for uid, want := range map[*int]int{nil: people.NoUID, &root: 0, &ann: 1001} {
		c := &crew{uid: -7}
		if p, err := (members{c}).add(t.Context(), audit.Actor{}, api.NewPerson{Name: "ann", UID: uid}); err != nil || c.uid != want || p.Name != "ann" {
			t.Errorf("%d, want %d: %+v, %v", c.uid, want, p, err)
		}
	}
	if out, err := (members{&crew{}}).link(t.Context(), audit.Actor{}, "ann"); err != nil || out.Code != "ABCD-EFGH" || len(out.Channels) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := (members{&crew{err: errRefused}}).link(t.Context(), audit.Actor{}, "ann"); !errors.Is(err, errRefused) || out.Code != "" {
		t.Errorf("a code that is refused: %+v, %v", out, err)
	}
}

// cellar is what a home has on disk.
type cellar struct{ calls []string }

func (c *cellar) Look(context.Context) (storage.Report, error) {
	c.calls = append(c.calls, "look")
	return storage.Report{Rows: []storage.Row{{Kind: "changes", Count: 2, Bytes: 10, Gone: 1, Freed: 4}, {Kind: storage.Refs, Bytes: 100, Freed: 3}}, Notes: []string{"\xff"}}, nil
}

func (c *cellar) Collect(ctx context.Context, by audit.Actor) (storage.Report, error) {
	c.calls = append(c.calls, fmt.Sprint("collect by ", by.UID))
	return storage.Report{}, errRefused
}

// Only to look removes nothing. Bytes of refs lie in the repositories, and are counted there.
func TestACollectionThatIsOnlyLookedAtRemovesNothing(t *testing.T) {
	c := &cellar{}
	n := stored{c, "/h"}
	for name, look := range map[string]func() (api.Storage, error){
		"shown": func() (api.Storage, error) { return n.show(t.Context(), audit.Actor{}, api.Nothing{}) },
		"a dry run": func() (api.Storage, error) {
			return n.collect(t.Context(), audit.Actor{UID: 7}, api.GC{DryRun: true})
		},
	} {
		c.calls = nil
		out, err := look()
		if err != nil || !out.DryRun || out.Home != "/h" || out.Bytes != 10 || out.Freed != 7 || len(out.Kinds) != 2 || out.Kinds[0].Count != 2 || out.Notes[0] != `\xff` || !slices.Equal(c.calls, []string{"look"}) {
			t.Errorf("%s: %+v, %v, does %q", name, out, err, c.calls)
		}
	}
	c.calls = nil
	if out, err := n.collect(t.Context(), audit.Actor{UID: 7}, api.GC{}); !errors.Is(err, errRefused) || out.DryRun || !slices.Equal(c.calls, []string{"collect by 7"}) {
		t.Errorf("%+v, %v, does %q", out, err, c.calls)
	}
}

// fleet is the agents of a machine.
type fleet struct{ calls []string }

func (f *fleet) ListAgents(_ context.Context, at api.Place) ([]api.Agent, error) {
	f.calls = append(f.calls, "list "+at.Dir)
	return []api.Agent{{Path: "a\xff"}}, nil
}

func (f *fleet) TestAgent(_ context.Context, t AgentTry, by audit.Actor) (api.AgentTest, error) {
	f.calls = append(f.calls, fmt.Sprintf("try %s %s with %d keys in %s by %d", t.Agent, t.Model, len(t.Keys), t.Dir, by.UID))
	return api.AgentTest{Says: "b\xff"}, errRefused
}

func TestAgentsAreLookedForInPlacesThatAreNamedWhole(t *testing.T) {
	for dir, good := range map[string]bool{"": true, "/repo": true, "repo": false, "/re\x00po": false} {
		f := &fleet{}
		all, err := agents{f}.list(t.Context(), audit.Actor{}, api.Place{Dir: dir})
		_, tried := agents{f}.try(t.Context(), audit.Actor{}, api.TestAgent{Place: api.Place{Dir: dir}})
		if good && (err != nil || all[0].Path != `a\xff` || !errors.Is(tried, errRefused) || len(f.calls) != 2) {
			t.Errorf("in %q: %+v, %v, %v, does %q", dir, all, err, tried, f.calls)
		}
		if !good && (problem.KindOf(err) != problem.Usage || problem.KindOf(tried) != problem.Usage || len(f.calls) > 0) {
			t.Errorf("in %q: %v, %v, does %q", dir, err, tried, f.calls)
		}
	}
	for _, at := range []api.Place{{Path: "/bin\x00"}, {Home: "/h\x00"}} {
		if err := checkPlace(at); problem.KindOf(err) != problem.Usage {
			t.Errorf("%+v: %v", at, err)
		}
	}
	f := &fleet{}
	out, _ := agents{f}.try(t.Context(), audit.Actor{UID: 7}, api.TestAgent{Place: api.Place{Dir: "/r"}, Agent: "pi", Model: "m", Keys: api.Keys{"A": "x"}})
	if out.Says != `b\xff` || !slices.Equal(f.calls, []string{"try pi m with 1 keys in /r by 7"}) {
		t.Errorf("%+v, does %q", out, f.calls)
	}
	f = &fleet{}
	if _, err := (agents{f}).try(t.Context(), audit.Actor{}, api.TestAgent{Model: "a b"}); problem.KindOf(err) != problem.Usage || len(f.calls) > 0 {
		t.Errorf("a model that is none: %v, does %q", err, f.calls)
	}
}

// What the wire bounds is taken up to the most.
func TestWordsAndListsAreTakenUpToTheMost(t *testing.T) {
	read := make(chan struct{})
	close(read)
	for name, row := range map[string]struct {
		most int
		do   func(n int) error
	}{
		"words for an agent": {request.TextBytesMax, func(n int) error {
			_, err := work{&verbs{}}.tell(t.Context(), audit.Actor{}, api.Tell{Of: "chg-00000001", Text: strings.Repeat("x", n)})
			return err
		}},
		"files that go back": {request.ListMax, func(n int) error {
			_, err := named(api.PutBack{Paths: slices.Repeat([]string{"a"}, n)})
			return err
		}},
		"commits of a scan": {historyMax, func(n int) error {
			return scans{&scanner{read: read}}.scan(t.Context(), api.Scan{Path: "/", History: n}, io.Discard)
		}},
	} {
		if err := row.do(row.most); err != nil {
			t.Errorf("%s: the most is refused: %v", name, err)
		}
		if err := row.do(row.most + 1); problem.KindOf(err) != problem.Usage {
			t.Errorf("%s: one more is taken: %v", name, err)
		}
	}
}

// settled is a home with two groups.
type settled struct{ Groups }

func (settled) List(context.Context, string) ([]standing.Seen, []string, error) {
	ada, bob := standing.Seen{Folder: "ada"}, standing.Seen{Folder: "bob"}
	ada.Group.Runner.Agent = "echo"
	return []standing.Seen{ada, bob}, []string{"odd"}, nil
}

// A user of the machine is told of the groups that they may talk with, and of no other.
func TestAUserIsToldOfTheGroupsTheyMayTalkWith(t *testing.T) {
	o := options(&verbs{})
	o.Groups = settled{}
	o.People = roles{1001: {{Role: right.Member, Group: "ada"}}, 1002: {}, 1003: {{Role: right.GlobalAdmin}}}
	for uid, want := range map[int][]string{1001: {"ada"}, 1002: {}, 1003: {"ada", "bob"}} {
		out, err := New(o).talkable(t.Context(), audit.Actor{UID: uid}, api.OfUser{})
		got := each(out.Groups, func(g api.Group) string { return g.Name })
		if err != nil || out.Groups == nil || !slices.Equal(got, want) || len(out.Odd) > 0 || uid == 1001 && out.Groups[0].Agent != "echo" {
			t.Errorf("uid %d: %+v, %v", uid, out, err)
		}
	}
	for name, want := range map[string]string{"ada": "ada", "a b": "GROUP", "": "GROUP"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.SetPathValue("group", name)
		if got := groupWord(r); got != want {
			t.Errorf("the group %q is told as %q", name, got)
		}
	}
}

// Who asks too often is told so.
func TestAUserWhoAsksTooOftenIsToldSo(t *testing.T) {
	o := options(&verbs{})
	o.People = roles{}
	h := New(o).userHandler()
	for range userRequests {
		asked(t, h, 1001, "GET /v1/daemon", "")
	}
	if w := asked(t, h, 1001, "POST /v1/groups/ada/say", strings.Repeat("x", userBytes+1)); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "in a short time") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// aged is what is asked, with what was asked about strangers among it.
type aged struct{ *verbs }

func (aged) Approvals(context.Context, bool, int) ([]approval.Approval, error) {
	return []approval.Approval{{ID: "apr-1", Asked: time.Unix(100, 0)}, {ID: "apr-2", Asked: time.Unix(300, 0)}}, nil
}

// TestAnApprovalInAListSaysWhatItIsAbout holds that a person and a program read there what was asked for, and where.
func TestAnApprovalInAListSaysWhatItIsAbout(t *testing.T) {
	rows, err := approvals{&verbs{}, nil}.list(t.Context(), audit.Actor{}, api.Waiting{})
	if err != nil || len(rows) != 1 || rows[0].Wish != "Tell the minutes" || rows[0].Repo != "/srv/clock" || rows[0].Branch != "main" {
		t.Errorf("listed as %+v, %v", rows, err)
	}
}

func TestWhatIsAskedIsListedNewestFirst(t *testing.T) {
	for limit, want := range map[int]string{0: "apr-2 apr-1", 1: "apr-2", 3: "apr-2 apr-1"} {
		rows, err := approvals{aged{&verbs{}}, &strangers{}}.list(t.Context(), audit.Actor{}, api.Waiting{Limit: limit})
		var got []string
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("at most %d: %q, %v", limit, got, err)
		}
	}
}

// An error may carry words of an agent, of a tool or of a repository.
func TestNoSecretLeavesWithAProblem(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	c, _ := serve(t, &verbs{err: problem.Errorf(problem.Conflict, "cat "+planted, "it says %s", planted)})
	p := problem.Of(client.Do(t.Context(), c, api.ChangeConfirm, api.Confirm{Of: "chg-00000001", Code: "ABCD"}))
	if p.Text != "it says [secret: github-token]" || p.Next != "cat [secret: github-token]" {
		t.Errorf("it says %q, then %q", p.Text, p.Next)
	}
}

package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// talk is the chats of a home with one of them; it keeps what was asked of it.
type talk struct {
	Chats
	Afresh
	calls    []string
	account  string // whose chat was opened
	none     error  // there is no such chat
	err      error
	decides  *message.Decision
	planned  schedule.Schedule
	log      *closes
	watching func(ctx context.Context, tell func([]dispatch.Line) error) error
}

func (k *talk) Find(context.Context, string) (dispatch.Seen, error) {
	return dispatch.Seen{Chat: conversation.Chat{ID: "cht-00000001"}}, k.none
}

func (k *talk) Open(_ context.Context, _ group.Folder, account string) (conversation.Chat, error) {
	k.account = account
	return conversation.Chat{ID: "cht-00000001"}, k.none
}

func (k *talk) Stop(_ context.Context, chat id.Chat, _ audit.Actor) (bool, error) {
	k.calls = append(k.calls, "stop "+string(chat))
	return true, k.err
}

func (k *talk) Forget(_ context.Context, chat id.Chat, _ audit.Actor) (id.Session, error) {
	k.calls = append(k.calls, "forget "+string(chat))
	return "echo-1a2b3", k.err
}

func (k *talk) Say(context.Context, dispatch.Said) (message.In, error) {
	return message.In{Decides: k.decides}, k.err
}

func (k *talk) Plan(_ context.Context, _ conversation.Chat, s schedule.Schedule, first string, _ audit.Actor) (message.In, error) {
	k.calls = append(k.calls, "plan "+first)
	k.planned = s
	return message.In{}, k.err
}

func (k *talk) Messages(_ context.Context, _ group.Folder, status []message.Status, limit int) ([]message.In, error) {
	k.calls = append(k.calls, fmt.Sprint(status, limit))
	return []message.In{{ID: "msg-00000001"}}, k.err
}

func (k *talk) Transcript(context.Context, string) (io.ReadCloser, error) { return k.log, k.none }

func (k *talk) Watch(ctx context.Context, _ id.Chat, _ int, tell func([]dispatch.Line) error) error {
	return k.watching(ctx, tell)
}

// closes is a text that says whether it was closed.
type closes struct {
	io.Reader
	closed bool
}

func (c *closes) Close() error {
	c.closed = true
	return nil
}

// What is done to a chat is done to the one that was found, and to none where none was.
func TestNothingIsDoneToAChatThatIsNotThere(t *testing.T) {
	gone := problem.Errorf(problem.NotFound, "sallyport session list", "no such chat")
	for name, row := range map[string]struct {
		do   func(k *talk) (string, error)
		does string
		says string
	}{
		"stop": {func(k *talk) (string, error) {
			out, err := chats{k, nil}.stop(t.Context(), audit.Actor{}, "echo-1a2b3")
			return fmt.Sprint(out.Stopped), err
		}, "stop cht-00000001", "true"},
		"forget": {func(k *talk) (string, error) {
			out, err := afresh{k}.forget(t.Context(), audit.Actor{}, "echo-1a2b3")
			return out.Chat + " " + out.Session, err
		}, "forget cht-00000001", "cht-00000001 echo-1a2b3"},
		"plan": {func(k *talk) (string, error) {
			_, err := chats{k, nil}.plan(t.Context(), audit.Actor{}, api.Plan{Group: "ada", At: "9:00"})
			return "", err
		}, "plan 9:00", ""},
	} {
		k := &talk{}
		if says, err := row.do(k); err != nil || says != row.says || !slices.Equal(k.calls, []string{row.does}) {
			t.Errorf("%s: %q, %v, does %q", name, says, err, k.calls)
		}
		k = &talk{none: gone}
		if _, err := row.do(k); !errors.Is(err, gone) || len(k.calls) > 0 {
			t.Errorf("%s where there is none: %v, does %q", name, err, k.calls)
		}
		k = &talk{err: errRefused}
		if _, err := row.do(k); !errors.Is(err, errRefused) {
			t.Errorf("%s that is refused: %v", name, err)
		}
	}
}

func TestATaskRepeatsInOneWay(t *testing.T) {
	for in, want := range map[api.Plan]schedule.Schedule{
		{Text: "x", At: "9:00"}:                {Kind: schedule.Once, Text: "x"},
		{Text: "x", Cron: "0 9 * * *"}:         {Kind: schedule.Cron, Spec: "0 9 * * *", Text: "x"},
		{Text: "x", Interval: "1h"}:            {Kind: schedule.Interval, Spec: "1h", Text: "x"},
		{Cron: "0 9 * * *", Interval: "1h"}:    {},
		{At: "9", Cron: "* * * * *", Text: ""}: {Kind: schedule.Cron, Spec: "* * * * *"},
	} {
		k := &talk{}
		_, err := chats{k, nil}.plan(t.Context(), audit.Actor{}, in)
		if want.Kind == "" {
			if problem.KindOf(err) != problem.Usage || len(k.calls) > 0 {
				t.Errorf("%+v: %v, does %q", in, err, k.calls)
			}
		} else if err != nil || k.planned != want {
			t.Errorf("%+v: %+v, %v", in, k.planned, err)
		}
	}
}

func TestMessagesAreListedByStatusesThatThereAre(t *testing.T) {
	k := &talk{}
	all, err := chats{k, nil}.messages(t.Context(), audit.Actor{}, api.Messages{Status: []string{"dead", "pending"}, Limit: 7})
	if err != nil || len(all) != 1 || !slices.Equal(k.calls, []string{"[dead pending] 7"}) {
		t.Errorf("%+v, %v, asks %q", all, err, k.calls)
	}
	k = &talk{}
	if _, err := (chats{k, nil}).messages(t.Context(), audit.Actor{}, api.Messages{Status: []string{"dead", "lost"}}); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "lost") || len(k.calls) > 0 {
		t.Errorf("a status that is none: %v, asks %q", err, k.calls)
	}
}

func TestATranscriptIsCopiedAndClosed(t *testing.T) {
	for name, copied := range map[string]func(log *closes, none error, out io.Writer) error{
		"of a chat": func(log *closes, none error, out io.Writer) error {
			return chats{&talk{log: log, none: none}, nil}.transcript(t.Context(), "echo-1a2b3", out)
		},
		"of a change": func(log *closes, none error, out io.Writer) error {
			return sessions{logged{log: log, none: none}}.transcript(t.Context(), api.Transcript{}, out)
		},
	} {
		log, out := &closes{Reader: strings.NewReader("{}\n")}, &strings.Builder{}
		if err := copied(log, nil, out); err != nil || out.String() != "{}\n" || !log.closed {
			t.Errorf("%s: %q, %v, closed %t", name, out, err, log.closed)
		}
		log = &closes{Reader: strings.NewReader("{}\n")}
		if err := copied(log, errRefused, out); !errors.Is(err, errRefused) || log.closed || out.Len() > 3 {
			t.Errorf("%s that is not there: %v", name, err)
		}
		if err := copied(&closes{Reader: errReader{}}, nil, out); !errors.Is(err, errPlain) {
			t.Errorf("%s that cannot be read: %v", name, err)
		}
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errPlain }

// logged is a change whose agent has left a transcript.
type logged struct {
	Sessions
	log  *closes
	none error
}

func (l logged) Transcript(context.Context, id.Change, id.Session) (io.ReadCloser, error) {
	return l.log, l.none
}

// The code of a host change is given with the yes that let it land, and with nothing else.
func TestACodeIsGivenOnlyWithAYesThatWasTaken(t *testing.T) {
	yes := &message.Decision{Kind: decide.Decided, Does: decide.Approve}
	no := &message.Decision{Kind: decide.Decided, Does: decide.Refuse}
	late := &message.Decision{Kind: decide.Decided, Does: decide.Approve, Problem: problem.Conflict}
	for name, row := range map[string]struct {
		decides *message.Decision
		err     error
		want    bool
	}{
		"a yes": {yes, nil, true}, "a yes that was not taken": {yes, errRefused, false}, "a no": {no, nil, false},
		"a yes that came too late": {late, nil, false}, "words for the agent": {nil, nil, false},
	} {
		m, err := chats{&talk{decides: row.decides, err: row.err}, &verbs{}}.say(t.Context(), audit.Actor{}, api.Say{Group: "host", Text: "1"})
		if (m.Code != "") != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s: the code %q, %v", name, m.Code, err)
		}
	}
	v := &verbs{}
	if out, err := (approvals{v, nil}).approve(t.Context(), audit.Actor{}, api.Approve{Of: "apr-00000001", Digest: "d1"}); err != nil || out.Code == "" {
		t.Errorf("at the command line: %+v, %v", out, err)
	}
	v.err = errRefused
	if out, err := (approvals{v, nil}).approve(t.Context(), audit.Actor{}, api.Approve{Of: "apr-00000001", Digest: "d1"}); !errors.Is(err, errRefused) || out.Code != "" {
		t.Errorf("a yes that was not taken at the command line: %+v, %v", out, err)
	}
}

func TestAMessageSaysWhatItDecides(t *testing.T) {
	for want, d := range map[string]*message.Decision{
		"": nil, "approve": {Kind: decide.Decided, Does: decide.Approve},
		api.DecidesNothing: {Kind: decide.Decided, Does: decide.Approve, Problem: problem.Conflict},
	} {
		if got := messageOf(message.In{Decides: d}).Decides; got != want {
			t.Errorf("%+v decides %q, want %q", d, got, want)
		}
	}
	if got := messageOf(message.In{Decides: &message.Decision{Kind: decide.Which, Does: decide.Approve}}).Decides; got != api.DecidesNothing {
		t.Errorf("words that may mean several cards decide %q", got)
	}
}

func TestALineHasWhatItsKindNames(t *testing.T) {
	at := time.Unix(1e9, 0)
	if got := lineOf(dispatch.Line{In: &message.In{ID: "msg-1"}}); got.In == nil || got.In.ID != "msg-1" || got.Out != nil {
		t.Errorf("what was said: %+v", got)
	}
	for name, row := range map[string]struct {
		out    message.Out
		unseen bool
	}{
		"a card that was shown": {message.Out{ID: "out-1", Card: message.CardApproval, Delivered: &at}, false}, "one that was not": {message.Out{ID: "out-1", Card: message.CardApproval}, true},
		"words": {message.Out{ID: "out-1"}, false}, "a question of the agent's": {message.Out{ID: "out-1", Card: message.CardQuestion}, false},
	} {
		if got := lineOf(dispatch.Line{Out: &row.out}); got.Out == nil || got.Out.ID != "out-1" || got.Out.Unseen != row.unseen || got.In != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// pieces keeps what was written, piece by piece; it fails once it has so many.
type pieces struct {
	all  []string
	most int
}

func (p *pieces) Write(piece []byte) (int, error) {
	if p.most > 0 && len(p.all) == p.most {
		return 0, errPlain
	}
	p.all = append(p.all, string(piece))
	return len(piece), nil
}

// Lines that are told together go together, up to a size, and each goes once.
func TestLinesGoTogetherUpToASize(t *testing.T) {
	line := func(size int) dispatch.Line { return dispatch.Line{Text: strings.Repeat("x", size)} }
	bare, err := written(line(0))
	if err != nil {
		t.Fatal(err)
	}
	text := len(`,"text":""`) // of a line that has one
	fills := pieceMax - len(bare) - text
	for name, row := range map[string]struct {
		lines []dispatch.Line
		want  []int // lines of each piece
	}{
		"none": {nil, nil}, "one": {[]dispatch.Line{line(1)}, []int{1}}, "a few": {slices.Repeat([]dispatch.Line{line(1)}, 3), []int{3}},
		"one that fills a piece":      {[]dispatch.Line{line(fills), line(1)}, []int{1, 1}},
		"one that fills nearly one":   {[]dispatch.Line{line(fills - 1), line(1), line(1)}, []int{2, 1}},
		"one larger than any":         {[]dispatch.Line{line(2 * pieceMax), line(1), line(1)}, []int{1, 2}},
		"one that is alone and large": {[]dispatch.Line{line(2 * pieceMax)}, []int{1}},
	} {
		p := &pieces{}
		if err := writeLines(p, row.lines); err != nil {
			t.Error(err)
		}
		var got []int
		for _, piece := range p.all {
			got = append(got, strings.Count(piece, "\n"))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: pieces of %d lines, want %d", name, got, row.want)
		}
	}
	if err := writeLines(&pieces{most: 1}, []dispatch.Line{line(pieceMax), line(1)}); !errors.Is(err, errPlain) {
		t.Errorf("who is gone is not noticed: %v", err)
	}
}

// Where nothing happens a beat goes now and then, for as long as the watch lasts. It ends as the controller says.
func TestAWatchOfAChatBeatsUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &talk{watching: func(_ context.Context, tell func([]dispatch.Line) error) error {
			time.Sleep(2*heartbeatTime + time.Second)
			if err := tell([]dispatch.Line{{Text: "last"}}); err != nil {
				return err
			}
			return errRefused
		}}
		out := &pieces{}
		err := chats{k, nil}.watch(t.Context(), audit.Actor{}, api.WatchChat{Group: "ada"}, out)
		if !errors.Is(err, errRefused) || len(out.all) != 3 || !strings.Contains(out.all[0], api.ChatBeat) || !strings.Contains(out.all[2], "last") {
			t.Errorf("%v, told %q", err, out.all)
		}
		time.Sleep(2 * heartbeatTime)
		if synctest.Wait(); len(out.all) != 3 {
			t.Errorf("who watches no more is told %q", out.all[3:])
		}

		k.watching = func(ctx context.Context, _ func([]dispatch.Line) error) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		if err := (chats{k, nil}).watch(t.Context(), audit.Actor{}, api.WatchChat{Group: "ada"}, &pieces{most: 1}); !errors.Is(err, errPlain) {
			t.Errorf("a beat that nobody reads ends it with %v", err)
		}
		k.none = errRefused
		if err := (chats{k, nil}).watch(t.Context(), audit.Actor{}, api.WatchChat{Group: "ada"}, out); !errors.Is(err, errRefused) {
			t.Errorf("a chat that cannot be opened: %v", err)
		}
	})
}

// slow is a reader that takes one thing, and the next only once it is let.
type slow struct {
	taken chan string
	let   chan struct{}
}

func (s slow) Write(piece []byte) (int, error) {
	s.taken <- string(piece)
	<-s.let
	return len(piece), nil
}

// What writes to a connection has ended before its watch has: else it would write into the next answer.
func TestAWatchOfAChatEndsWithItsBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		k := &talk{watching: func(context.Context, func([]dispatch.Line) error) error {
			<-over
			return nil
		}}
		out := slow{make(chan string), make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- chats{k, nil}.watch(t.Context(), audit.Actor{}, api.WatchChat{Group: "ada"}, out) }()
		if beat := <-out.taken; !strings.Contains(beat, api.ChatBeat) {
			t.Errorf("told %q", beat)
		}
		close(over)
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("the watch has ended, and a beat is being written")
		}
		close(out.let)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Who watches is told what is said, in lines, as whoever the kernel says they are.
func TestAWatchOfAChatIsServedAsLines(t *testing.T) {
	o := options(&verbs{})
	o.People = roles{1001: {{Role: right.Member, Group: "ada"}}}
	k := &talk{watching: func(_ context.Context, tell func([]dispatch.Line) error) error {
		return tell([]dispatch.Line{{Text: "hello"}})
	}}
	o.Chats = k
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, userOf(1001)), http.MethodGet, "/v1/groups/ada/watch", nil)
	r.Header.Set(api.HeaderVersion, strconv.Itoa(api.Version))
	r.Header.Set(api.HeaderBuild, api.Build())
	w := &flushed{ResponseRecorder: httptest.NewRecorder()}
	New(o).userHandler().ServeHTTP(w, r)
	if w.status != http.StatusOK || w.Header().Get("Content-Type") != api.LinesKind || !strings.Contains(w.Body.String(), "hello") || k.account != "1001" {
		t.Errorf("%d %v %q, opened for %q", w.status, w.Header(), w.Body, k.account)
	}
}

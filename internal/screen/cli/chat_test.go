package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
	"sallyport/internal/door/api"
)

// room is what one watch of a chat is told: what was there before, and then what comes until it is closed.
type room struct {
	before []api.ChatLine
	feed   chan api.ChatLine // nil = nothing comes
}

func (d *daemon) chatRoutes(mux *http.ServeMux, answer func(string, func(*http.Request) any)) {
	answer("POST /v1/groups/{group}/say", func(r *http.Request) any {
		d.note("say " + r.PathValue("group") + body(r))
		return api.Message{ID: "msg-00000001", Text: "hi", Status: api.MessagePending, At: time.Now().Add(-time.Hour), Trigger: true}
	})
	answer("POST /v1/cards/{card}/answer", func(r *http.Request) any {
		d.note("answer " + r.PathValue("card") + body(r))
		return api.Message{Status: api.MessageCompleted, Reason: "The answer of ann is kept." + hostile}
	})
	mux.HandleFunc("GET /v1/groups/{group}/watch", func(w http.ResponseWriter, r *http.Request) {
		d.note("watch " + r.URL.RawQuery)
		d.mu.Lock()
		in := d.rooms[0]
		d.rooms = d.rooms[min(1, len(d.rooms)-1):]
		d.mu.Unlock()
		send := func(l api.ChatLine) {
			json.NewEncoder(w).Encode(l)
			w.(http.Flusher).Flush()
		}
		for _, l := range in.before {
			send(l)
		}
		for {
			select {
			case l, more := <-in.feed:
				if !more {
					return
				}
				send(l)
			case <-r.Context().Done():
				return
			}
		}
	})
	answer("GET /v1/chats", func(*http.Request) any { return d.chats })
	answer("GET /v1/chats/{chat}", func(*http.Request) any { return d.chats[0] })
	answer("POST /v1/chats/{chat}/stop", func(r *http.Request) any { d.note("stop " + r.PathValue("chat")); return api.Stopped{Stopped: true} })
	answer("GET /v1/messages", func(r *http.Request) any {
		return slices.DeleteFunc(slices.Clone(d.messages), func(m api.Message) bool {
			only := r.URL.Query()["status"]
			return len(only) > 0 && !slices.Contains(only, m.Status)
		})
	})
	answer("GET /v1/messages/{message}", func(*http.Request) any {
		return api.Answered{Message: d.messages[0], Answer: []api.Sent{*out("out-00000001", api.LaneTalk, 1, "yes"+hostile).Out}}
	})
	answer("GET /v1/drops", func(*http.Request) any { return d.drops })
	answer("GET /v1/channels", func(*http.Request) any { return d.channels })
	answer("GET /v1/tasks", func(*http.Request) any { return d.messages })
	answer("POST /v1/groups/{group}/tasks", func(r *http.Request) any { d.note("task " + body(r)); return d.messages[0] })
}

func in(status string, turn int) api.ChatLine {
	m := api.Message{ID: "msg-00000001", Text: "hi", Status: status, Turn: turn, At: time.Now(), Trigger: true}
	if status == api.MessageCompleted || status == api.MessageDead {
		m.Ended = &m.At
	}
	if status == api.MessageDead {
		m.Reason = "five tries failed" + hostile
	}
	return api.ChatLine{Kind: api.ChatIn, At: m.At, In: &m}
}

func out(id, lane string, turn int, text string) api.ChatLine {
	at := time.Now()
	return api.ChatLine{Kind: api.ChatOut, At: at, Out: &api.Sent{ID: id, Lane: lane, Turn: turn, Text: text, At: at}}
}

var ready = api.ChatLine{Kind: api.ChatReady}

func TestOneThingIsSaidAndOnlyItsAnswerIsPrinted(t *testing.T) {
	ends := make(chan api.ChatLine, 3)
	ends <- out("out-00000009", api.LaneNotice, 3, "please hold"+hostile)
	ends <- in(api.MessageProcessing, 3)
	ends <- in(api.MessageCompleted, 3)
	word := func(decides, reason string) api.ChatLine {
		l := in(api.MessageCompleted, 0)
		l.In.Decides, l.In.Reason = decides, reason
		return l
	}
	card := func(id, lane, kind, text string) api.ChatLine {
		l := out(id, lane, 0, text)
		l.Out.Card, l.Out.Unseen, l.Out.At = kind, kind != api.CardDiff, time.Now().Add(-2*time.Hour)
		return l
	}
	for name, c := range map[string]struct {
		rooms    []room
		args     []string
		in       string
		code     int
		out, err string
	}{
		"answered while it waits": {rooms: []room{{before: []api.ChatLine{out("out-00000001", api.LaneTalk, 2, "old"), ready}, feed: ends},
			{before: []api.ChatLine{out("out-00000001", api.LaneTalk, 2, "old"), in(api.MessageCompleted, 3), out("out-00000002", api.LaneTalk, 3, "first"), out("out-00000003", api.LaneTalk, 3, "second\x1b[2J"), ready}}},
			args: []string{"--say", "hi"}, out: "first\nsecond\\x1b[2J\n", err: "[sallyport] please hold"},
		"answered before":        {rooms: []room{{before: []api.ChatLine{in(api.MessageFolded, 0), in(api.MessageCompleted, 1), out("out-00000002", api.LaneTalk, 1, "yes"), ready}}}, in: "hi\n", out: "yes\n"},
		"nothing is sent":        {rooms: []room{{before: []api.ChatLine{in(api.MessageCompleted, 1), ready}}}, args: []string{"--say", "hi"}, err: "echo has read it and sends nothing"},
		"it decides":             {rooms: []room{{before: []api.ChatLine{word("approve", "Ann approved it."), out("out-00000002", api.LaneNotice, 0, "Ann approved it."), ready}}}, args: []string{"--say", "hi"}, err: "[sallyport] Ann approved it.\n"},
		"it decides, untold":     {rooms: []room{{before: []api.ChatLine{word("refuse", "Ann refused it."), ready}}}, args: []string{"--say", "hi"}, err: "[sallyport] Ann refused it.\n"},
		"it decides nothing":     {rooms: []room{{before: []api.ChatLine{word(api.DecidesNothing, "Nothing is decided."), ready}}}, args: []string{"--say", "hi"}, code: exitError, err: "[sallyport] Nothing is decided.\n"},
		"a card of before":       {rooms: []room{{before: []api.ChatLine{card("out-00000004", api.LaneNotice, api.CardDiff, "+a"), card("out-00000005", api.LaneNotice, "approval", "May it land?"), card("out-00000006", api.LaneTalk, "trial", "I'm back"), word(api.DecidesNothing, "Nothing is decided."), ready}}}, args: []string{"--say", "hi"}, code: exitError, err: "[sallyport] +a\n[sallyport] May it land?\n| I'm back\n[sallyport] Nothing is decided.\n"},
		"given up":               {rooms: []room{{before: []api.ChatLine{in(api.MessageDead, 1), ready}}}, args: []string{"--say", "hi"}, code: exitAgentFailed, err: "next: sallyport message retry msg-00000001"},
		"no answer in time":      {rooms: []room{{before: []api.ChatLine{ready}}}, args: []string{"--say", "hi", "--wait", "20ms"}, code: exitWaiting, err: "msg-00000001 stays accepted and is answered later\nnext: sallyport message show msg-00000001"},
		"the daemon was stopped": {rooms: []room{{before: []api.ChatLine{ready}, feed: overFeed()}}, args: []string{"--say", "hi"}, code: exitWaiting, err: "the daemon was stopped before the answer came"},
		"no message":             {in: " \n", code: exitUsage, err: "holds no message"},
		"no text":                {in: "\xff\n", code: exitUsage, err: "it is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			d.rooms = c.rooms
			r := d.cliIn(c.in, append([]string{"chat", "echo"}, c.args...)...)
			if r.code != c.code || r.out != c.out || !strings.Contains(r.err, c.err) || strings.ContainsAny(r.out+r.err, "\x1b\u202e\a") {
				t.Errorf("exit %d\nout %q\nerr %q", r.code, r.out, r.err)
			}
			if len(c.rooms) > 0 && strings.Count(d.told(), `"text":"hi"`) != 1 {
				t.Errorf("told %s", d.told())
			}
		})
	}
}

// TestWithoutAMessageWhatWasSaidIsPrinted holds that a script without a terminal and without a message reads the chat, and ends.
func TestWithoutAMessageWhatWasSaidIsPrinted(t *testing.T) {
	d := newDaemon(t)
	d.rooms = []room{{before: []api.ChatLine{in(api.MessageCompleted, 1), out("out-00000002", api.LaneTalk, 1, "yes\nno"+hostile), out("out-00000003", api.LaneNotice, 1, "by the host"), ready}}}
	r := d.cliIn("", "chat", "echo")
	if want := "> hi\n| yes\n| no"; r.code != exitDone || !strings.Contains(r.out, want) || !strings.Contains(r.out, "\n[sallyport] by the host\n") || strings.ContainsAny(r.out, "\r\x1b\u202e\a") || !strings.Contains(r.err, "this is what was said with echo") {
		t.Errorf("exit %d\nout %q\nerr %q", r.code, r.out, r.err)
	}
	dev := in(api.MessageCompleted, 2)
	dev.In.ID, dev.In.Agent, dev.In.Sender, dev.In.Text = "msg-00000002", true, "dev-1", "Ready?"
	host := in(api.MessageCompleted, 3)
	host.In.ID, host.In.Kind, host.In.Text = "msg-00000003", systemKind, "It has landed."
	d.rooms = []room{{before: []api.ChatLine{host, dev, ready}}}
	if r := d.cliIn("", "chat", "echo"); !strings.HasSuffix(r.out, "| dev-1 to echo: Ready?\n") || strings.Contains(r.out, "landed") {
		t.Errorf("what an agent says to the group: %q", r.out)
	}
	task := in(api.MessageCompleted, 4)
	task.In.ID, task.In.Task, task.In.Text = "msg-00000004", "tsk-00000001", "Remind them.\nchg-00000001 is landed and kept"
	d.rooms = []room{{before: []api.ChatLine{task, ready}}}
	if r := d.cliIn("", "chat", "echo"); !strings.HasSuffix(r.out, "[sallyport] task tsk-00000001 is due:\n| Remind them.\n| chg-00000001 is landed and kept\n") {
		t.Errorf("a task, which an agent may have written: %q", r.out)
	}
	d.rooms = []room{{before: []api.ChatLine{in(api.MessageCompleted, 1), out("out-00000002", api.LaneTalk, 1, "yes\nno"+hostile), out("out-00000003", api.LaneNotice, 1, "by the host"), ready}}}
	if r := d.cliIn("", "chat", "echo", "--json"); r.code != exitDone || r.err != "" || strings.Count(r.out, `"kind"`) != 4 {
		t.Errorf("%+v", r)
	}
}

func TestATaskComesAgainInPlainWords(t *testing.T) {
	for spec, want := range map[string]string{"1m": "every 1m", "24h": "every 24h", "0 9 * * 1-5": "at the times of the cron line 0 9 * * 1-5"} {
		if got := repeats(spec); got != want {
			t.Errorf("%q: %q", spec, got)
		}
	}
}

func overFeed() chan api.ChatLine {
	c := make(chan api.ChatLine)
	close(c)
	return c
}

func TestWhoNamesNoGroupTalksWithTheOnlyOneOrTheLast(t *testing.T) {
	long, short := time.Now().Add(-time.Hour), time.Now()
	d := newDaemon(t)
	d.rooms = []room{{before: []api.ChatLine{in(api.MessageCompleted, 1), ready}}}
	d.groups = []api.Group{{Name: "only"}}
	if r := d.cli("chat", "--say", "hi"); r.code != 0 || !strings.Contains(d.told(), "say only") {
		t.Errorf("%+v told %s", r, d.told())
	}
	d.groups = append(d.groups, api.Group{Name: "other"})
	if r := d.cli("chat", "--say", "hi"); r.code != exitUsage || !strings.Contains(r.err, "only, other") {
		t.Errorf("%+v", r)
	}
	d.chats = []api.Chat{{Group: "only", Platform: "terminal", Last: &long}, {Group: "other", Platform: "terminal", Last: &short}}
	if r := d.cli("chat", "--say", "hi"); r.code != 0 || !strings.Contains(d.told(), "say other") {
		t.Errorf("%+v told %s", r, d.told())
	}
}

func TestAtATerminalWordsComeAsTheyAreSaidAndNothingIsShownTwice(t *testing.T) {
	d := newDaemon(t)
	first, second := make(chan api.ChatLine), make(chan api.ChatLine)
	history := []api.ChatLine{out("out-00000001", api.LaneTalk, 1, "good morning\x1b[2J"), ready}
	d.rooms = []room{{before: history, feed: first}, {before: slices.Insert(slices.Clone(history), 1, in(api.MessageCompleted, 2), out("out-00000002", api.LaneTalk, 2, "Hello there")), feed: second}}
	s := d.sit(t, "chat", "echo")
	if shown := s.see(`\| good morning`); strings.Contains(shown, "[2J") {
		t.Errorf("what was said is not harmless: %q", shown)
	}
	s.press("hi\\\nagain\n")
	s.see(`> hi\r+\n. again`)
	first <- in(api.MessageProcessing, 2)
	first <- api.ChatLine{Kind: api.ChatTurn, Turn: 2, At: time.Now().Add(-2 * time.Second)}
	first <- api.ChatLine{Kind: api.ChatSaid, Turn: 2, Text: "Hel"}
	s.see(`\| Hel`)
	first <- api.ChatLine{Kind: api.ChatTool, Turn: 2, Tool: &api.InFlight{Name: "bash", Title: "make\x1b[2J", Started: time.Now().Add(-3 * time.Second)}}
	s.see(`echo is at work [\ds.]+, tool bash \(make\\x1b\[2J\) 3`)
	first <- api.ChatLine{Kind: api.ChatSaid, Turn: 2, Text: "lo<internal>hidden"}
	s.see(`\| Hello`)
	first <- out("out-00000005", api.LaneNotice, 2, "a word of the host's")
	s.see(`\[sallyport\] a word of the host's`)
	card := out("out-00000007", api.LaneTalk, 2, "I'm back")
	card.Out.Card, card.Out.Change, card.Out.Digits = "trial", "chg-00000001"+hostile, 11
	first <- card
	if shown := s.see(`this is card 11, about chg-00000001`); !strings.Contains(shown, "| I'm back") {
		t.Errorf("message 1 is shown as %q", shown)
	}
	first <- out("out-00000002", api.LaneTalk, 2, "Hello there")
	first <- in(api.MessageCompleted, 2)
	if shown := s.see(`\| Hello there`); strings.Contains(shown, "hidden") {
		t.Errorf("what the agent says to itself is shown: %q", shown)
	}

	close(first) // the daemon is stopped, and what is said next finds another
	s.see("the daemon was stopped")
	s.press("on\n")
	host := in(api.MessagePending, 3)
	host.In.ID, host.In.Kind, host.In.Text, host.In.Ended = "msg-00000004", systemKind, "It has not landed.", nil
	second <- host
	second <- out("out-00000003", api.LaneTalk, 3, "new")
	if shown := s.see(`\| new`); strings.Contains(shown, "Hello") || strings.Contains(shown, "morning") {
		t.Errorf("shown twice: %q", shown)
	}
	s.press("/quit\n")
	if shown := s.see("to come back: sallyport"); !strings.Contains(shown, "nothing of yours waits") {
		t.Errorf("a message of the host's is told as one of the person's: %q", shown)
	}
	told := d.told()
	if code := s.leaves(); code != exitDone || !strings.Contains(told, `"text":"hi\nagain"`) {
		t.Errorf("exit %d told %s", code, told)
	}
	if strings.Count(told, "watch history=200") != 2 || strings.Count(told, "watch ") != 2 { // looking further back than at first shows what was left out
		t.Errorf("how far back was looked: %s", told)
	}
}

// TestWhatCameOfAnAnswerAboutAStrangerIsTold holds that no message stays open for it.
func TestWhatCameOfAnAnswerAboutAStrangerIsTold(t *testing.T) {
	d := newDaemon(t)
	d.rooms = []room{{before: []api.ChatLine{ready}, feed: make(chan api.ChatLine)}}
	s := d.sit(t, "chat", "host")
	s.see("host")
	for range 2 {
		s.press("/answer qst-00000001 allow\n")
		if shown := s.see(`\[sallyport\] The answer of ann is kept`); !strings.Contains(shown, "> /answer qst-00000001 allow") {
			t.Errorf("shown: %q", shown)
		}
	}
	s.press("/quit\n")
	if code := s.leaves(); code != exitDone || strings.Count(d.told(), `answer qst-00000001{"text":"allow"}`) != 2 {
		t.Errorf("exit %d told %s", code, d.told())
	}
}

func TestWhoLeavesIsToldWhichCardOfTheChatWaitsForThem(t *testing.T) {
	card := out("out-00000007", api.LaneNotice, 2, "May it land?")
	card.Out.Card, card.Out.Change, card.Out.Digits = "approval", "chg-00000001", 11
	onTrial := api.Trial{Handshake: api.Message1Sent, LeftMS: 90_000}
	for name, c := range map[string]struct {
		change api.Change
		err    error
		want   string
	}{
		"a yes":            {change: api.Change{ID: "chg-00000001", State: api.AwaitingApproval}, want: "you left\nchg-00000001 waits for your answer: sallyport approve chg-00000001\n"},
		"a trial":          {change: api.Change{ID: "chg-00000001", State: api.InTrial, Trial: &onTrial}, want: "you left\nchg-00000001 waits for your answer, 1m30s left: sallyport confirm chg-00000001\n"},
		"it was answered":  {change: api.Change{ID: "chg-00000001", State: api.Landing}, want: "you left; nothing of yours waits for echo\n"},
		"of another chat":  {change: api.Change{ID: "chg-00000002", State: api.AwaitingApproval}, want: "you left; nothing of yours waits for echo\n"},
		"it is not known":  {err: problem.Errorf(problem.Unavailable, "", "no"), want: "you left\n"},
		"it asks no more":  {change: api.Change{ID: "chg-00000001", State: api.InTrial, Trial: &api.Trial{Handshake: api.Confirmed}}, want: "you left; nothing of yours waits for echo\n"},
		"it cannot return": {change: api.Change{ID: "chg-00000001", State: api.RollbackFailed}, want: "you left\nchg-00000001 waits for your answer: sallyport change show chg-00000001\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			d.detail.Change = c.change
			d.rooms = []room{{before: []api.ChatLine{card, ready}, feed: make(chan api.ChatLine)}}
			s := d.sit(t, "chat", "echo")
			s.see(`this is card 11`)
			d.mu.Lock()
			d.err = c.err
			d.mu.Unlock()
			s.press("/quit\n")
			if shown := strings.ReplaceAll(s.see("to come back: sallyport"), "\r", ""); !strings.Contains(shown, c.want+"to come back") {
				t.Errorf("shown: %q", shown)
			}
			s.leaves()
		})
	}
}

func TestWhatIsTypedIsEditedKeyByKey(t *testing.T) {
	for _, c := range []struct{ keys, message string }{
		{"hello\n", "hello"},
		{"hällo\x7f\x7f\x7f\x7fi\n", "hi"},
		{"one \\\ntwo\n", "one \ntwo"},
		{"ac\x1b[Db\n", "abc"},
		{"b\x01a\x05c\n", "abc"},
		{"one two\x17three\n", "one three"},
		{"gone\x15stays\n", "stays"},
		{"\x1b[200~two\rrows\x1b[201~!\n", "two\nrows!"},
		{"\x1b[Aup\n", "up"},
		{"a\x01\x1b[3~b\n", "b"},
	} {
		var e editor
		var got string
		for _, k := range []byte(c.keys) {
			if m, whole, quit := e.key(k); whole || quit {
				got = m
			}
		}
		if got != c.message {
			t.Errorf("%q is %q, want %q", c.keys, got, c.message)
		}
	}
	var e editor
	if _, _, quit := e.key(endOfInputKey); !quit {
		t.Error("Ctrl-D with nothing typed does not leave")
	}
	for _, k := range []byte("abcdefgh\x1b[200~\n\x1b[201~\xe4\xb8\x96x") {
		e.key(k)
	}
	rows, row, col := e.rows(8)
	if fmt.Sprintf("%q %d %d", rows, row, col) != `["> abcde" ". fgh" ". 世x"] 2 5` {
		t.Errorf("%q %d %d", rows, row, col)
	}
}

func TestWhatAnAgentSaysToItselfIsNotShownNorItsBeginning(t *testing.T) {
	for said, want := range map[string]string{
		"hello": "hello", "a<int": "a", "a<internal>x": "a", "a<internal>x</internal>b": "ab", "a <b> c": "a <b> c", " \n": "",
		"hello <internal>secret</internal> world": "hello  world", "a<": "a",
	} {
		if got := visible(said); got != want {
			t.Errorf("%q shows %q, want %q", said, got, want)
		}
	}
}

func TestWhatWasSentTakesThePlaceOfWhatWasSaid(t *testing.T) {
	s := sheet{width: 20, terminal: true}
	w := words{said: "one\ntwo\nthree\nfour"}
	leave, live := w.live(s, 2)
	if fmt.Sprint(leave, live) != "[| one | two] [| three | four]" {
		t.Fatal(leave, live)
	}
	if rows, other := w.whole(s, "one\ntwo\nthree\nfour\nfive"); other || len(rows) != 3 {
		t.Error(rows, other)
	}
	if rows, other := w.whole(s, "one\nREDACTED\nthree"); !other || len(rows) != 3 {
		t.Error(rows, other)
	}
	if !w.begins("one\ntwo\nthree\nfour\nfive") || w.begins("else") {
		t.Error("what was said so far is not known again")
	}
}

func TestMessagesTasksAndSessionsAreListedAndShownHarmless(t *testing.T) {
	d := newDaemon(t)
	at := time.Now()
	d.drops = []api.Drop{{Reason: "no mention", Count: 2}, {Reason: "a stranger" + hostile, Count: 1}}
	d.chats = []api.Chat{{ID: "cht-00000001", Group: "echo", Platform: "terminal", Session: "echo-1a2b3", Agent: "echo", Dead: 1, Working: true, Last: &at}}
	d.messages = []api.Message{{ID: "msg-00000001", Chat: "cht-00000001", Sender: hostile, Text: "do" + hostile, Status: api.MessageDead, Tries: 5, Reason: hostile, Task: "tsk-00000001", Repeat: "0 9 * * *", At: at, Due: at}}
	waits := api.Message{ID: "msg-00000002", Chat: "cht-00000001", Text: "water", Status: api.MessagePending, Task: "tsk-00000002", Repeat: "24h", At: at, Due: at}
	far := waits
	far.Task, far.Zone = "tsk-00000003", "Pacific/Kiritimati"
	d.messages = append(d.messages, waits, far)
	there := at.In(zone.Load(far.Zone)).Format("2006-01-02 15:04:05")
	for _, c := range []struct {
		words string
		want  []string
	}{
		{"session list", []string{"cht-00000001", "echo-1a2b3", "working"}},
		{"session show cht-00000001", []string{"with echo, working", "sallyport session log echo-1a2b3", "sallyport message list --group echo --status dead"}},
		{"status", []string{"chats   1 message given up; sallyport message list --status dead", "chats   3 messages dropped in the last 7 days: 2 no mention, 1 a",
			"tasks   2 tasks, the next at ", "tasks   1 task stopped; sallyport schedule list"}},
		{"session stop cht-00000001", []string{"ended"}},
		{"message list --status dead", []string{"msg-00000001", "echo", "tsk-00000001", "dead"}},
		{"message show msg-00000001", []string{"to echo", "5 failed", "| do", "| yes", "answered  20", "next: sallyport message retry msg-00000001"}},
		{"schedule list", []string{"tsk-00000001  echo   stopped", "0 9 * * *", "tsk-00000001 is stopped: ", "; next: sallyport message retry msg-00000001\n",
			"tsk-00000002  echo   " + at.Format("2006-01-02 15:04:05") + " ", "tsk-00000003  echo   " + there + " (Pacific/Kiritimati)"}},
		{"schedule add echo text --cron 0", []string{"tsk-00000001 scheduled: echo is told at", ", then at the times of the cron line 0 9 * * *"}},
	} {
		r := d.cli(strings.Fields(c.words)...)
		if r.code != 0 || strings.ContainsAny(r.out, "\x1b\u202e\a\r") {
			t.Errorf("%s: exit %d out %q err %q", c.words, r.code, r.out, r.err)
		}
		for _, want := range c.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: %q is not in %q", c.words, want, r.out)
			}
		}
	}
	for _, words := range []string{"message list --status gone", "schedule add echo text", "message show chg-00000001", "session show msg-00000001", "chat echo --wait -1s --say x"} {
		if r := d.cli(strings.Fields(words)...); r.code != exitUsage {
			t.Errorf("%s: %+v", words, r)
		}
	}
}

// TestStatusAndApprovalsTellOfPlatforms holds what a person sees of channels that are down, of strangers who wait, and of permissions that are off
// (CH-058, CH-059).
func TestStatusAndApprovalsTellOfPlatforms(t *testing.T) {
	d := newDaemon(t)
	d.open = true
	d.channels = []api.Channel{
		{Name: "team", Platform: "irc", Status: api.ChannelConnected, Account: "port", Dead: 3, Failed: 2},
		{Name: "work", Platform: "slack", Status: api.ChannelAway, Reason: "invalid_auth" + hostile, Dead: 1},
	}
	r := d.cli("status")
	for _, want := range []string{
		"permissions are off: everybody on a platform may talk", "channels 1 of 2 connected; sallyport channel list\n",
		"team: 2 messages of the last day will never arrive; sallyport channel show team\n", "work: not connected: invalid_auth", "sallyport channel show work\n",
	} {
		if !strings.Contains(r.out, want) || r.code != 0 || strings.ContainsAny(r.out, "\x1b\u202e\a\r") {
			t.Errorf("status: %q is not in %q, or it is not harmless (exit %d, %q)", want, r.out, r.code, r.err)
		}
	}

	if n := strings.Count(r.out, "will never arrive"); n != 1 {
		t.Errorf("what was given up long ago is told: %q", r.out)
	}

	d.question.Approval = api.Approval{ID: "qst-00000001", Kind: "sender", Decision: api.Pending, Wish: "🙋 “eve” wants to talk" + strings.Repeat(" there", 20) + " in room-2" + hostile}
	d.question.Approval.Reason = d.question.Approval.Wish
	r = d.cli("approval", "list")
	if n := strings.Count(r.out, "“eve”"); n != 1 {
		t.Errorf("it is said %d times: %q", n, r.out)
	}
	for _, want := range []string{"qst-00000001  (sender)  pending", "🙋 “eve” wants to talk", "there in room-2", "is answered: sallyport approval show qst-00000001\n"} {
		if !strings.Contains(r.out, want) || strings.ContainsAny(r.out, "\x1b\u202e\a\r") {
			t.Errorf("approval list: %q is not in %q, or it is not harmless (exit %d, %q)", want, r.out, r.code, r.err)
		}
	}
}

// TestStatusCountsStrangersAndPlacesThatWait is CH-060: who looks at status sees that somebody waits, and the command to run next.
func TestStatusCountsStrangersAndPlacesThatWait(t *testing.T) {
	d := newDaemon(t)
	d.detail.Change.State = api.Finalized
	if r := d.cli("status"); strings.Contains(r.out, "waiting for you") || r.code != 0 {
		t.Errorf("nobody waits: %+v", r)
	}
	d.question.Approval = api.Approval{ID: "qst-00000001", Kind: "channel", Decision: api.Pending}
	r := d.cli("status")
	for _, want := range []string{"waiting for you:\n  1 question about strangers and places; sallyport approval list\n", "\nnext: sallyport approval list\n"} {
		if !strings.Contains(r.out, want) || r.code != 0 {
			t.Errorf("%q is not in %q (exit %d, %q)", want, r.out, r.code, r.err)
		}
	}
	if r := d.cli("status", "--json"); !strings.Contains(r.out, `"id": "qst-00000001"`) {
		t.Errorf("in JSON: %+v", r)
	}
}

// TestAStrangerAndAPlaceAreAnsweredByACommand holds what approve, refuse and approval show do with a question about them (CH-058, SM-911).
func TestAStrangerAndAPlaceAreAnsweredByACommand(t *testing.T) {
	stranger := &api.Admission{
		Lines:   []string{"🙋 “eve” wants to talk" + hostile, "They said: “hi”"},
		Options: []api.Choice{{Key: "allow", Label: "Allow"}, {Key: "deny", Label: "Deny", No: true}},
	}
	place := &api.Admission{Lines: []string{"🔌 New channel"}, Options: []api.Choice{
		{Key: "agent-group-echo", Label: "echo"}, {Key: "create", Label: "➕ Create new", Named: true}, {Key: "ignore", Label: "Ignore", No: true},
	}}
	const of = "qst-00000001"
	for _, c := range []struct {
		name  string
		about *api.Admission
		args  []string
		code  int
		sent  string // to the daemon
		says  []string
	}{
		{"show a stranger", stranger, []string{"approval", "show", of}, exitDone, "", []string{"“eve” wants to talk", "sallyport approve qst-00000001 ", "sallyport refuse qst-00000001 "}},
		{"show a place", place, []string{"approval", "show", of}, exitDone, "", []string{"approve qst-00000001 --option echo ", "--option 'create NAME' ", "sallyport refuse qst-00000001 "}},
		{"let in", stranger, []string{"approve", of}, exitDone, `answer qst-00000001 {"text":"allow"}`, []string{"qst-00000001: it is done"}},
		{"turn away", stranger, []string{"refuse", of}, exitDone, `answer qst-00000001 {"text":"deny"}`, []string{"qst-00000001: it is done"}},
		{"wire", place, []string{"approve", of, "--option", "echo"}, exitDone, `answer qst-00000001 {"text":"echo"}`, nil},
		{"wire to a new one", place, []string{"approve", of, "--option", "create kitchen"}, exitDone, `answer qst-00000001 {"text":"create kitchen"}`, nil},
		{"ignore", place, []string{"refuse", of, "--json"}, exitDone, `answer qst-00000001 {"text":"ignore"}`, []string{`"options"`}},
		{"say yes and no at once", place, []string{"approve", of, "--option", "3"}, exitUsage, "", []string{"is no yes", "sallyport refuse qst-00000001"}},
		{"say yes to one of many", place, []string{"approve", of}, exitUsage, "", []string{"say which, with --option"}},
		{"say why", stranger, []string{"refuse", of, "--reason", "spam"}, exitUsage, "", []string{"--reason is for a change"}},
		{"approve as a change", stranger, []string{"approve", of, "--marked"}, exitUsage, "", []string{"--marked is for a change"}},
		{"choose for a change", nil, []string{"approve", "chg-00000001", "--option", "echo"}, exitUsage, "", []string{"qst-"}},
		{"answer what is no question", nil, []string{"approve", of}, exitError, "", []string{"no stranger"}},
	} {
		d := newDaemon(t)
		d.question = api.Question{Approval: api.Approval{ID: of, Decision: api.Pending}, Admission: c.about}
		r := d.cli(c.args...)
		told := strings.TrimSpace(d.told())
		if r.code != c.code || told != c.sent || strings.ContainsAny(r.out+r.err, "\x1b\u202e\a\r") {
			t.Errorf("%s: exit %d, sent %q: %s%s", c.name, r.code, told, r.out, r.err)
		}
		for _, want := range c.says {
			if !strings.Contains(r.out+r.err, want) {
				t.Errorf("%s: %q is not in %q", c.name, want, r.out+r.err)
			}
		}
	}
}

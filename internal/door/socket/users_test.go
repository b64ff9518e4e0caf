package socket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/door/api"
	"sallyport/internal/door/peer"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// roles knows uids by what they hold.
type roles map[int][]right.Held

func (k roles) Recognize(_ context.Context, who audit.Actor) (audit.Actor, []right.Held, error) {
	held, known := k[who.UID]
	if known {
		who.Person = "psn-known000"
	}
	return who, held, nil
}

// asked asks the second socket's verbs as a uid.
func asked(t *testing.T, h http.Handler, uid int, pattern string, body string) *httptest.ResponseRecorder {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, userOf(uid)), method, path, strings.NewReader(body))
	r.Header.Set(api.HeaderVersion, strconv.Itoa(api.Version))
	r.Header.Set(api.HeaderBuild, api.Build())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestTheSecondSocketServesAFewVerbsOfAChatByRole holds that no other verb is reached there, by whomever, and that strangers are told how they are let in.
func TestTheSecondSocketServesAFewVerbsOfAChatByRole(t *testing.T) {
	o := options(&verbs{})
	o.People = roles{1001: {{Role: right.Member, Group: "ada"}}, 1002: {}, 1000: {{Role: right.Owner}}}
	s := New(o)

	few := map[string]bool{"GET /v1/daemon": true, "GET /v1/groups": true, "POST /v1/groups/{group}/say": true, "GET /v1/groups/{group}/watch": true}
	for _, v := range []string{"GET /v1/people", "POST /v1/people/{person}/role", "GET /v1/conversations", "POST /v1/conversations/{conversation}/policy"} {
		few[v] = true // of who decides about a group
	}
	for _, v := range []api.Spec{api.ApprovalShow.Spec, api.ChangeDiff.Spec, api.ApprovalApprove.Spec, api.ApprovalRefuse.Spec, api.ApprovalRework.Spec, api.GroupPromote.Spec} {
		few[v.Pattern()] = true
	}
	for _, v := range api.Verbs() {
		if few[v.Pattern()] {
			continue
		}
		path := strings.NewReplacer("{change}", "chg-00000001", "{group}", "ada").Replace(v.Pattern())
		if w := asked(t, s.userHandler(), 1000, path, ""); w.Code != http.StatusForbidden {
			t.Errorf("%s answers %d: %s", v.Pattern(), w.Code, w.Body)
		}
	}

	for uid, says := range map[int]string{1001: "you have no role in the group", 1002: "you have no role in it", 1003: "does not know you"} {
		w := asked(t, s.userHandler(), uid, "POST /v1/groups/bob/say", `{"text":"hi"}`)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), says) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("uid %d: %d %s", uid, w.Code, w.Body)
		}
	}
	if w := asked(t, s.userHandler(), 1003, "POST /v1/groups/ada/say", `{"text":"hi"}`); !strings.Contains(w.Body.String(), "sallyport person add NAME --uid 1003") {
		t.Errorf("a stranger is not told how they are let in: %s", w.Body)
	}
	if w := asked(t, s.userHandler(), 1003, "GET /v1/daemon", ""); w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"pid":`+strconv.Itoa(os.Getpid())) {
		t.Errorf("a stranger is told of the daemon: %d %s", w.Code, w.Body)
	}
}

// TestAUserOfAnotherBuildTalksWithAHomeThatIsKept: what is said to users tells their program that a keeper has the daemon, and no more of it.
func TestAUserOfAnotherBuildTalksWithAHomeThatIsKept(t *testing.T) {
	o := options(&verbs{})
	o.Keeper = &api.Keeper{PID: 4711, Release: "0123456789", Against: api.AgainstFaulty}
	for _, keeper := range []*api.Keeper{nil, o.Keeper} {
		o.Keeper = keeper
		w := asked(t, New(o).userHandler(), 1003, "GET /v1/daemon", "")
		var d api.Daemon
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || (d.Keeper != nil) != (keeper != nil) || strings.Contains(w.Body.String(), "4711") {
			t.Errorf("%s, %v", w.Body, err)
		}
	}
}

// TestWhoIsAskedAboutAChangeReadsAndAnswersItsCardOnTheSecondSocket holds SM-909: by the one table, in the group whose change it is, and as long as
// they may answer.
func TestWhoIsAskedAboutAChangeReadsAndAnswersItsCardOnTheSecondSocket(t *testing.T) {
	v := &verbs{patch: "diff --git", asks: map[string]int{"chg-00000001": 1001, "apr-00000001": 1001}}
	o := options(v)
	o.People = roles{1001: {{Role: right.GroupAdmin, Group: "ada"}}, 1002: {{Role: right.GroupAdmin, Group: "bob"}}, 1003: {{Role: right.Member, Group: "ada"}}, 1004: {{Role: right.GlobalAdmin}}}
	s := New(o)
	for _, what := range []struct{ pattern, body, does string }{
		{"GET /v1/approvals/chg-00000001", "", "approval chg-00000001"},
		{"GET /v1/changes/chg-00000001/diff", "", ""},
		{"POST /v1/approvals/apr-00000001/approve", `{"digest":"d1"}`, "approve apr-00000001 d1 command line"},
		{"POST /v1/approvals/apr-00000001/refuse", `{"reason":"no"}`, `refuse apr-00000001 "no"`},
		{"POST /v1/approvals/apr-00000001/rework", `{"reason":"bolder"}`, `rework apr-00000001 "bolder", command line`},
	} {
		v.calls, v.by = nil, audit.Actor{}
		w := asked(t, s.userHandler(), 1001, what.pattern, what.body)
		if w.Code != http.StatusOK || v.last() != what.does || what.does == "" && w.Header().Get("Content-Type") != api.DiffKind {
			t.Errorf("%s: %d %s, which does %q", what.pattern, w.Code, w.Body, v.last())
		}
		if strings.HasPrefix(what.pattern, "POST") && (v.by.UID != 1001 || v.by.Person == "") {
			t.Errorf("%s is done as %+v", what.pattern, v.by)
		}
		before := len(v.calls)
		for uid := range o.People.(roles) {
			of := strings.NewReplacer("00000001", "00000002").Replace(what.pattern) // about which nobody is asked
			if w := asked(t, s.userHandler(), uid, of, what.body); w.Code != http.StatusForbidden {
				t.Errorf("uid %d, %s: %d %s", uid, of, w.Code, w.Body)
			}
			if uid == 1001 {
				continue
			}
			if w := asked(t, s.userHandler(), uid, what.pattern, what.body); w.Code != http.StatusForbidden {
				t.Errorf("uid %d, %s: %d %s", uid, what.pattern, w.Code, w.Body)
			}
		}
		if len(v.calls) != before {
			t.Errorf("others have done %q", v.calls[before:])
		}
	}
}

// TestAUserOfTheSecondSocketIsHeldToRatesAndOthersAreNot holds requests, messages and bytes by uid.
func TestAUserOfTheSecondSocketIsHeldToRatesAndOthersAreNot(t *testing.T) {
	now := time.Unix(1e9, 0)
	get, _ := http.NewRequest(http.MethodGet, "/", nil)
	post := func(size int64) *http.Request { return &http.Request{Method: http.MethodPost, ContentLength: size} }
	for name, test := range map[string]struct {
		r    *http.Request
		most int
		lack string
	}{
		"requests": {get, userRequests, "requests"}, "messages": {post(1), userSays, "messages"},
		"bytes": {post(1 << 20), 4, "bytes"}, "a size that nobody says": {post(-1), 0, "bytes"},
	} {
		a := &rates{of: map[int]*rate{}}
		for n := range test.most {
			if lack := a.take(1, test.r, now); lack != "" {
				t.Fatalf("%s: number %d lacks %s", name, n, lack)
			}
		}
		if lack := a.take(1, test.r, now); lack != test.lack {
			t.Errorf("%s: one more lacks %q", name, lack)
		}
		if test.most > 0 && (a.take(2, test.r, now) != "" || a.take(1, test.r, now.Add(time.Hour)) != "") {
			t.Errorf("%s: another user is held, or the same for ever", name)
		}
	}
	month := 30 * 24 * time.Hour
	if a, last := (&rates{of: map[int]*rate{}}), now.Add(month); true {
		var total int64
		for at := now; at.Before(last); at = at.Add(time.Hour) {
			for a.take(1, post(64<<10), at) == "" {
				total += 64 << 10
			}
		}
		if most := int64(userBytes) + int64(month/userBytesEach); total > most || most > 2<<30 {
			t.Errorf("one user stores %d bytes in a month", total)
		}
	}
}

// TestWhatAUserHasLeftComesBackInItsTime holds how soon one more is taken, and that no more is ever saved up.
func TestWhatAUserHasLeftComesBackInItsTime(t *testing.T) {
	begin := time.Unix(1e9, 0)
	for name, row := range map[string]struct {
		method string
		size   int64
		most   int
		each   time.Duration // until there is one more
		lack   string
	}{
		"requests": {http.MethodGet, 0, userRequests, userRequestsEach, "requests"},
		"messages": {http.MethodPost, 0, userSays, userSaysEach, "messages"},
		"bytes":    {http.MethodGet, userBytes / 4, 4, userBytesEach * userBytes / 4, "bytes"},
	} {
		a, r := &rates{of: map[int]*rate{}}, &http.Request{Method: row.method, ContentLength: row.size}
		all := func(now time.Time) (n int) {
			for a.take(1, r, now) == "" {
				n++
			}
			return n
		}
		if n := all(begin); n != row.most {
			t.Errorf("%s: %d at once, want %d", name, n, row.most)
		}
		soon := begin.Add(row.each - row.each/100)
		if lack := a.take(1, r, soon); lack != row.lack {
			t.Errorf("%s: too soon it lacks %q", name, lack)
		}
		if n := all(begin.Add(row.each + row.each/100)); n != 1 {
			t.Errorf("%s: in their time %d more", name, n)
		}
		if n := all(begin); n != 0 {
			t.Errorf("%s: a clock that goes back gives %d", name, n)
		}
		if n := all(begin.Add(24 * time.Hour)); n != row.most {
			t.Errorf("%s: a day later %d at once, want %d", name, n, row.most)
		}
	}
}

// TestWhoHasUsedSomethingIsNotForgottenForOthers holds that only who has all there is loses their row, however many ask.
func TestWhoHasUsedSomethingIsNotForgottenForOthers(t *testing.T) {
	begin, get := time.Unix(1e9, 0), &http.Request{Method: http.MethodGet}
	post, bytes := &http.Request{Method: http.MethodPost}, &http.Request{Method: http.MethodGet, ContentLength: userBytes}
	a := &rates{of: map[int]*rate{}}
	for uid := range usersAtOnce * 16 {
		if a.take(uid, get, begin) != "" {
			t.Fatalf("uid %d is held", uid)
		}
	}
	if len(a.of) != usersAtOnce*16 {
		t.Fatalf("%d rows", len(a.of))
	}
	later := begin.Add(time.Minute)
	for range userRequests {
		a.take(0, get, later)
	}
	for range userSays {
		a.take(1, post, later)
	}
	a.take(2, bytes, later)
	for uid, r := range map[int]*http.Request{1: post, 2: bytes} {
		a.of[uid].requests = userRequests // what else they have used is the reason
		if lack := a.take(uid, r, later); lack == "" {
			t.Errorf("uid %d is not held", uid)
		}
	}
	a.take(1<<20, get, later.Add(time.Second)) // a row too many; by then nothing has come back whole
	if len(a.of) != 4 || a.of[0] == nil || a.of[1] == nil || a.of[2] == nil {
		t.Errorf("%d rows are left", len(a.of))
	}
}

// TestAFewUsersKeepNobodyFromTheSecondSocket holds that each has so many connections, and that who has most makes room for who has fewer.
func TestAFewUsersKeepNobodyFromTheSecondSocket(t *testing.T) {
	c := &crowd{of: map[int][]*guest{}}
	enter := func(uid int) (out *guest, in bool) { return c.enter(&guest{crowd: c, uid: uid}) }
	for range userAtOnce {
		if out, in := enter(1); !in || out != nil {
			t.Fatal("a connection is refused")
		}
	}
	first := c.of[1][0]
	if _, in := enter(1); in {
		t.Error("a user opens more than they may")
	}
	c.leave(first)
	c.leave(first)
	if _, in := enter(1); !in || c.all != userAtOnce {
		t.Errorf("a connection that has ended counts: %d", c.all)
	}

	for uid := 2; c.all < usersAtOnce; uid++ {
		for range userAtOnce {
			enter(uid)
		}
	}
	for n := range userAtOnce - 2 {
		out, in := enter(100)
		if !in || out == nil || len(c.of[100]) != n+1 || c.all != usersAtOnce {
			t.Fatalf("number %d of who comes later: %v, %v; %d of %d are open", n+1, out, in, len(c.of[100]), c.all)
		}
		c.leave(out) // its connection is closed
	}
	for uid, theirs := range c.of {
		if len(theirs) < userAtOnce-2 {
			t.Errorf("uid %d keeps %d", uid, len(theirs))
		}
	}
	for uid := 200; uid < 200+2*usersAtOnce; uid++ {
		if out, in := enter(uid); in && out == nil || c.all != usersAtOnce {
			t.Fatalf("%d are open", c.all)
		}
	}
	if _, in := enter(1000); in {
		t.Error("where each has one, another takes it from them")
	}
}

// asKnown knows uids as a function says at that moment.
type asKnown func(uid int) []right.Held

func (k asKnown) Recognize(_ context.Context, who audit.Actor) (audit.Actor, []right.Held, error) {
	who.Person = "psn-known000"
	return who, k(who.UID), nil
}

// watched is a chat in which a line is said whenever somebody says so.
type watched struct {
	Chats
	say chan string
}

func (w watched) Open(context.Context, group.Folder, string) (conversation.Chat, error) {
	return conversation.Chat{}, nil
}

func (w watched) Watch(ctx context.Context, _ id.Chat, _ int, tell func([]dispatch.Line) error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case text := <-w.say:
			if err := tell([]dispatch.Line{{Text: text}}); err != nil {
				return err
			}
		}
	}
}

// TestAWatchEndsWithTheRoleThatAllowsIt holds that whoever has lost their role is told nothing more, and that their watch ends also where nothing
// is said.
func TestAWatchEndsWithTheRoleThatAllowsIt(t *testing.T) {
	for name, after := range map[string]string{"and something is said": "secret", "and nothing is said": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lost atomic.Bool
				o := options(&verbs{})
				o.People = asKnown(func(int) []right.Held {
					if lost.Load() {
						return nil
					}
					return []right.Held{{Role: right.Member, Group: "ada"}}
				})
				chat := watched{say: make(chan string)}
				var out strings.Builder
				ended := make(chan error, 1)
				go func() {
					ended <- New(o).watchWhile(chats{chat, nil}.watch)(t.Context(), audit.Actor{UID: 1001}, api.WatchChat{Group: "ada"}, &out)
				}()
				chat.say <- "hello"
				synctest.Wait()
				lost.Store(true)
				if after != "" {
					chat.say <- after
				}
				if err := <-ended; problem.KindOf(err) != problem.Denied {
					t.Errorf("it ends with %v", err)
				}
				if !strings.Contains(out.String(), "hello") || strings.Contains(out.String(), "secret") {
					t.Errorf("told: %s", out.String())
				}
			})
		})
	}
}

// TestTheSecondSocketIsReachedByEveryUserAndMadeInNoFolderOfAnother holds its modes.
func TestTheSecondSocketIsReachedByEveryUserAndMadeInNoFolderOfAnother(t *testing.T) {
	short, err := os.MkdirTemp("", "sp") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	dir := filepath.Join(short, "run-chat")
	path := filepath.Join(dir, "abc", "chat")
	l, err := ListenUsers(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{dir: 0o755, filepath.Dir(path): 0o755, path: 0o666} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := ListenUsers(t.Context(), path, disk.Ops{}); !errors.Is(err, ErrAnswered) {
		t.Errorf("two listen: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUsers(t.Context(), path, disk.Ops{}); problem.KindOf(err) != problem.Refused {
		t.Errorf("it is made where others may write: %v", err)
	}
}

// TestAQuietHostMovesNothingElseForOtherUsers: the second socket is no way around what could not be taken back.
func TestAQuietHostMovesNothingElseForOtherUsers(t *testing.T) {
	o := options(&verbs{})
	o.People = roles{1000: {{Role: right.Owner}}}
	o.Quiet = func(string) error {
		return problem.Errorf(problem.Unavailable, "sallyport change watch chg-1", "a host change is on trial until 12:34: chg-1")
	}
	h := New(o).userHandler()
	for pattern, want := range map[string]bool{
		"POST /v1/people/psn-1/role": true, "POST /v1/conversations/cnv-1/policy": true,
		"POST /v1/groups/ada/say": false, "POST /v1/approvals/apr-00000001/approve": false,
	} {
		got := asked(t, h, 1000, pattern, "{") // nothing comes to be done
		if refused := strings.Contains(got.Body.String(), "on trial until 12:34"); refused != want {
			t.Errorf("%s: %d %s", pattern, got.Code, got.Body)
		}
	}
}

// TestAConnectionTooManyIsClosedAtOnce has real connections, which are all of one user.
func TestAConnectionTooManyIsClosedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &crowd{Listener: l, of: map[int][]*guest{}}
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := c.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var all []net.Conn
	for range userAtOnce {
		dial()
		all = append(all, <-accepted)
	}
	for range 2 {
		many := dial()
		if _, err := many.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("one too many is told %v", err)
		}
	}
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
	dial()
	(<-accepted).Close()
	if c.all != userAtOnce-1 || len(c.of) != 1 {
		t.Errorf("%d are counted, of %d users", c.all, len(c.of))
	}
	for _, conn := range all[1:] {
		conn.Close()
	}
	if c.all != 0 || len(c.of) != 0 {
		t.Errorf("%d are counted, of %d users, and all have ended", c.all, len(c.of))
	}
	if l.Close(); <-ended == nil {
		t.Error("it accepts what nobody listens for")
	}
}

// TestAUserOfTheSecondSocketSendsNoLargeBody holds that what is larger is never read whole, whatever it says of its size.
func TestAUserOfTheSecondSocketSendsNoLargeBody(t *testing.T) {
	o := options(&verbs{})
	for size, want := range map[int]bool{userBodyMax / 2: true, userBodyMax + 1: false} {
		read := 0
		h := New(o).bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			if read = len(raw); (err == nil) != want {
				t.Errorf("of %d bytes %d are read, %v", size, read, err)
			}
		}))
		asked(t, h, 1001, "POST /", strings.Repeat("x", size))
		if read != min(size, userBodyMax) {
			t.Errorf("of %d bytes %d are read", size, read)
		}
	}
}

// TestWhoeverTheKernelDoesNotNameIsNobody holds that a connection is nobody's, not root's, where the kernel says nothing.
func TestWhoeverTheKernelDoesNotNameIsNobody(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if uid, ok := peer.UID(conn); !ok || uid != os.Geteuid() {
		t.Errorf("who is there is %d, %t", uid, ok)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	inside, other := net.Pipe()
	defer inside.Close()
	defer other.Close()
	for name, c := range map[string]net.Conn{"closed": conn, "of no kernel": inside} {
		if uid, ok := peer.UID(c); ok {
			t.Errorf("%s: %d", name, uid)
		}
		if who, ok := withPeer(t.Context(), c).Value(peerKey{}).(audit.Actor); ok {
			t.Errorf("%s: %+v is heard", name, who)
		}
	}
}

package socket

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/supervise"
)

// What is under way keeps a daemon from being idle, and so does what came since it was last asked.
func TestAServerIsBusyWithWhatIsUnderWayOrCame(t *testing.T) {
	s := New(options(&verbs{}))
	if n := s.Busy(); n != 0 {
		t.Errorf("with nothing %d", n)
	}
	within := 0
	h := s.counted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		s.Busy()
		within = s.Busy()
	}))
	ask := func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	if ask(); within != 1 {
		t.Errorf("while one is under way %d", within)
	}
	if n := s.Busy(); n != 0 {
		t.Errorf("after it, and asked since it came, %d", n)
	}
	h = s.counted(http.NotFoundHandler())
	ask()
	ask()
	if n := s.Busy(); n != 2 {
		t.Errorf("after two %d", n)
	}
	s.active.Add(1)
	if ask(); s.Busy() != 2 {
		t.Error("one that came and one that is under way are not two")
	}
}

// faulty is a listener that fails once it is told to.
type faulty struct {
	net.Listener
	fail chan struct{}
}

func (f faulty) Accept() (net.Conn, error) {
	<-f.fail
	return nil, errPlain
}

func (faulty) Addr() net.Addr { return &net.UnixAddr{Name: "/s", Net: "unix"} }

func (faulty) Close() error { return nil }

// A server leaves no shell behind, however it ends: each is told why, and waited for.
func TestAServerThatEndsWaitsForItsShells(t *testing.T) {
	for name, fails := range map[string]bool{"it is stopped": false, "its listener fails": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(options(&verbs{}))
				l := faulty{fail: make(chan struct{})}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ended := make(chan error, 1)
				go func() { ended <- s.serve(ctx, l, http.NotFoundHandler()) }()
				s.shells.Add(1)
				synctest.Wait()
				if fails {
					close(l.fail)
				} else {
					stop()
				}
				if !fails { // who closes it lets Accept go
					close(l.fail)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(ended) > 0 {
					t.Errorf("it has ended with %v, and a shell stands", <-ended)
				}
				s.shells.Done()
				if err := <-ended; errors.Is(err, errPlain) != fails {
					t.Errorf("it ends with %v", err)
				}
			})
		})
	}
}

// kept is a listener of one connection that is there already.
type kept struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (k *kept) Accept() (net.Conn, error) {
	select {
	case c := <-k.conns:
		return c, nil
	case <-k.done:
		return nil, net.ErrClosed
	}
}

func (k *kept) Close() error {
	k.once.Do(func() { close(k.done) })
	return nil
}

func (*kept) Addr() net.Addr { return &net.UnixAddr{Name: "/s", Net: "unix"} }

// A request that does not end in time is not waited for.
func TestAServerThatIsStoppedWaitsForNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(options(&verbs{}))
		l := &kept{conns: make(chan net.Conn, 1), done: make(chan struct{})}
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l.conns <- ours
		leave := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		began, ended := time.Now(), make(chan error, 1)
		go func() {
			ended <- s.serve(ctx, l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-leave }))
		}()
		if _, err := io.WriteString(theirs, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if err := <-ended; err != nil || time.Since(began) != shutdownTime {
			t.Errorf("it ends after %s with %v", time.Since(began), err)
		}
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is told %v", err)
		}
		close(leave)
	})
}

// What runs on its connection ends with the server, also if its listener fails.
func TestWhoIsServedIsToldThatTheServerEnds(t *testing.T) {
	s := New(options(&verbs{}))
	l := &kept{conns: make(chan net.Conn, 1), done: make(chan struct{})}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	l.conns <- ours
	why := make(chan error, 1)
	began := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- s.serve(t.Context(), l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
			why <- context.Cause(r.Context())
		}))
	}()
	if _, err := io.WriteString(theirs, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-began
	l.Close()
	if err := <-why; !errors.Is(err, net.ErrClosed) {
		t.Errorf("who is served is told %v", err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ends with %v", err)
	}
}

// terminal is a shell by hand on a real pty, and what its person's side reads.
func terminal(t *testing.T, shell func(ctx context.Context, slave *os.File) (int, error)) (person net.Conn, ended chan struct{}) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	d := &door{New(options(&verbs{})).Log, New(Options{}).Secrets}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		shells{&verbs{shell: shell}, nil}.run(t.Context(), "chg-00000001", audit.Actor{}, &frames{door: d, conn: ours}, bufio.NewReader(ours), master, supervise.Terminal{Slave: slave})
	}()
	return theirs, ended
}

// How a shell ended comes after all that it printed, and nothing of it is left then.
func TestAShellsEndComesLast(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		last api.FrameType
	}{"with a status": {nil, api.FrameExit}, "with a problem": {errRefused, api.FrameProblem}} {
		conn, ended := terminal(t, func(_ context.Context, slave *os.File) (int, error) {
			_, err := slave.WriteString("bye\n")
			return 7, errors.Join(err, row.err)
		})
		var got []api.FrameType
		printed := ""
		for {
			kind, payload, err := api.ReadFrame(conn)
			if err != nil {
				break
			}
			if got = append(got, kind); kind == api.FrameData {
				printed += string(payload)
			}
		}
		<-ended
		if len(got) < 2 || got[len(got)-1] != row.last || printed != "bye\r\n" {
			t.Errorf("%s: frames %v, printed %q", name, got, printed)
		}
	}
}

// Who is gone is noticed by what is printed too, and the shell is told so.
func TestAShellWhoseReaderIsGoneIsToldByWhatItPrints(t *testing.T) {
	why := make(chan error, 1)
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	theirs.Close()
	in, typed := io.Pipe() // nothing is typed, and its end is not seen
	d := &door{New(options(&verbs{})).Log, New(Options{}).Secrets}
	ended := make(chan struct{})
	shell := func(ctx context.Context, slave *os.File) (int, error) {
		if _, err := slave.WriteString("hello\n"); err != nil {
			return 0, err
		}
		<-ctx.Done()
		why <- context.Cause(ctx)
		typed.Close()
		return 0, ctx.Err()
	}
	go func() {
		defer close(ended)
		shells{&verbs{shell: shell}, nil}.run(t.Context(), "chg-00000001", audit.Actor{}, &frames{door: d, conn: ours}, bufio.NewReader(in), master, supervise.Terminal{Slave: slave})
	}()
	if err := <-why; !errors.Is(err, errReaderGone) {
		t.Errorf("the shell is told %v", err)
	}
	<-ended
	if _, err := master.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("its terminal is left: %v", err)
	}
}

func TestASizeOfNothingIsLeftAsItIs(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	setSize(master, 24, 80)
	for _, size := range [][2]uint16{{0, 100}, {50, 0}, {0, 0}} {
		setSize(master, size[0], size[1])
		if rows, cols, err := pty.Getsize(slave); err != nil || rows != 24 || cols != 80 {
			t.Errorf("after %v it is %d by %d, %v", size, rows, cols, err)
		}
	}
	setSize(master, 1, 1)
	if rows, cols, err := pty.Getsize(slave); err != nil || rows != 1 || cols != 1 {
		t.Errorf("it is %d by %d, %v", rows, cols, err)
	}
}

// What is no folder of ours is none to listen in, whoever made it.
func TestASocketIsMadeInFoldersAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	disktest.Put(t, file, "", 0o600)
	if l, err := Listen(t.Context(), filepath.Join(file, "0123", "d"), disk.Ops{}); problem.KindOf(err) != problem.Refused {
		t.Errorf("in a file: %v, %v", l, err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can have a folder that belongs to another")
	}
	dir := filepath.Join(t.TempDir(), "users")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, 4711, -1)); err != nil {
		t.Fatal(err)
	}
	if l, err := ListenUsers(t.Context(), filepath.Join(dir, "0123", "chat"), disk.Ops{}); problem.KindOf(err) != problem.Refused {
		t.Errorf("in a folder of another: %v, %v", l, err)
	}
}

// What is not refused is done.
func TestAQuietHostRefusesAndElseLetsThrough(t *testing.T) {
	for _, why := range []error{nil, errRefused} {
		o := options(&verbs{})
		o.Quiet = func(string) error { return why }
		done := 0
		h := New(o).unlessQuiet(api.ChangeCancel.Spec, func(http.ResponseWriter, *http.Request) { done++ })
		w := httptest.NewRecorder()
		h(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		if (done == 1) != (why == nil) || (w.Code == http.StatusOK) != (why == nil) {
			t.Errorf("%v: done %d times, %d %s", why, done, w.Code, w.Body)
		}
	}
}

// Who has one connection more than another could have makes room, and nobody who has as many.
func TestRoomIsMadeByWhoHasTwoMore(t *testing.T) {
	for each, room := range map[int]bool{1: false, 2: true} {
		c := &crowd{of: map[int][]*guest{}}
		for n := range usersAtOnce {
			c.enter(&guest{crowd: c, uid: n / each})
		}
		out, in := c.enter(&guest{crowd: c, uid: 1000})
		if in != room || (out != nil) != room || c.all != usersAtOnce {
			t.Errorf("where each has %d: %t, %v makes room, %d are open", each, in, out, c.all)
		}
	}
}

// taken is an answer whose connection can be taken over.
type taken struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (k taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return k.conn, bufio.NewReadWriter(bufio.NewReader(k.conn), bufio.NewWriter(k.conn)), nil
}

// closing counts how often a connection is closed.
type closing struct {
	net.Conn
	closed atomic.Int64
}

func (c *closing) Close() error {
	c.closed.Add(1)
	return c.Conn.Close()
}

// terminals says how many ends of terminals this process has open.
func terminals(t *testing.T) (n int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(to, "/dev/pts/") || strings.HasPrefix(to, "/dev/ptmx") {
			n++
		}
	}
	return n
}

// A shell counts until it has ended, and gives back its terminal and its connection, also where it never came to run.
func TestAShellCountsWhileItRunsAndLeavesNothing(t *testing.T) {
	s := New(options(&verbs{}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	r.Header.Set("Upgrade", api.ShellProtocol)
	before := terminals(t)

	none := httptest.NewRecorder() // its connection cannot be taken over
	shells{&verbs{}, &s.shells}.shell(s.door, none, r, api.Shell{Of: "chg-00000001"})
	if none.Code != http.StatusInternalServerError || terminals(t) != before {
		t.Errorf("%d %s, %d terminals are left", none.Code, none.Body, terminals(t)-before)
	}

	for name, gone := range map[string]bool{"it runs": false, "its person is gone": true} {
		ours, theirs := net.Pipe()
		conn, counted, ran := &closing{Conn: ours}, false, false
		v := &verbs{shell: func(context.Context, *os.File) (int, error) {
			ran = true
			defer func() { _ = recover() }()
			s.shells.Done() // panics if nobody is counted
			s.shells.Add(1)
			counted = true
			return 0, nil
		}}
		if gone {
			theirs.Close()
		} else {
			go io.Copy(io.Discard, theirs)
		}
		shells{v, &s.shells}.shell(s.door, taken{httptest.NewRecorder(), conn}, r, api.Shell{Of: "chg-00000001", Rows: 5, Cols: 5})
		s.shells.Wait()
		if ran == gone || counted == gone || conn.closed.Load() == 0 || terminals(t) != before {
			t.Errorf("%s: ran %t, counted %t, closed %d times, %d terminals are left", name, ran, counted, conn.closed.Load(), terminals(t)-before)
		}
		theirs.Close()
	}
}

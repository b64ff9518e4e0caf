package egress

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are pipes, for a clock that is not real.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// timed is a door in a bubble: connections to it, and those that it opens.
type timed struct {
	p  pipes
	up chan net.Conn // ends of the hosts that were dialled
}

func inTime(t *testing.T, limits Limits, test func(t *testing.T, b timed), routes ...Route) {
	synctest.Test(t, func(t *testing.T) {
		b := timed{pipes{make(chan net.Conn), make(chan struct{})}, make(chan net.Conn, 1)}
		d, err := New(Config{
			Rules: []Rule{{Host: "example.com"}}, Routes: routes, Limits: limits,
			Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{publicAddr}, nil },
			Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
				ours, theirs := net.Pipe()
				b.up <- theirs
				return ours, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Serve(ctx, b.p) }()
		test(t, b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (b timed) connect() net.Conn {
	ours, theirs := net.Pipe()
	b.p.conns <- theirs
	return ours
}

// answered reads an answer and says when it came.
func answered(t *testing.T, c net.Conn) (*http.Response, time.Duration) {
	t.Helper()
	since := time.Now()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	return resp, time.Since(since)
}

func TestAHeadHasItsTimeAndAnIdleConnectionItsOwn(t *testing.T) {
	inTime(t, Limits{HeaderTime: 10 * time.Second, Idle: 10 * time.Minute}, func(t *testing.T, b timed) {
		c := b.connect()
		time.Sleep(9 * time.Minute) // nothing said: that is idle, not slow
		io.WriteString(c, "GET http")
		if resp, after := answered(t, c); resp.StatusCode != http.StatusRequestTimeout || after != 10*time.Second {
			t.Errorf("%d after %s", resp.StatusCode, after)
		}
		c.Close()
		c, since := b.connect(), time.Now()
		if _, err := c.Read(make([]byte, 1)); err != io.EOF || time.Since(since) != 10*time.Minute {
			t.Errorf("%v after %s", err, time.Since(since))
		}
	})
}

func TestAHelloThatDoesNotComeEndsItsTunnel(t *testing.T) {
	inTime(t, Limits{HeaderTime: 10 * time.Second}, func(t *testing.T, b timed) {
		c := b.connect()
		io.WriteString(c, connect("example.com:443"))
		up := <-b.up
		http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "CONNECT"})
		since := time.Now()
		if n, err := up.Read(make([]byte, 1)); n != 0 || err != io.EOF || time.Since(since) != 10*time.Second {
			t.Errorf("the host read %d bytes, %v after %s", n, err, time.Since(since))
		}
		c.Close()
	})
}

// A session that is paused reads and says nothing. Its tunnels live as long as Idle, whoever spoke last.
func TestATunnelLivesAsLongAsAnythingMoves(t *testing.T) {
	inTime(t, Limits{Idle: 10 * time.Minute}, func(t *testing.T, b timed) {
		c := b.connect()
		io.WriteString(c, connect("example.com:443"))
		up := <-b.up
		http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "CONNECT"})
		first := hello("example.com")
		go io.WriteString(c, first)
		if _, err := io.ReadFull(up, make([]byte, len(first))); err != nil {
			t.Fatal(err)
		}
		for i := range 10 { // one way alone
			time.Sleep(9 * time.Minute)
			go up.Write([]byte{1})
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		since := time.Now()
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(since) != 10*time.Minute {
			t.Errorf("%v after %s", err, time.Since(since))
		}
	})
}

func TestAHostThatSaysNothingIsGivenUp(t *testing.T) {
	inTime(t, Limits{Idle: 10 * time.Minute}, func(t *testing.T, b timed) {
		c := b.connect()
		io.WriteString(c, get("http://example.com/", "example.com"))
		up := <-b.up
		http.ReadRequest(bufio.NewReader(up))
		if resp, after := answered(t, c); resp.StatusCode != http.StatusGatewayTimeout || after != 10*time.Minute {
			t.Errorf("%d after %s", resp.StatusCode, after)
		}
		c.Close()
	})
}

func TestAPausedProgramFindsItsAnswerWhenItGoesOn(t *testing.T) {
	inTime(t, Limits{HeaderTime: 10 * time.Second, DialTime: 10 * time.Second, Idle: 10 * time.Minute}, func(t *testing.T, b timed) {
		c := b.connect()
		io.WriteString(c, get("http://example.com/", "example.com"))
		up := <-b.up
		http.ReadRequest(bufio.NewReader(up))
		words := strings.Repeat("words", 100_000)
		go io.WriteString(up, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+words)
		time.Sleep(9 * time.Minute) // paused: nothing is read
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		part := make([]byte, 1000)
		if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != words[:1000] {
			t.Errorf("%v", err)
		}
		c.Close()
	})
}

// What a session started is over when its door says so, not a moment later: a budget that is asked is never asked for a session that ended.
func TestADoorHasEndedOnlyWhenItsPartsHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var over time.Time
		asked := make(chan struct{})
		route := modelRoute(t, "http://model.example")
		route.Admit = func(ctx context.Context) (func(), error) {
			close(asked)
			<-ctx.Done()
			time.Sleep(time.Second)
			over = time.Now()
			return nil, ctx.Err()
		}
		d, err := New(Config{Routes: []Route{route}})
		if err != nil {
			t.Fatal(err)
		}
		p := pipes{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Serve(ctx, p) }()
		c := timed{p: p}.connect()
		io.WriteString(c, get("/model/models", Inside))
		<-asked
		cancel()
		if err := <-done; err != nil || over.IsZero() {
			t.Errorf("it ended before what it waited for: %v", err)
		}
		synctest.Wait()
	})
}

func TestADialThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipes{make(chan net.Conn), make(chan struct{})}
		var tried []time.Time
		d, err := New(Config{
			Rules:  []Rule{{Host: "example.com"}},
			Limits: Limits{DialTime: 10 * time.Second},
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{publicAddr, publicAddr.Next()}, nil
			},
			Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
				tried = append(tried, time.Now())
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Serve(ctx, p) }()
		c := timed{p: p}.connect()
		io.WriteString(c, connect("example.com:443"))
		if resp, after := answered(t, c); resp.StatusCode != http.StatusBadGateway || after != 10*time.Second {
			t.Errorf("%d after %s", resp.StatusCode, after)
		}
		c.Close()
		cancel()
		<-done
		if len(tried) != 2 || tried[1].Sub(tried[0]) != 5*time.Second {
			t.Errorf("tried at %v", tried)
		}
	})
}

// TestAStreamOfARouteThatMovesIsToldAndHasItsOwnPatience is CH-081 at the door: a model that thinks for longer than other requests may stand
// still is waited for, and each byte of it is a sign, which is not told more often than anybody needs.
func TestAStreamOfARouteThatMovesIsToldAndHasItsOwnPatience(t *testing.T) {
	var told atomic.Int32
	route := modelRoute(t, "http://example.com")
	route.Idle, route.Moved = 30*time.Minute, func() { told.Add(1) }
	inTime(t, Limits{}, func(t *testing.T, b timed) {
		c := b.connect()
		go io.WriteString(c, "POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		up := <-b.up
		r := bufio.NewReader(up)
		if req, err := http.ReadRequest(r); err != nil {
			t.Error(err)
		} else {
			io.Copy(io.Discard, req.Body)
		}
		go func() {
			time.Sleep(29 * time.Minute)
			io.WriteString(up, "HTTP/1.1 200 OK\r\nContent-Length: 102\r\n\r\n")
			for range 2 {
				time.Sleep(29 * time.Minute)
				io.WriteString(up, "x")
			}
			for range 100 {
				time.Sleep(20 * time.Millisecond)
				io.WriteString(up, "y")
			}
		}()
		since := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		before := told.Load()
		body, err := io.ReadAll(resp.Body)
		if took := time.Since(since); err != nil || len(body) != 102 || took < 87*time.Minute {
			t.Errorf("%d bytes after %s: %v", len(body), took, err)
		}
		if n := told.Load() - before; before < 1 || n != 4 {
			t.Errorf("it is told %d times that the request moves, and then, of 102 bytes, most of them at once, %d times", before, n)
		}
		c.Close()
		up.Close()
	}, route)
}

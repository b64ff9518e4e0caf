package egress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// plainWorld is a door with one plain host behind it.
func plainWorld(t *testing.T, h http.HandlerFunc) *world {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com"}}
		w.at[80] = s.Listener.Addr().String()
	})
}

// raw is a server that records exactly what arrives and answers with exactly these bytes.
func raw(t *testing.T, answer string) (addr string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			if req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(r, recorder{said}))); err == nil {
				io.Copy(io.Discard, req.Body)
				io.WriteString(c, answer)
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), said
}

// rawEarly is a server that answers a head at once and reads no body.
func rawEarly(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 1)
	var held []net.Conn
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
			readHead(bufio.NewReaderSize(c, 16), 1<<10)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for _, c := range held {
			c.Close()
		}
	})
	return l.Addr().String()
}

type recorder struct{ to chan string }

func (r recorder) Write(p []byte) (int, error) {
	select {
	case r.to <- string(p):
	default:
	}
	return len(p), nil
}

func TestOnlyWhatMeansSomethingToTheHostGoesUp(t *testing.T) {
	addr, got := raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nVia: 1.1 inner.example\r\nX-Forwarded-Server: inner\r\nX-Theirs: 2\r\nAlt-Svc: h3\r\n\r\nok")
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com"}}
		w.at[80] = addr
	})
	resp, body := w.send("GET http://example.com/a%20b?q=%zz HTTP/1.1\r\nHost: EXAMPLE.com:80\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nProxy-Authorization: Basic eA==\r\n" +
		"Forwarded: for=10.0.0.1\r\nVia: 1.1 a\r\nX-Forwarded-Host: intern.example\r\nX_Forwarded_For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nTrailer: X\r\nX-HTTP-Method-Override: DELETE\r\nX_Original_URL: /admin\r\nAccept: */*\r\n\r\n")
	if up := <-got; up != "GET /a%20b?q=%zz HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n" {
		t.Errorf("up went %q", up)
	}
	if body != "ok" || resp.Header.Get("X-Theirs") != "2" || resp.Header.Get("X-Mine")+resp.Header.Get("Via")+resp.Header.Get("X-Forwarded-Server")+resp.Header.Get("Keep-Alive")+resp.Header.Get("Alt-Svc") != "" {
		t.Errorf("down came %q %v", body, resp.Header)
	}
}

func TestABodyGoesUpAsItIsAndWithoutTrailers(t *testing.T) {
	w := plainWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %d %v %v %q %v", r.Method, r.ContentLength, r.TransferEncoding, err, b, r.Trailer)
	})
	head := "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
	for name, c := range map[string]struct{ raw, want string }{
		"a length": {head + "Content-Length: 5\r\n\r\nhello", `POST 5 [] <nil> "hello" map[]`},
		"no body":  {head + "\r\n", `POST 0 [] <nil> "" map[]`},
		"chunks":   {head + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", `POST -1 [chunked] <nil> "hello" map[]`},
		"trailers": {head + "Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: 1\r\nContent-Length: 9\r\n\r\n", `POST -1 [chunked] <nil> "hello" map[]`},
	} {
		c.raw += "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n" // the next request is found where it begins
		conn := w.connect()
		io.WriteString(conn, c.raw)
		r := bufio.NewReader(conn)
		if _, body := w.read(conn, r); body != c.want {
			t.Errorf("%s: %s", name, body)
		}
		if _, body := w.read(conn, r); body != `GET 0 [] <nil> "" map[]` {
			t.Errorf("%s, the next: %s", name, body)
		}
		conn.Close()
	}
	for name, broken := range map[string]string{
		"a chunk that is none": head + "Transfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n",
		"endless trailers":     head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 20) + "\r\n",
	} {
		if resp, body := w.send(broken); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "its body does not fit its headers") {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

func TestAClientThatWaitsForAYesBeforeItsBodyGetsOne(t *testing.T) {
	w := plainWorld(t, func(rw http.ResponseWriter, r *http.Request) { io.Copy(rw, r.Body) })
	c := w.connect()
	io.WriteString(c, "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	r := bufio.NewReader(c)
	if line, _ := r.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q", line)
	}
	r.ReadString('\n')
	io.WriteString(c, "ok")
	if _, body := w.read(c, r); body != "ok" {
		t.Errorf("got %q", body)
	}
	resp, _ := w.send("POST http://no.example/ HTTP/1.1\r\nHost: no.example\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a request that is refused was told %d first", resp.StatusCode)
	}
}

// An answer may come before the request's body was read. What is left of the body is never taken for a request.
func TestABodyThatNobodyReadIsNoRequest(t *testing.T) {
	addr := rawEarly(t)
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com"}}
		w.at[80] = addr
	})
	another := get("http://example.com/another", "example.com")
	size := 8 << 20
	c := w.connect()
	fmt.Fprintf(c, "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n", size)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range size / len(another) {
			if _, err := io.WriteString(c, another); err != nil {
				return
			}
		}
	}()
	if resp, _ := w.read(c, bufio.NewReader(c)); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	<-sent // or until the door hangs up
	w.stop()
	if told := w.decisions(); len(told) != 1 {
		t.Errorf("told %+v", told)
	}
}

func TestABodyThatEndsTooSoonIsNotWhole(t *testing.T) {
	for length, want := range map[int64]error{5: nil, 6: io.ErrUnexpectedEOF} {
		if b, err := io.ReadAll(&exactly{iotest.DataErrReader(strings.NewReader("hello")), length}); string(b) != "hello" || err != want {
			t.Errorf("of %d bytes %q came, %v", length, b, err)
		}
	}
}

// A host may answer the last byte before anybody has read on: the connection is the next request's then, and not one whose body is unread.
func TestABodyIsWholeWithItsLastByte(t *testing.T) {
	e := &exactly{strings.NewReader("hello, and the next"), 5}
	if n, err := e.Read(make([]byte, 100)); n != 5 || err != io.EOF {
		t.Errorf("%d bytes came, %v", n, err)
	}
	if n, err := e.Read(make([]byte, 100)); n != 0 || err != io.EOF {
		t.Errorf("behind its end %d bytes came, %v", n, err)
	}
	e = &exactly{iotest.OneByteReader(strings.NewReader("hello")), 5}
	for at := range 5 {
		if n, err := e.Read(make([]byte, 100)); n != 1 || (err == io.EOF) != (at == 4) {
			t.Errorf("of byte %d %d came, %v", at, n, err)
		}
	}
}

// What stands behind a head that is refused is not served, unless all of the body was read before.
func TestABodyOfARefusedRequestIsNoRequest(t *testing.T) {
	w := plainWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		rw.WriteHeader(http.StatusSwitchingProtocols)
	})
	another := get("http://example.com/another", "example.com")
	for host, status := range map[string]int{"other.example.com": http.StatusForbidden, "example.com": http.StatusBadGateway} {
		c := w.connect()
		fmt.Fprintf(c, "POST http://%[1]s/ HTTP/1.1\r\nHost: %[1]s\r\nContent-Length: %[2]d\r\n\r\n%[3]s", host, len(another), another)
		r := bufio.NewReader(c)
		if resp, _ := w.read(c, r); resp.StatusCode != status || resp.Close != (status == http.StatusForbidden) {
			t.Errorf("%s: %d, the last %t", host, resp.StatusCode, resp.Close)
		}
		if status == http.StatusBadGateway {
			io.WriteString(c, another)
			w.read(c, r)
		}
		c.Close()
	}
	w.stop()
	var paths []string
	for _, d := range w.decisions() {
		paths = append(paths, d.Host+d.Path)
	}
	slices.Sort(paths)
	if got := strings.Join(paths, " "); got != "example.com/ example.com/another other.example.com/" {
		t.Errorf("told of %s", got)
	}
}

func TestARedirectIsPassedBackAndNotFollowed(t *testing.T) {
	w := plainWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://169.254.169.254/latest/", http.StatusFound)
	})
	resp, _ := w.send(get("http://example.com/", "example.com"))
	if resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "http://169.254.169.254/latest/" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if got := w.dialled(); len(got) != 1 || got[0].Addr() != publicAddr {
		t.Errorf("dialled %v", got)
	}
}

func TestAnswersKeepTheirShape(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789"), 50_000)
	w := plainWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
			rw.WriteHeader(http.StatusNoContent)
		case "/same":
			rw.WriteHeader(http.StatusNotModified)
		case "/chunks":
			rw.Write(big[:10])
			rw.(http.Flusher).Flush()
			rw.Write(big[10:])
		case "/empty":
		case "/later": // no route's: nobody is told to wait
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
		case "/over":
			rw.WriteHeader(http.StatusSwitchingProtocols)
		case "/broken":
			rw.Write(big)
			rw.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/fault":
			rw.Header().Set("Content-Length", "11")
			rw.Write(big[:10])
		default:
			rw.Header().Set("Content-Length", fmt.Sprint(len(big)))
			rw.Write(big)
		}
	})
	c := w.connect()
	r := bufio.NewReader(c)
	for _, y := range []struct {
		method, path string
		status, size int
		length       int64 // that is said; -1 = none
	}{
		{"GET", "/", 200, len(big), int64(len(big))}, {"HEAD", "/", 200, 0, int64(len(big))}, {"GET", "/empty", 200, 0, 0}, {"GET", "/later", 429, 0, 0},
		{"GET", "/none", 204, 0, 0}, {"GET", "/same", 304, 0, 0}, {"GET", "/chunks", 200, len(big), -1}, {"HEAD", "/chunks", 200, 0, -1},
		{"GET", "/over", 502, -1, -1}, {"GET", "/", 200, len(big), int64(len(big))},
	} {
		fmt.Fprintf(c, "%s http://example.com%s HTTP/1.1\r\nHost: example.com\r\n\r\n", y.method, y.path)
		resp, err := http.ReadResponse(r, &http.Request{Method: y.method})
		if err != nil {
			t.Fatalf("%s %s: %v", y.method, y.path, err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != y.status || err != nil || y.size >= 0 && (len(body) != y.size || resp.ContentLength != y.length) {
			t.Errorf("%s %s: %d, %d bytes, said %d, %v", y.method, y.path, resp.StatusCode, len(body), resp.ContentLength, err)
		}
	}
	for _, path := range []string{"/fault", "/broken"} {
		c := w.connect()
		io.WriteString(c, get("http://example.com"+path, "example.com"))
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Error(err)
		} else if body, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: an answer that broke off looks whole: %d bytes", path, len(body))
		}
	}
	old := w.connect()
	io.WriteString(old, "GET http://example.com/chunks HTTP/1.0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(old), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); len(body) != len(big) || len(resp.TransferEncoding) > 0 {
		t.Errorf("HTTP/1.0 got %d bytes, %v", len(body), resp.TransferEncoding)
	}
}

func TestWhatCannotBeReachedIsSaidWithoutTheMachinesNetwork(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com", Ports: []uint16{80, 443}}}
		w.at[80], w.at[443] = closed.Addr().String(), closed.Addr().String()
	})
	for _, ask := range []string{get("http://example.com/", "example.com"), connect("example.com:443")} {
		resp, body := w.send(ask)
		if resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, " failed: nothing listens there") || strings.Contains(body, "127.0.0.1") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	told := w.decisions()
	if len(told) != 2 || slices.ContainsFunc(told, func(d Decision) bool { return d.Verdict != Failed }) {
		t.Errorf("told %+v", told)
	}
}

// What a person and a program read of a refusal: the reason is in the first line too, which is all that many clients show.
func TestARefusalCanBeRead(t *testing.T) {
	w := open(t, nil)
	resp, body := w.send(connect("registry.npmjs.org:443"))
	if resp.Status != "403 sallyport: registry.npmjs.org: no egress rule of this sandbox names it" || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%q %v", resp.Status, resp.Header)
	}
	if body != "sallyport: CONNECT registry.npmjs.org is refused: no egress rule of this sandbox names it\n"+
		"The owner can allow a host under egress: in sallyport.yaml, or with --egress registry.npmjs.org.\n" {
		t.Errorf("%q", body)
	}
	for a, want := range map[*Answer]string{
		{Host: "a.example"}:                             "a.example",
		{Host: "a.example", Port: 443}:                  "a.example",
		{Host: "a.example", Port: 80}:                   "a.example",
		{Host: "a.example", Port: 22}:                   "a.example:22",
		{Route: &Route{Name: "model"}, Path: "/models"}: "/model/models",
	} {
		if got := a.where(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, a := range []Answer{{Status: http.StatusBadGateway, Host: "a.example"}, {Status: http.StatusForbidden, Route: &Route{}}} {
		if next := a.next(); next != "" {
			t.Errorf("no owner can allow what is refused with %d: %q", a.Status, next)
		}
	}
	if got := plain("a \x7f~\x1f"); got != "a ?~?" {
		t.Errorf("%q", got)
	}
	resp, body = w.send("CONNECT \x1b[31mx\u202e:443 HTTP/1.1\r\n\r\n")
	if strings.ContainsAny(resp.Status+body, "\x1b\u202e") {
		t.Errorf("what an agent wrote is not inert: %q %q", resp.Status, body)
	}
}

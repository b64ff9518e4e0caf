package sandboxtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/port/sandbox"
)

// door listens where a sandbox may connect to, and serves each connection in a goroutine of its own.
func (s Setup) door(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(s.Root, fmt.Sprintf("d%d", serial.Add(1)))
	l, err := net.Listen("unix", path)
	must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer conn.Close(); serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return path
}

// echo answers with what it heard, once it has heard all of it.
func echo(conn net.Conn) {
	if raw, err := io.ReadAll(conn); err == nil {
		_, _ = conn.Write(raw) // who has gone needs no answer
	}
}

// The program's side, in Python: connections by the port and by the socket.
const (
	byPort   = `c=socket.create_connection(("127.0.0.1",3128))`
	bySocket = `c=socket.socket(socket.AF_UNIX); c.connect("/.sallyport/egress")`
	asked    = `
def ask(c, b):
    threading.Thread(target=lambda: (c.sendall(b), c.shutdown(socket.SHUT_WR))).start()
    r=b""
    while True:
        x=c.recv(65536)
        if not x: return r
        r+=x`
)

// client is a program that begins at once.
func client(lines ...string) string {
	return "exec python3 -c '" + strings.Join(append([]string{"import os,signal,socket,sys,threading,time", asked}, lines...), "\n") + "'"
}

func testEgress(t *testing.T, s Setup) {
	need(t, "python3")
	t.Run("the socket is reached by its port and by its name, from the first moment", func(t *testing.T) {
		for _, way := range []string{byPort, bySocket} {
			spec := s.Spec(t, client(way, `b=os.urandom(3<<20)`, `print(ask(c,b)==b)`))
			spec.Egress = s.door(t, echo)
			if got := s.run(t, spec); got.out != "True\n" || got.Exit != (sandbox.Exit{}) {
				t.Errorf("%s: %+v", way, got)
			}
		}
	})
	t.Run("without one nothing is there", func(t *testing.T) {
		for _, way := range []string{byPort, bySocket} {
			got := s.run(t, s.Spec(t, client("try:", " "+way, "except OSError as e: print(type(e).__name__)")))
			if got.out != "ConnectionRefusedError\n" && got.out != "FileNotFoundError\n" {
				t.Errorf("%s: %+v", way, got)
			}
		}
		if got := s.run(t, s.Spec(t, `set -- /proc/[0-9]*; echo $#`)); got.out != "2\n" { // init and the shell
			t.Errorf("processes: %+v", got)
		}
	})
	t.Run("nothing else is reached", func(t *testing.T) { testEgressAlone(t, s) })
	t.Run("a frozen sandbox's connection stands and goes on", func(t *testing.T) { testEgressFrozen(t, s) })
	t.Run("kill ends it", func(t *testing.T) {
		held := make(chan net.Conn, 1)
		spec := s.Spec(t, client(byPort, `c.sendall(b"x")`, "time.sleep(1000)"))
		spec.Egress = s.door(t, func(c net.Conn) {
			_, err := io.ReadFull(c, make([]byte, 1))
			if err == nil {
				held <- c
				_, err = c.Read(make([]byte, 1))
			}
			held <- nil
			if err == nil {
				t.Error("more came")
			}
		})
		p := s.start(t, spec)
		<-held
		p.Kill()
		<-held
	})
	t.Run("who ends the relay harms nobody else", func(t *testing.T) {
		spec := s.Spec(t, client(
			`for p in filter(str.isdigit, os.listdir("/proc")):`,
			` if b"relay" in open("/proc/%s/cmdline"%p,"rb").read().split(b"\0"): os.kill(int(p),signal.SIGKILL)`,
			"while True:",
			" try: "+byPort+"; c.close()",
			" except ConnectionResetError: pass", // the relay ended between the connection and its answer
			" except ConnectionRefusedError: break",
			bySocket, `print(ask(c,b"still"))`))
		spec.Egress = s.door(t, echo)
		other := s.Spec(t, client("sys.stdin.readline()", byPort, `print(ask(c,b"other"))`))
		other.Egress = spec.Egress
		var out lockedBuffer
		begin, tell := io.Pipe()
		other.Stdin, other.Stdout = begin, &out
		beside := s.start(t, other)
		if got := s.run(t, spec); got.out != "b'still'\n" || got.Exit != (sandbox.Exit{}) {
			t.Errorf("%+v", got)
		}
		must(t, tell.Close())
		if exit, err := beside.Wait(); err != nil || exit != (sandbox.Exit{}) || out.String() != "b'other'\n" {
			t.Errorf("the other: %+v, %v, %q", exit, err, out.String())
		}
	})
	t.Run("it has so many connections at once, and all in turn", func(t *testing.T) { testEgressMany(t, s) })
	t.Run("a host that is gone ends a connection at once", func(t *testing.T) {
		spec := s.Spec(t, client(byPort, `print(ask(c,b"")==b"")`))
		path := filepath.Join(s.Root, "gone")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
		must(t, err)
		l.SetUnlinkOnClose(false)
		must(t, l.Close())
		spec.Egress = path
		if got := s.run(t, spec); got.out != "True\n" && !strings.Contains(got.err, "ConnectionResetError") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what is no socket of the host's own is not handed over", func(t *testing.T) {
		file := filepath.Join(s.Root, "plain")
		must(t, os.WriteFile(file, nil, 0o600))
		for _, path := range []string{file, s.Root, filepath.Join(s.Root, "absent"), "relative"} {
			spec := s.Spec(t, "true")
			spec.Egress = path
			if p, err := s.Driver.Start(t.Context(), spec); err == nil {
				p.Kill()
				t.Errorf("%s: no error", path)
			}
		}
	})
}

// testEgressAlone tries, with a way out, what must not work, each with a control that does.
func testEgressAlone(t *testing.T, s Setup) {
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	other := s.door(t, echo)
	abstract := fmt.Sprintf("sallyport-test-%d-%d", os.Getpid(), serial.Add(1))
	hidden, err := net.Listen("unix", "@"+abstract)
	must(t, err)
	defer hidden.Close()
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	defer udp.Close()
	env := []string{"PORT=" + tcp.Addr().String()[len("127.0.0.1:"):], "OTHER=" + other, "HIDDEN=" + abstract, "UDP=" +
		udp.LocalAddr().String()[len("127.0.0.1:"):]}
	const own = `l=socket.socket(); l.bind(("127.0.0.1",0)); l.listen(); socket.create_connection(l.getsockname())`
	egress := s.door(t, echo)
	for _, y := range []try{
		{name: "another port of the host's loopback", script: client(`socket.create_connection(("127.0.0.1",int(os.environ["PORT"])))`)},
		{name: "a socket file of the host", script: client(`c=socket.socket(socket.AF_UNIX); c.connect(os.environ["OTHER"])`)},
		{name: "a socket of the host without a file", script: client(`c=socket.socket(socket.AF_UNIX); c.connect("\0"+os.environ["HIDDEN"])`)},
		{name: "a datagram to the host", script: client(`c=socket.socket(type=socket.SOCK_DGRAM); c.connect(("127.0.0.1",int(os.environ["UDP"])))`,
			`c.send(b"x"); c.settimeout(1); c.send(b"x")`)},
		{name: "another machine", script: client(`socket.create_connection(("192.0.2.1",9),1)`), control: client(own), allowed: true},
		{name: "another machine by IPv6", script: client(`socket.create_connection(("2001:db8::1",9),1)`), control: client(own), allowed: true},
		{name: "a name server", script: client(`socket.getaddrinfo("example.org",80)`), control: client(`socket.getaddrinfo("localhost",80)`), allowed: true},
		{name: "a name server that is asked directly",
			script: client(`c=socket.socket(type=socket.SOCK_DGRAM); c.sendto(b"x",("192.0.2.1",53))`), control: client(own), allowed: true},
		{name: "a raw socket", script: client(`socket.socket(socket.AF_INET,socket.SOCK_RAW,socket.IPPROTO_ICMP)`), root: true},
		{name: "a packet socket", script: client(`socket.socket(socket.AF_PACKET,socket.SOCK_RAW)`), root: true},
		{name: "another interface", script: client(`sys.exit([n for _,n in socket.if_nameindex()]==["lo"])`),
			control: client(`sys.exit(len(socket.if_nameindex())<1)`), allowed: true},
		{name: "the rights on the socket", script: client(`os.chmod("/.sallyport/egress",0o777)`),
			control: client(`os.chmod("/workspace/file",0o600)`), allowed: true},
		{name: "its place", script: client(`os.unlink("/.sallyport/egress")`), control: client(`os.unlink("/workspace/file")`), allowed: true},
		{name: "the port, beside the relay", script: client(`l=socket.socket(); l.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)`,
			`l.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEPORT,1); l.bind(("127.0.0.1",3128)); l.listen()`),
			control: client(`l=socket.socket(); l.bind(("127.0.0.1",3127)); l.listen()`), allowed: true},
	} {
		y.inside, y.egress = env, egress
		t.Run(y.name, func(t *testing.T) { s.hold(t, y) })
	}
}

// testEgressFrozen sends more than the kernel holds in between: what stands takes nothing.
func testEgressFrozen(t *testing.T, s Setup) {
	const all = 32 << 20
	reached := make(chan *net.UnixConn, 1)
	done := make(chan struct{})
	defer close(done)
	// It stays until it was heard: what a program has said last may be lost with its sandbox.
	spec := s.Spec(t, client(byPort, `c.sendall(b"here\n")`, "n=0", fmt.Sprintf("while n<%d:", all), " x=c.recv(1<<20)",
		" if not x: break", " n+=len(x)", `c.sendall(b"%d\n"%n)`, "c.recv(1)"))
	spec.Egress = s.door(t, func(c net.Conn) {
		reached <- c.(*net.UnixConn)
		<-done
	})
	p := s.start(t, spec)
	conn := <-reached
	words := bufio.NewReader(conn)
	if line, err := words.ReadString('\n'); line != "here\n" {
		t.Fatalf("%q, %v", line, err)
	}
	must(t, p.Freeze(t.Context()))
	text, n := make([]byte, all), 0
	for full := false; !full; { // what lies between is filled, and then nothing more is taken
		must(t, conn.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
		more, err := conn.Write(text[n:])
		if n += more; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes were taken in a frozen sandbox: %v", n, err)
		}
		full = n > 0 && more == 0
	}
	must(t, conn.SetWriteDeadline(time.Time{}))
	must(t, p.Thaw())
	_, err := conn.Write(text[n:])
	must(t, err)
	if line, err := words.ReadString('\n'); line != fmt.Sprintf("%d\n", all) {
		t.Errorf("the program heard %q, %v", line, err)
	}
	must(t, conn.CloseWrite())
	if exit, err := p.Wait(); err != nil || exit != (sandbox.Exit{}) {
		t.Errorf("%+v, %v", exit, err)
	}
}

// testEgressMany opens more than there may be; the host answers none before it has as many as may be.
func testEgressMany(t *testing.T, s Setup) {
	const wanted, most = 150, 64
	var mu sync.Mutex
	now, peak, total := 0, 0, 0
	full := make(chan struct{})
	spec := s.Spec(t, client("a=[]", fmt.Sprintf("for i in range(%d):", wanted), " "+byPort+`; c.sendall(b"x"); a.append(c)`,
		"n=0", "for c in a:", ` n+=c.recv(1)==b"y"; c.close()`, "print(n)"))
	spec.Egress = s.door(t, func(c net.Conn) {
		mu.Lock()
		now, total = now+1, total+1
		peak = max(peak, now)
		if total == most {
			time.AfterFunc(200*time.Millisecond, func() { close(full) }) // for others to come, if they can
		}
		mu.Unlock()
		<-full
		if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
			mu.Lock()
			now--
			mu.Unlock()
			_, _ = c.Write([]byte("y")) // who has gone needs no answer
			_, _ = io.Copy(io.Discard, c)
		}
	})
	if got := s.run(t, spec); got.out != fmt.Sprintln(wanted) {
		t.Errorf("%+v", got)
	}
	if peak > most {
		t.Errorf("%d at once", peak)
	}
}

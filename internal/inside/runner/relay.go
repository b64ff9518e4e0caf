package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// The relay is for programs that can speak to a port and not to a socket file. It is the agent's own, as every process
// in here is, and stands between nobody: what may be reached is decided behind the socket.
const (
	relayConns    = 64       // at once, where there are descriptors for it; who comes then waits
	relayOwn      = 16       // descriptors beside theirs
	relayBacklog  = 128      // of those
	relayBytes    = 16 << 10 // in flight, each way
	relayPatience = 10       // seconds for the host to take a connection
	relayListener = 3        // descriptor of the listening socket
)

// listenEgress opens the port, before anybody else in here can.
func listenEgress() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open the way out: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: sandbox.EgressPort, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, relayBacklog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("open the way out on port %d: %w", sandbox.EgressPort, err)
	}
	return fd, nil
}

// relay hands every connection on to the socket until it is ended with its sandbox.
func relay() int {
	// Not blocking, so that who waits costs no thread: threads are counted.
	if err := unix.SetNonblock(relayListener, true); err != nil {
		fmt.Fprintln(os.Stderr, "runner relay:", err)
		return 1
	}
	listener := os.NewFile(relayListener, "egress")
	raw, err := listener.SyscallConn()
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner relay:", err)
		return 1
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		fmt.Fprintln(os.Stderr, "runner relay:", err)
		return 1
	}
	places := make(chan struct{}, max(1, min(relayConns, (int64(min(files.Cur, 1<<20))-relayOwn)/2)))
	for {
		places <- struct{}{}
		fd, err := accept(raw)
		if err != nil {
			fmt.Fprintln(os.Stderr, "runner relay:", err)
			return 1
		}
		go func() {
			defer func() { <-places }()
			carry(fd)
		}()
	}
}

// accept waits for a connection; what has gone wrong with one is no reason not to take the next.
func accept(listener interface {
	Read(f func(fd uintptr) bool) error
}) (fd int, err error) {
	for {
		waited := listener.Read(func(at uintptr) bool {
			fd, _, err = unix.Accept4(int(at), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(err, unix.EAGAIN)
		})
		switch {
		case waited != nil:
			return -1, waited
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			continue
		}
		return fd, err
	}
}

// carry copies both ways until both have ended.
func carry(client int) {
	near := os.NewFile(uintptr(client), "client")
	defer near.Close()
	host, err := connectEgress()
	if err != nil {
		return // closed at once: there is nobody behind the socket
	}
	far := os.NewFile(uintptr(host), "host")
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { pass(far, near) })
	pass(near, far)
	both.Wait()
}

// connectEgress waits in the queue of the socket for relayPatience at the most.
func connectEgress() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: relayPatience})
	for err == nil {
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: sandbox.EgressSocket}); !errors.Is(err, unix.EINTR) {
			break
		}
		err = nil
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// pass copies one way and then ends that way alone: the other may go on. Where it could not write on, it lets nothing
// more come, so that who sends is told.
func pass(to, from *os.File) {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, relayBytes))
	shut(to, unix.SHUT_WR)
	if err != nil {
		shut(from, unix.SHUT_RD)
		shut(to, unix.SHUT_RDWR)
	}
}

func shut(f *os.File, how int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), how) }) // gone already is as good
}

// throughPatience is how long a word may take to come back.
const throughPatience = 20 * time.Second

// through sends a word by the way out, as a program inside would, and waits until it has come back.
func through(word string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	patience := unix.NsecToTimeval(int64(throughPatience))
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: sandbox.EgressPort, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = writeAll(fd, []byte(word))
	}
	if err == nil {
		err = unix.Shutdown(fd, unix.SHUT_WR)
	}
	back := make([]byte, len(word))
	if err == nil {
		err = readAll(fd, back)
	}
	if err == nil && string(back) != word {
		err = errors.New("another word came back")
	}
	return err
}

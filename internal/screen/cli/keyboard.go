package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// readKeys hands over single keys of a terminal without waiting for a line. Signals stay
// signals: Ctrl-C is not a key. restore puts the terminal back as it was, and may be called twice.
func readKeys(fd int) (keys <-chan byte, restore func(), err error) {
	ch := make(chan byte, 16)
	restore, err = eachKey(fd, func(k byte) {
		select {
		case ch <- k:
		default: // nobody waits for that many
		}
	})
	return ch, restore, err
}

// eachKey is readKeys for who takes every key.
func eachKey(fd int, take func(byte)) (restore func(), err error) {
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Lflag |= unix.NOFLSH // else Ctrl-C takes what we write in answer to it from the screen
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	wake, stop, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &now); err != nil {
		return nil, errors.Join(err, wake.Close(), stop.Close())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pollKeys(fd, int(wake.Fd()), take)
	}()
	restore = sync.OnceFunc(func() {
		stop.Close() // wakes the reader
		<-done
		wake.Close()
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, was) // a terminal that is gone needs no restoring
	})
	return restore, nil
}

// pollKeys reads until wake ends or the terminal does.
func pollKeys(fd, wake int, take func(byte)) {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || fds[1].Revents != 0 || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		var key [1]byte
		if n, err := unix.Read(fd, key[:]); err != nil || n == 0 {
			return
		}
		take(key[0])
	}
}

// answerBytesMax bounds what a person answers.
const answerBytesMax = 4 << 10

// What was typed or pasted before a question was on the screen does not answer it: input is dropped
// until none has come for quietFor, at most for noisyMax.
const (
	quietFor = 50 * time.Millisecond
	noisyMax = 2 * time.Second
)

// prompt puts a question on the screen and reads the one line that answers it.
func (a *app) prompt(question string, stop <-chan os.Signal) (string, error) {
	fd, ok := terminal(a.In)
	if ok {
		dropTyped(fd)
		defer keepOutput(fd)()
	}
	fmt.Fprint(a.Err, question)

	line, err := readLine(a.In, stop)
	if ok && errors.Is(err, errInterrupted) {
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) // half a line is not for who reads next
	}
	return line, err
}

// keepOutput has a terminal keep what we write while Ctrl-C is pressed, and returns what ends that: the kernel
// sends the signal first and empties both directions then, our answer to the signal included.
func keepOutput(fd int) (restore func()) {
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	now := *was
	now.Lflag |= unix.NOFLSH
	_ = unix.IoctlSetTermios(fd, unix.TCSETS, &now) // without it a line may be missing
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }
}

// dropTyped drops what stands in a terminal's input, and what is still coming.
func dropTyped(fd int) {
	for began := time.Now(); time.Since(began) < noisyMax; {
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) // what cannot be dropped is read as an answer, and asked again
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, int(quietFor.Milliseconds())); err == nil && n == 0 || fds[0].Revents&unix.POLLIN == 0 && err == nil {
			return
		}
	}
}

// typing is a line that is being typed, key by key.
type typing struct{ typed []byte }

// typedMax is the longest line that a key can still be added to.
const typedMax = 32

// key takes one key. It returns the line, without blanks around it and in lower case, when Enter was pressed.
func (l *typing) key(k byte) (line string, whole bool) {
	const backspace, del = 8, 127
	switch {
	case k == '\n' || k == '\r':
		line = strings.ToLower(strings.TrimSpace(string(l.typed)))
		l.typed = nil
		return line, true
	case (k == del || k == backspace) && len(l.typed) > 0:
		l.typed = l.typed[:len(l.typed)-1]
	case k >= ' ' && k < del && len(l.typed) < typedMax:
		l.typed = append(l.typed, k)
	}
	return "", false
}

// endOfInputKey is Ctrl-D.
const endOfInputKey = 4

// readLine reads one line, byte by byte so that nothing beyond it is taken. It returns
// io.EOF at the end of input, and errInterrupted when stop says so first (a terminal only).
func readLine(in io.Reader, stop <-chan os.Signal) (string, error) {
	fd, isTerminal := terminal(in)
	var answer []byte
	for len(answer) < answerBytesMax {
		if isTerminal {
			if err := readable(fd, stop); err != nil {
				return "", err
			}
		}
		var b [1]byte
		n, err := in.Read(b[:])
		switch {
		case n == 1 && b[0] == '\n':
			return string(answer), nil
		case n == 1:
			answer = append(answer, b[0])
		case err != nil && len(answer) > 0 && errors.Is(err, io.EOF):
			return string(answer), nil
		case err != nil:
			return "", err
		}
	}
	return string(answer), nil
}

var errInterrupted = errors.New("interrupted")

// readable waits until there is something to read.
func readable(fd int, stop <-chan os.Signal) error {
	for {
		select {
		case <-stop:
			return errInterrupted
		default:
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 100) // ms; a signal is noticed within that
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/port/sandbox"
)

// mapped writes through a shared mapping, from two processes and with no call of the kernel's: only
// memory moves, so neither a time nor a size of the file tells of it.
const mapped = `exec python3 -c '
import mmap, os
f = open("mapped", "w+b"); f.truncate(8192); f.flush()
m = mmap.mmap(f.fileno(), 8192)
at = 0
if os.fork() == 0:
    os.setsid()
    at = 4096
n = 0
while True:
    n += 1
    m[at:at+8] = n.to_bytes(8, "little")
'`

// spawned starts a child after the other by vfork, in which the parent cannot be stopped until the
// child has become a program.
const spawned = `exec python3 -c '
import os
while True:
    os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "echo x >> spawned"], os.environ), 0)
'`

// woken asks the kernel, in every way there is, for a SIGCONT while it stands: by a timer, when somebody writes to
// a pipe of its own, when its parent ends. What the kernel refuses it goes on without.
const woken = `exec python3 -c '
import ctypes, fcntl, os, signal, struct
signal.signal(signal.SIGCONT, lambda *_: None)
libc, cont = ctypes.CDLL(None, use_errno=True), int(signal.SIGCONT)
event, timer = struct.pack("QiiQ40x", 0, cont, 0, 0), ctypes.c_void_p()
if libc.timer_create(1, event, ctypes.byref(timer)) == 0:
    libc.timer_settime(timer, 0, struct.pack("qqqq", 0, 10000000, 0, 10000000), None)
for refused in (lambda: fcntl.fcntl(os.pipe()[0], 10, cont), lambda: fcntl.fcntl(0, 10, cont)):
    try:
        refused()
    except OSError:
        continue
    os._exit(4)
if libc.prctl(1, cont) == 0 or libc.syscall(56, cont, 0, 0, 0, 0) >= 0:
    os._exit(5)
while True:
    with open("woken", "a") as f:
        f.write("x")
'`

// testFrozenMemory holds a freezer to bytes that change without a call of the kernel's.
func testFrozenMemory(t *testing.T, s Setup) {
	need(t, "python3")
	spec := s.Spec(t, mapped)
	p := s.start(t, spec)
	read := func() []byte {
		raw, err := os.ReadFile(filepath.Join(spec.Tree.Upper, "mapped"))
		if err != nil {
			return nil
		}
		return raw
	}
	moving := func() func() bool { // in both processes
		first := read()
		return func() bool {
			now := read()
			if len(first) != 8192 {
				first = now
				return false
			}
			return !bytes.Equal(first[:8], now[:8]) && !bytes.Equal(first[4096:4104], now[4096:4104])
		}
	}
	for range 5 {
		eventually(t, "both processes write", moving())
		must(t, p.Freeze(t.Context()))
		before, looks := read(), 0
		for over := time.After(60 * time.Millisecond); ; looks++ {
			select {
			case <-over:
			default:
				if now := read(); !bytes.Equal(before, now) {
					t.Fatalf("memory was written in a frozen sandbox, seen at look %d", looks)
				}
				continue
			}
			break
		}
		if looks < 5 {
			t.Logf("only %d looks: a slow machine", looks)
		}
		must(t, p.Thaw())
	}
	eventually(t, "both processes write again", moving())
}

// grows reports whether a file of the upper layer becomes longer.
func grows(spec sandbox.Spec, name string) func() bool {
	last := int64(-1)
	return func() bool {
		info, err := os.Stat(filepath.Join(spec.Tree.Upper, name))
		if err != nil {
			return false
		}
		was := last
		last = info.Size()
		return was >= 0 && last > was
	}
}

// testFreezeTwice holds a freezer to its edges: nothing is frozen more than once, and what the
// program itself had stopped is its own business.
func testFreezeTwice(t *testing.T, s Setup) {
	const writer = "while :; do echo x >> w; done"
	t.Run("freezing twice is freezing once", func(t *testing.T) {
		spec := s.Spec(t, writer)
		p := s.start(t, spec)
		eventually(t, "it writes", grows(spec, "w"))
		for range 3 {
			must(t, p.Freeze(t.Context()))
			if !quiet(t, spec.Tree.Upper) {
				t.Fatal("something was written in a frozen sandbox")
			}
		}
		must(t, p.Thaw())
		eventually(t, "one thaw is enough", grows(spec, "w"))
	})
	t.Run("a freeze without time is whole or none", func(t *testing.T) {
		spec := s.Spec(t, writer)
		p := s.start(t, spec)
		eventually(t, "it writes", grows(spec, "w"))
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		if err := p.Freeze(ctx); err == nil { // it was quick enough: then it holds
			if !quiet(t, spec.Tree.Upper) {
				t.Fatal("something was written in a frozen sandbox")
			}
			must(t, p.Thaw())
		}
		eventually(t, "all runs again", grows(spec, "w"))
		must(t, p.Freeze(t.Context()))
		if !quiet(t, spec.Tree.Upper) {
			t.Fatal("something was written in a frozen sandbox")
		}
		must(t, p.Thaw())
	})
	t.Run("what the program had stopped stays stopped", func(t *testing.T) {
		// The first writer is stopped by the program itself, and goes on when the program says so.
		spec := s.Spec(t, "(while :; do echo x >> w; done) & w=$!; (while :; do echo x >> v; done) &"+
			" until test -e stop; do sleep 0.01; done; kill -STOP $w;"+
			" until grep -q '^State:.T' /proc/$w/status; do sleep 0.01; done; touch stopped;"+
			" until test -e go; do sleep 0.01; done; kill -CONT $w; touch gone; wait")
		p := s.start(t, spec)
		put := func(name string) { // by the program's own hand: nobody else writes to its tree
			t.Helper()
			s.say(t, p, "touch "+name)
		}
		is := func(name string) func() bool {
			return func() bool { _, err := os.Stat(filepath.Join(spec.Tree.Upper, name)); return err == nil }
		}
		stands := func(what string) {
			t.Helper()
			before, err := os.Stat(filepath.Join(spec.Tree.Upper, "w"))
			must(t, err)
			eventually(t, "the other one writes", grows(spec, "v"))
			eventually(t, "the other one writes on", grows(spec, "v"))
			if after, err := os.Stat(filepath.Join(spec.Tree.Upper, "w")); err != nil || after.Size() != before.Size() {
				t.Fatalf("%s: what the program had stopped ran: %v, %v", what, after, err)
			}
		}
		eventually(t, "both write", grows(spec, "w"))
		put("stop")
		eventually(t, "the program stops one", is("stopped"))
		stands("before a freeze")
		must(t, p.Thaw())
		stands("after a thaw of what was not frozen")
		for range 2 {
			must(t, p.Freeze(t.Context()))
			must(t, p.Freeze(t.Context()))
			if !quiet(t, spec.Tree.Upper) {
				t.Fatal("something was written in a frozen sandbox")
			}
			must(t, p.Thaw())
			stands("after a thaw")
		}
		put("go")
		eventually(t, "the program lets it go on", is("gone"))
		eventually(t, "it writes again", grows(spec, "w"))
	})
}

// say runs a shell command beside the program.
func (s Setup) say(t *testing.T, p sandbox.Process, script string) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	a, err := p.Attach(t.Context(), []string{"sh", "-c", script}, nil, "", null)
	must(t, err)
	if exit, err := a.Wait(); err != nil || exit.Code != 0 {
		t.Fatalf("%s: %+v, %v", script, exit, err)
	}
}

// testFreezeAtTheEnd freezes what is about to end: there is an answer, the end is what it would
// have been, and nothing is left.
func testFreezeAtTheEnd(t *testing.T, s Setup) {
	t.Run("while it ends", func(t *testing.T) {
		frozen := 0
		for i := range 12 {
			mark := marker()
			spec := s.Spec(t, "setsid sleep "+mark+" & touch ready; sleep 0.0"+string(rune('0'+i%10))+"; exit 3")
			p := s.start(t, spec)
			eventually(t, "it runs", func() bool { _, err := os.Stat(filepath.Join(spec.Tree.Upper, "ready")); return err == nil })
			over := make(chan sandbox.Exit, 1)
			go func() {
				exit, err := p.Wait()
				if err != nil {
					t.Error(err)
				}
				over <- exit
			}()
			for range 20 {
				switch err := p.Freeze(t.Context()); {
				case err == nil:
					frozen++
				case !errors.Is(err, sandbox.ErrEnded):
					t.Errorf("it was not frozen, and has not ended: %v", err)
				}
				must(t, p.Thaw())
			}
			if exit := <-over; exit.Code != 3 {
				t.Errorf("it ended with %+v", exit)
			}
			if left := alive(t, mark); len(left) > 0 {
				t.Errorf("left alive: %s", strings.Join(left, " "))
			}
		}
		t.Logf("frozen %d times", frozen)
	})
	t.Run("a context that ends kills what is frozen", func(t *testing.T) {
		mark := marker()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec := s.Spec(t, runaways(mark)+"sleep "+mark)
		p, err := s.Driver.Start(ctx, spec)
		must(t, err)
		t.Cleanup(p.Kill)
		eventually(t, "the processes run", func() bool { return len(alive(t, "sleep\x00"+mark)) >= 5 })
		must(t, p.Freeze(t.Context()))
		cancel()
		if exit, err := p.Wait(); err != nil || exit.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", exit, err)
		}
		if left := alive(t, mark); len(left) > 0 {
			t.Errorf("left alive: %s", strings.Join(left, " "))
		}
	})
	t.Run("in a storm that meets the limit", func(t *testing.T) {
		mark := marker()
		spec := s.Spec(t, "i=0; while [ $i -lt 200 ]; do setsid sleep "+mark+" & i=$((i+1)); done; wait")
		spec.Limits.ProcessesMax, spec.Limits.Timeout = 40, Patience
		p := s.start(t, spec)
		over := make(chan sandbox.Exit, 1)
		go func() {
			exit, err := p.Wait()
			if err != nil {
				t.Error(err)
			}
			over <- exit
		}()
		var exit sandbox.Exit
		for done := false; !done; {
			_ = p.Freeze(t.Context()) // it may be over
			if err := p.Thaw(); err != nil {
				t.Error(err)
			}
			select {
			case exit = <-over:
				done = true
			default:
			}
		}
		if exit.Limit == nil || exit.Limit.Name != "processes" {
			t.Errorf("it ended with %+v", exit)
		}
		if left := alive(t, mark); len(left) > 0 {
			t.Errorf("left alive: %s", strings.Join(left, " "))
		}
	})
}

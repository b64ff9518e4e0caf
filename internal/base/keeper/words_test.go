package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pipe is both ends of what connects a keeper with its daemon.
func pipe(t *testing.T) (keeper, daemon *os.File) {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	keeper, daemon = os.NewFile(uintptr(pair[0]), "daemon"), os.NewFile(uintptr(pair[1]), "keeper")
	t.Cleanup(func() { keeper.Close(); daemon.Close() })
	return keeper, daemon
}

// lineOf is a daemon's end, greeted by a keeper that says hello as this one does.
func lineOf(t *testing.T, hello string) (*Line, *os.File, error) {
	t.Helper()
	keeper, daemon := pipe(t)
	if _, err := fmt.Fprintln(keeper, hello); err != nil {
		t.Fatal(err)
	}
	l, err := answer(daemon)
	return l, keeper, err
}

const knows = `hello 1 {"release":"abc","trials":1}`

func TestADaemonSeesThatItsKeeperIsTooOld(t *testing.T) {
	var none *Line
	if none.Tries() || (&Line{}).Tries() {
		t.Error("without a keeper there are trials")
	}
	for hello, want := range map[string]bool{knows: true, `hello 1 {"release":"abc"}`: false, `hello 1 {"trials":2,"new":"?"}`: true} {
		l, _, err := lineOf(t, hello)
		if err != nil || l.Tries() != want {
			t.Errorf("%s: %t, %v", hello, l.Tries(), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody answers here
		if err := l.HandOver(ctx, "chg-1"); err == nil || errors.Is(err, ErrOld) == want {
			t.Errorf("%s: %v", hello, err)
		}
	}
}

func TestADaemonDoesNotStartUnderAnotherKeeper(t *testing.T) {
	for _, hello := range []string{`hello 2 {}`, `good day`, ``, `hello 1 {`, `hello 1`} {
		if l, _, err := lineOf(t, hello); err == nil {
			t.Errorf("%q: %+v", hello, l.Hello)
		}
	}
}

func TestWhatIsAnsweredReachesWhoAsked(t *testing.T) {
	l, keeper, err := lineOf(t, knows)
	if err != nil {
		t.Fatal(err)
	}
	asks := make(chan said)
	go hear(keeper, asks)
	if hello := <-asks; hello.word != wordHello {
		t.Fatalf("%+v", hello)
	}
	type got struct {
		left int
		err  error
	}
	first, second := make(chan got, 1), make(chan got, 1)
	confirm := func(code string, to chan got) {
		left, err := l.Confirm(t.Context(), "chg-1", code, json.RawMessage(`{"who":1}`))
		to <- got{left, err}
	}
	go confirm("one", first)
	one := <-asks
	go confirm("two", second)
	two := <-asks
	if want := `{"change":"chg-1","code":"two","by":{"who":1}}`; two.word != wordConfirm || string(two.body) != want || two.number == one.number {
		t.Errorf("%+v %s", two, two.body)
	}
	for _, line := range []string{"news 1 {}", "answer 99 {}", "answer", "answer 1 [", fmt.Sprintf(`answer %d {"code":true,"left":3}`, two.number), fmt.Sprintf(`answer %d {"refused":"not now"}`, one.number)} {
		send(keeper, line+"\n")
	}
	if g := <-second; g.left != 3 || !errors.Is(g.err, ErrCode) {
		t.Errorf("%+v", g)
	}
	if g := <-first; !errors.Is(g.err, ErrRefused) || !strings.Contains(g.err.Error(), "not now") {
		t.Errorf("%+v", g)
	}
}

// Whoever waits for a keeper that is gone, or that hangs, does not wait for ever, and does not take it for a yes.
func TestAKeeperThatDoesNotAnswerIsNoYes(t *testing.T) {
	l, keeper, err := lineOf(t, knows)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := l.HandOver(ctx, "chg-1"); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Finalized(t.Context(), "chg-1") }()
	lines := bufio.NewScanner(keeper)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), wordFinalized) {
	}
	keeper.Close()
	if err := <-ended; !errors.Is(err, ErrSilent) {
		t.Errorf("%v", err)
	}
	if err := l.Asked(t.Context(), "chg-1"); !errors.Is(err, ErrSilent) {
		t.Errorf("%v", err)
	}
	for size, short := range map[int]bool{wordMax - 1: true, wordMax: false} { // with its end it has to fit
		bare := fmt.Sprintf(`%s %d {"change":"chg-1","why":""}`, wordRollBack, l.asked+1)
		err := l.RollBack(t.Context(), "chg-1", strings.Repeat("x", size-len(bare)), nil)
		if err == nil || errors.Is(err, ErrSilent) != short {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// A daemon that takes no answers does not hold up its keeper.
func TestADaemonThatDoesNotListenIsNotWaitedFor(t *testing.T) {
	keeper, _ := pipe(t)
	long := strings.Repeat("x", wordMax) + "\n"
	for began := time.Now(); ; {
		send(keeper, long)
		if _, err := keeper.WriteString("x"); errors.Is(err, os.ErrClosed) {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal("it takes all of it")
		}
	}
}

// A daemon that was asked to stop says so with its last breath, and may leave behind a process that holds its end of the pipe.
func TestTheLastWordIsHeardBeforeTheEnd(t *testing.T) {
	for range 50 {
		keeper, daemon := pipe(t)
		cmd := exec.Command("sh", "-c", `printf 'hello 1\nready\nstop\n' >&3; sleep 1000 & exit 0`)
		cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{daemon}, &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
		daemon.Close()
		c, heard := attach(cmd, keeper, Hello{}), []string(nil)
		for gone, words := false, c.words; !gone; {
			select {
			case word, ok := <-words:
				if !ok {
					words = nil
				} else {
					heard = append(heard, word.word)
				}
			case <-c.ended:
				gone = true
			}
		}
		if want := []string{wordHello, wordReady, wordStop}; !slices.Equal(heard, want) {
			t.Fatalf("heard %q, want %q", heard, want)
		}
	}
}

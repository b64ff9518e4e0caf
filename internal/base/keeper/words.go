package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/base/deadman"
)

// version is of the words that keeper and daemon say to each other. A daemon that knows another does not start: so it never changes
// while a release may have to go back to one before it, and what comes to be known besides is told by a field of Hello.
const version = 1

// trials is the version of the words of a host change. A keeper of before them says none, which is 0.
const trials = 1

// What is said on the pipe, a line each. A word that the other side does not know is passed over.
//
//	keeper → daemon   hello 1 {JSON of Hello}   first of all
//	                  answer N {JSON of reply}  to the question that has the number N
//	daemon → keeper   hello 1                   first of all
//	                  ready                     it answers on its socket
//	                  beat                      its main loops went round since the last
//	                  stop                      it ends because it was asked to, and so shall the keeper
//	                  VERB N {JSON of ask}      a question: handover, asked, confirm, rollback, finalized
//
// A daemon is asked to end by SIGTERM. That it has ended is what the kernel says, never the end of the pipe, which a process
// that it left behind may hold.
const (
	wordHello  = "hello"
	wordReady  = "ready"
	wordBeat   = "beat"
	wordStop   = "stop"
	wordAnswer = "answer"

	wordHandOver  = "handover"
	wordAsked     = "asked"
	wordConfirm   = "confirm"
	wordRollBack  = "rollback"
	wordFinalized = "finalized"
)

const (
	wordMax = 64 << 10        // bytes of a line
	callMax = 2 * time.Minute // until a question is answered, at the most
	sayMax  = time.Second     // until a daemon has taken an answer
)

// Hello is what a keeper tells a daemon of itself.
type Hello struct {
	Keeper  deadman.Process `json:"keeper"`
	Release string          `json:"release"` // digest of what was started
	Trials  int             `json:"trials"`  // version of the words of a host change; 0 = it knows none
	Last    Last            `json:"last"`
	Limits  Limits          `json:"limits,omitzero"` // of a version on trial; none = it has none here
}

// Last is how the daemons before this one ended, as far as this keeper has started them.
type Last struct {
	Restarts int       `json:"restarts"`      // how often one was started in place of one that had ended unasked
	Why      string    `json:"why,omitempty"` // how the last of them ended
	At       time.Time `json:"at,omitzero"`   // when, UTC
}

// ask is what a daemon says with a verb.
type ask struct {
	Change string          `json:"change"`
	Code   string          `json:"code,omitempty"`
	Why    string          `json:"why,omitempty"`
	By     json.RawMessage `json:"by,omitempty"`
}

// reply is what a keeper answers.
type reply struct {
	Refused string `json:"refused,omitempty"` // why not; "" = it is done, and on the disk
	Code    bool   `json:"code,omitempty"`    // the code was wrong
	Left    int    `json:"left,omitempty"`    // how many more wrong ones there may be
}

// What may come of a question to the keeper.
var (
	ErrCode    = errors.New("this is not the code")
	ErrRefused = errors.New("the keeper refuses")                             // with its reason; the step does not allow it
	ErrOld     = errors.New("the keeper is too old for a change of the host") // a person installs another
	ErrSilent  = errors.New("the keeper does not answer")                     // whether it did it is in the record
)

// Line is a daemon's end of the pipe to its keeper.
type Line struct {
	Hello
	file *os.File
	says sync.Mutex // a line is written whole

	mu      sync.Mutex // of what follows
	asked   int
	waiting map[int]chan reply // by number of the question
	over    chan struct{}      // closed once the keeper says no more
}

// pipeAt and programAt are the descriptors that a daemon is started with, beside the standard ones.
const (
	pipeAt    = 3
	programAt = 4
)

// Answer is the first that a daemon does that a keeper has started: it takes its end of the pipe, says hello and hears whose it is.
func Answer() (*Line, error) {
	syscall.CloseOnExec(pipeAt) // no process that the daemon starts shall hold it
	_ = syscall.Close(programAt)
	_ = os.WriteFile("/proc/self/comm", []byte("sallyport"), 0) // the kernel named it by the descriptor
	_ = syscall.SetNonblock(pipeAt, true)                       // waiting for the keeper takes no thread
	return answer(os.NewFile(pipeAt, "keeper"))
}

func answer(file *os.File) (*Line, error) {
	l := &Line{file: file, waiting: map[int]chan reply{}, over: make(chan struct{})}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, wordMax)
	if !lines.Scan() {
		return nil, fmt.Errorf("hear the keeper that has started this daemon: %w", errors.Join(io.ErrUnexpectedEOF, lines.Err()))
	}
	word, rest, _ := strings.Cut(lines.Text(), " ")
	spoken, body, _ := strings.Cut(rest, " ")
	if word != wordHello || spoken != fmt.Sprint(version) {
		return nil, fmt.Errorf("the keeper says %.40q, and this daemon knows version %d: both are of one delivery, so install sallyport-keeper again", lines.Text(), version)
	}
	if err := json.Unmarshal([]byte(body), &l.Hello); err != nil {
		return nil, fmt.Errorf("read what the keeper says of itself: %w", err)
	}
	go l.listen(lines) // as long as the pipe is open
	return l, l.say(fmt.Sprint(wordHello, " ", version))
}

// listen hands each answer to who waits for it.
func (l *Line) listen(lines *bufio.Scanner) {
	defer close(l.over)
	for lines.Scan() {
		said := parse(lines.Text())
		var r reply
		if said.word != wordAnswer || json.Unmarshal(said.body, &r) != nil {
			continue
		}
		l.mu.Lock()
		if waits := l.waiting[said.number]; waits != nil {
			waits <- r // it has room for the one answer
			delete(l.waiting, said.number)
		}
		l.mu.Unlock()
	}
}

// Tries reports whether the keeper can put a change of the host on trial. One that cannot is too old: a daemon does not arm then, and a
// person at the machine installs another keeper.
func (l *Line) Tries() bool { return l != nil && l.Trials >= trials }

// Ready says that the daemon answers.
func (l *Line) Ready() error { return l.say(wordReady) }

// Beat says that the daemon's main loops have gone round.
func (l *Line) Beat() error { return l.say(wordBeat) }

// Stop says that the daemon was asked to end, so that no other is started. While a host change is under way another is all the same.
func (l *Line) Stop() error { return l.say(wordStop) }

// HandOver gives the home away to the new version. nil = the keeper has written step Handed and made New the current release; the daemon
// then ends, without Stop. An error of any other kind than ErrSilent = nothing has changed.
//
// Errors, here and below: ErrRefused, with the keeper's reason; ErrOld; ErrSilent, or ctx's cause, where only the record says whether
// the keeper did it. Each may be said again.
func (l *Line) HandOver(ctx context.Context, change string) error {
	_, err := l.ask(ctx, wordHandOver, ask{Change: change})
	return err
}

// Asked says that message 1 was delivered. The first time, the deadline moves to two minutes from then, and never beyond ten minutes from
// the start of the trial (SM-125, SM-126).
func (l *Line) Asked(ctx context.Context, change string) error {
	_, err := l.ask(ctx, wordAsked, ask{Change: change})
	return err
}

// Confirm confirms the trial by its code; by is who, for the record. left is how many more wrong codes there may be: with none left the
// keeper goes back. A word that has not the form of a code (code.Is) is no try. Errors: ErrCode, besides HandOver's.
func (l *Line) Confirm(ctx context.Context, change, code string, by json.RawMessage) (left int, err error) {
	r, err := l.ask(ctx, wordConfirm, ask{Change: change, Code: code, By: by})
	return r.Left, err
}

// RollBack has the keeper go back to the old version; it ends this daemon. why is for people, by for the record.
func (l *Line) RollBack(ctx context.Context, change, why string, by json.RawMessage) error {
	_, err := l.ask(ctx, wordRollBack, ask{Change: change, Why: why, By: by})
	return err
}

// Finalized says that a confirmed change has come to its end in the database, too: the keeper removes the record.
func (l *Line) Finalized(ctx context.Context, change string) error {
	_, err := l.ask(ctx, wordFinalized, ask{Change: change})
	return err
}

// ask says a verb and waits for what the keeper answers.
func (l *Line) ask(ctx context.Context, verb string, a ask) (r reply, err error) {
	if !l.Tries() {
		return r, fmt.Errorf("say %s to the keeper: %w", verb, ErrOld)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callMax, ErrSilent)
	defer cancel()
	raw, err := json.Marshal(a)
	if err != nil {
		return r, fmt.Errorf("say %s to the keeper: %w", verb, err)
	}
	waits := make(chan reply, 1)
	l.mu.Lock()
	l.asked++
	number := l.asked
	l.waiting[number] = waits
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, number)
		l.mu.Unlock()
	}()
	line := fmt.Sprintf("%s %d %s", verb, number, raw)
	if len(line) >= wordMax {
		return r, fmt.Errorf("say %s to the keeper: %d bytes are too many", verb, len(line))
	}
	if err := l.say(line); err != nil {
		return r, fmt.Errorf("%w: %w", ErrSilent, err)
	}

	select {
	case r = <-waits:
	case <-l.over:
		return r, fmt.Errorf("say %s to the keeper: %w: it is gone", verb, ErrSilent)
	case <-ctx.Done():
		return r, fmt.Errorf("say %s to the keeper: %w", verb, context.Cause(ctx))
	}
	switch {
	case r.Code:
		return r, ErrCode
	case r.Refused != "":
		return r, fmt.Errorf("%w %s: %s", ErrRefused, verb, r.Refused)
	}
	return r, nil
}

func (l *Line) say(line string) error {
	l.says.Lock()
	defer l.says.Unlock()
	if _, err := fmt.Fprintln(l.file, line); err != nil {
		word, _, _ := strings.Cut(line, " ")
		return fmt.Errorf("tell the keeper %q: %w", word, err)
	}
	return nil
}

// said is a line of the other side.
type said struct {
	word   string
	number int // of the question; 0 = none
	body   []byte
}

func parse(line string) said {
	word, rest, _ := strings.Cut(line, " ")
	number, body, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(number)
	return said{word: word, number: n, body: []byte(body)}
}

// hear hands on what a daemon says, line by line, until nothing more comes. A line that is too long ends it.
func hear(pipe io.Reader, words chan<- said) {
	defer close(words)
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, wordMax)
	for lines.Scan() {
		word := parse(lines.Text())
		if word.word == wordHello && word.number != version {
			continue // it ends by itself
		}
		words <- word
	}
}

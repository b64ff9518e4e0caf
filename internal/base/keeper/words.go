package keeper

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/base/deadman"
)

// version is of the words that keeper and daemon say to each other. A daemon that knows another does not start.
const version = 1

// What is said on the pipe, a line each. A word that the other side does not know is passed over.
//
//	keeper → daemon   hello 1 {JSON of Hello}   first of all
//	daemon → keeper   hello 1                   first of all
//	                  ready                     it answers on its socket
//	                  beat                      its main loops went round since the last
//	                  stop                      it ends because it was asked to, and so shall the keeper
//
// A daemon is asked to end by SIGTERM. That it has ended is what the kernel says, never the end of the pipe, which a process
// that it left behind may hold.
const (
	wordHello = "hello"
	wordReady = "ready"
	wordBeat  = "beat"
	wordStop  = "stop"
)

// wordMax bounds a line, in bytes.
const wordMax = 64 << 10

// Hello is what a keeper tells a daemon of itself.
type Hello struct {
	Keeper  deadman.Process `json:"keeper"`
	Release string          `json:"release"` // digest of what was started
	Last    Last            `json:"last"`
}

// Last is how the daemons before this one ended, as far as this keeper has started them.
type Last struct {
	Restarts int       `json:"restarts"`      // how often one was started in place of one that had ended unasked
	Why      string    `json:"why,omitempty"` // how the last of them ended
	At       time.Time `json:"at,omitzero"`   // when, UTC
}

// Line is a daemon's end of the pipe to its keeper.
type Line struct {
	Hello
	file *os.File
	mu   sync.Mutex
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
	file := os.NewFile(pipeAt, "keeper")
	l := &Line{file: file}
	raw, err := bufio.NewReader(io.LimitReader(file, wordMax)).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("hear the keeper that has started this daemon: %w", err)
	}
	word, rest, _ := strings.Cut(strings.TrimSuffix(raw, "\n"), " ")
	spoken, body, _ := strings.Cut(rest, " ")
	if word != wordHello || spoken != fmt.Sprint(version) {
		return nil, fmt.Errorf("the keeper says %.40q, and this daemon knows version %d: both are of one delivery, so install sallyport-keeper again", raw, version)
	}
	if err := json.Unmarshal([]byte(body), &l.Hello); err != nil {
		return nil, fmt.Errorf("read what the keeper says of itself: %w", err)
	}
	return l, l.say(fmt.Sprint(wordHello, " ", version))
}

// Ready says that the daemon answers.
func (l *Line) Ready() error { return l.say(wordReady) }

// Beat says that the daemon's main loops have gone round.
func (l *Line) Beat() error { return l.say(wordBeat) }

// Stop says that the daemon was asked to end, so that no other is started.
func (l *Line) Stop() error { return l.say(wordStop) }

func (l *Line) say(word string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintln(l.file, word); err != nil {
		return fmt.Errorf("tell the keeper %q: %w", word, err)
	}
	return nil
}

// hear hands on what a daemon says, word by word, until its end of the pipe is closed. A line that is too long ends it.
func hear(pipe io.Reader, words chan<- string, over <-chan struct{}) {
	defer close(words)
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, wordMax)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		if word == wordHello && rest != fmt.Sprint(version) {
			continue // it ends by itself
		}
		select {
		case words <- word:
		case <-over:
			return
		}
	}
}

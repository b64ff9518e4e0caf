package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/rule/secret"
)

const (
	transcriptName = "transcript.jsonl"
	// LineBytesMax is the most of a line in one entry; a longer line goes on in the next one.
	LineBytesMax = 16 << 10
	flushEvery   = 200 * time.Millisecond
	flushBytes   = 64 << 10
)

// Line is one entry of a transcript: a line a program wrote, without its newline,
// or an event of the session. Text is valid UTF-8 and otherwise as the program
// wrote it: escape it before it is shown.
type Line struct {
	At     time.Time `json:"at"`
	Stream string    `json:"stream"` // stdout, stderr or event
	Text   string    `json:"text"`
}

// ForHost reports whether a line is an answer or the end of a turn, which says nothing to a person.
func (l Line) ForHost() bool { return l.Stream == "stdout" && said([]byte(l.Text)) }

// PrintedBytes is how much the program printed with a line: nothing with what the host says of it.
func (l Line) PrintedBytes() int64 {
	if l.Stream == "event" {
		return 0
	}
	return int64(len(l.Text)) + 1 // its end
}

// transcript appends lines to a file, a few times a second.
type transcript struct {
	ops    disk.Ops
	output func(Line)
	broken func(error) // told once if the file cannot be written
	// Nothing comes into the file or to output before its secrets are taken out.
	secrets *secret.Scanner
	streams []*stream // made before anything is written
	chat    bool      // the program serves a conversation: what is for the host alone is not written down

	mu     sync.Mutex
	file   *os.File
	buffer bytes.Buffer
	err    error
	stop   chan struct{}
	idle   chan struct{} // closed when the flusher has ended
}

func newTranscript(r Running, broken func(error)) (*transcript, error) {
	t := &transcript{ops: r.Ops, output: r.Output, broken: broken, secrets: r.Secrets, stop: make(chan struct{}), idle: make(chan struct{})}
	t.chat = r.Program.Chat
	t.stream("stdout")
	t.stream("stderr")
	err := r.Ops.Do("transcript:open", func() (err error) {
		t.file, err = os.OpenFile(filepath.Join(r.Session.Dir, transcriptName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	go t.flushing()
	return t, nil
}

func (t *transcript) flushing() {
	defer close(t.idle)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			t.tell(nil)
			t.mu.Lock()
			t.flush()
			t.mu.Unlock()
		}
	}
}

// flush is called with mu held. After an error nothing more is written: half a transcript that says so is better than one with a hole.
func (t *transcript) flush() {
	if t.err != nil || t.buffer.Len() == 0 {
		return
	}
	err := t.ops.Do("transcript:append", func() error {
		_, err := t.file.Write(t.buffer.Bytes())
		return err
	})
	t.buffer.Reset()
	if err != nil {
		t.err = err
		t.broken(fmt.Errorf("write the transcript: %w", err))
	}
}

func (t *transcript) add(stream string, text []byte) {
	if t.chat && stream == "stdout" && forHost(text) {
		return
	}
	line := Line{At: time.Now().UTC(), Stream: stream, Text: strings.ToValidUTF8(string(text), "\uFFFD")}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		e := json.NewEncoder(&t.buffer)
		e.SetEscapeHTML(false)
		if err := e.Encode(line); err != nil {
			t.err = err // strings and a time always can be
		}
		if t.buffer.Len() >= flushBytes {
			t.flush()
		}
	}
	if t.output != nil {
		t.output(line)
	}
}

// event comes after all that was printed before it, as far as it can be told.
func (t *transcript) event(text string) {
	t.tell(nil)
	t.add("event", []byte(t.secrets.Redact(text)))
}

// close writes what is left and closes the file.
func (t *transcript) close() error {
	close(t.stop)
	<-t.idle
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	return errors.Join(t.err, t.ops.Do("transcript:close", t.file.Close))
}

// Last words are for a card: few, and read from the end.
const (
	lastLines     = 10
	lastWordBytes = 2 << 10
	lastReadBytes = 64 << 10
)

// LastWords returns the last lines the program wrote, joined by newlines: at most
// 10 and 2 KiB; "" if it said nothing or never ran. They are the agent's own words. Of a program
// that tells the end of its turns they are what it said at the last of them.
func LastWords(dir string) (string, error) {
	var lines []string
	err := lastOf(dir, lastReadBytes, func(l Line) {
		if l.Stream == "event" || strings.TrimSpace(l.Text) == "" {
			return
		}
		if said([]byte(l.Text)) {
			if e, ok := parseTurnEnd([]byte(l.Text)); ok && strings.TrimSpace(e.Says) != "" {
				lines = strings.Split(strings.TrimSpace(e.Says), "\n")
				lines = lines[max(0, len(lines)-lastLines):]
			}
			return
		}
		lines = append(lines, l.Text)
		lines = lines[max(0, len(lines)-lastLines):]
	})
	if err != nil {
		return "", err
	}
	words := strings.Join(lines, "\n")
	if over := len(words) - lastWordBytes; over > 0 {
		words = strings.ToValidUTF8(words[over:], "")
	}
	return words, nil
}

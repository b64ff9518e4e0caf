package session

import (
	"bytes"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/rule/secret"
)

// stream takes what a program prints: its secrets are taken out, also one that comes in pieces, and the rest is
// cut into lines. A line is in the transcript once it is known to hold none, which takes at most flushEvery and what an
// unfinished word takes to end.
type stream struct {
	t    *transcript
	hear func(line []byte) // told every line as it was printed, if it is whole in one entry; may be nil
	ear  cutter

	mu    sync.Mutex
	clean *secret.Redactor // writes to lines
	lines cutter
	told  time.Time // when all was last given out that could be
	some  bool      // there may be more since
}

// stream makes one; all are made before the first is written to.
func (t *transcript) stream(name string) *stream {
	if t.secrets == nil {
		t.secrets = secret.Default()
	}
	s := &stream{t: t}
	s.ear = cutter{give: func(line []byte, whole bool) {
		if whole {
			s.hear(line)
		}
	}}
	s.lines = cutter{give: func(line []byte, _ bool) { t.add(name, line) }}
	s.clean = t.secrets.Redactor(&s.lines)
	t.streams = append(t.streams, s)
	return s
}

// apart is how long what one stream printed may wait before the other's is given out: closer together, which came first
// is not known anyway.
const apart = 10 * time.Millisecond

// tell gives out what was printed and can be told by now, but for one stream's.
func (t *transcript) tell(but *stream) {
	for _, s := range t.streams {
		if s != but {
			s.tell(but != nil)
		}
	}
}

func (s *stream) tell(lazily bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.some && !(lazily && time.Since(s.told) < apart) {
		_ = s.clean.Flush() // a cutter takes everything
		s.some, s.told = false, time.Now()
	}
}

// Write never fails: a transcript that cannot be written ends the session by itself.
func (s *stream) Write(p []byte) (int, error) {
	s.t.tell(s)
	s.mu.Lock()
	_, _ = s.clean.Write(p)
	s.some = true
	s.mu.Unlock()
	if s.hear != nil { // not with mu held: who hears may have something to say
		_, _ = s.ear.Write(p)
	}
	return len(p), nil
}

// end gives out the rest, a last line without a newline too.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.clean.Close()
	s.lines.end()
	s.some = false
}

// cutter cuts what is written to it into lines of at most LineBytesMax.
type cutter struct {
	give    func(line []byte, whole bool) // whole: not cut
	pending []byte
	long    bool // the beginning of the line is given out already
}

func (c *cutter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			c.pending = append(c.pending, p...)
			c.cut()
			break
		}
		c.pending = append(c.pending, p[:i]...)
		c.cut()
		c.give(bytes.TrimSuffix(c.pending, []byte("\r")), !c.long)
		c.pending, c.long = c.pending[:0], false
		p = p[i+1:]
	}
	return n, nil
}

// cut gives out the beginning of a line that grew too long, between two characters.
func (c *cutter) cut() {
	for len(c.pending) > LineBytesMax {
		head := inert.Head(c.pending, LineBytesMax)
		c.give(head, false)
		c.pending = append(c.pending[:0], c.pending[len(head):]...)
		c.long = true
	}
}

// end gives out a last line without a newline.
func (c *cutter) end() {
	if len(c.pending) > 0 {
		c.give(c.pending, false)
		c.pending = nil
	}
}

package egress

import (
	"bytes"
	"io"
	"net/http"
	"slices"
)

// without drops the headers of an answer that hold a key, in a name or a value: some gateways tell what they were sent.
func (s spellings) without(h http.Header) {
	for name, values := range h {
		if s.in(name) || slices.ContainsFunc(values, s.in) {
			delete(h, name)
		}
	}
}

// in reports whether a text holds a key.
func (s spellings) in(text string) bool {
	_, found := s.hide([]byte(text))
	return found
}

// hide puts asterisks in place of every key in a text, so that lengths stay as they are. What stands from undecided on may be the
// beginning of one.
func (s spellings) hide(text []byte) (undecided int, found bool) {
	folded := fold(text)
	undecided = len(text)
	begins := s.beginnings()
	for at := 0; at < len(folded); at++ {
		if !begins[folded[at]] {
			continue
		}
		for _, one := range s {
			n, more := one.match(folded[at:])
			if more {
				undecided = min(undecided, at)
			}
			if n > 0 {
				copy(text[at:], bytes.Repeat([]byte("*"), n))
				at, found = at+n-1, true
				break
			}
		}
	}
	return undecided, found
}

// scrubber passes bytes on without a key, cut into whatever pieces. What may be the beginning of one is held until more comes.
type scrubber struct {
	to   io.Writer
	keys spellings
	held []byte
}

func (s *scrubber) Write(p []byte) (int, error) {
	all := append(s.held, p...)
	undecided, _ := s.keys.hide(all)
	_, err := s.to.Write(all[:undecided])
	s.held = append([]byte(nil), all[undecided:]...)
	return len(p), err
}

// end passes on what is held.
func (s *scrubber) end() error {
	_, err := s.to.Write(s.held)
	s.held = nil
	return err
}

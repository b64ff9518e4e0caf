package egress

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// keyBytesMin is the length from which a credential is looked for in answers: a shorter one is found in any text.
const keyBytesMin = 8

// key is the credential of a route without the word before it; nil if it is too short to be looked for.
func (r Route) key() []byte {
	v := r.Value.Reveal()
	if v = v[strings.LastIndexByte(v, ' ')+1:]; len(v) < keyBytesMin {
		return nil
	}
	return []byte(v)
}

// withoutKey drops the headers of an answer that hold a key: some gateways tell what they were sent.
func withoutKey(h http.Header, key []byte) {
	if key == nil {
		return
	}
	for name, values := range h {
		for _, v := range values {
			if strings.Contains(v, string(key)) {
				delete(h, name)
			}
		}
	}
}

// scrubber passes bytes on with asterisks in place of a key, so that lengths stay as they are. It finds the key as it is, cut into whatever
// pieces; not one that an endpoint has written in another way. What may be the key's beginning is held until more comes.
type scrubber struct {
	to   io.Writer
	key  []byte
	held []byte
}

func (s *scrubber) Write(p []byte) (int, error) {
	all := append(s.held, p...)
	for from := 0; ; {
		at := bytes.Index(all[from:], s.key)
		if at < 0 {
			break
		}
		from += at
		for i := range s.key {
			all[from+i] = '*'
		}
		from += len(s.key)
	}
	keep := min(len(s.key)-1, len(all))
	for keep > 0 && !bytes.HasPrefix(s.key, all[len(all)-keep:]) {
		keep--
	}
	_, err := s.to.Write(all[:len(all)-keep])
	s.held = append([]byte(nil), all[len(all)-keep:]...)
	return len(p), err
}

// end passes on what is held.
func (s *scrubber) end() error {
	_, err := s.to.Write(s.held)
	s.held = nil
	return err
}

package egress

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of what a meter keeps of one request.
const (
	askedBytesMax = 64 << 10 // its first bytes, for the model's name
	eventBytesMax = 4 << 20  // an event of a stream, or an answer that is none
	wordsBytesMax = 64 << 10 // an event whose words are told from the rest
)

// meter reads along with one request to a model and its answer, and changes neither. A nil meter reads nothing.
type meter struct {
	wire  string
	path  string
	used  func(Usage)
	mu    sync.Mutex
	asks  []byte // first bytes of the request
	in    int64  // its bytes
	out   int64  // of the model's words, or of an answer that is no stream
	ok    bool   // the model answered
	no    bool   // it refused
	lines bool   // the answer is a stream of events
	long  bool   // what is kept was more than may be, and is dropped up to its end
	kept  []byte // of the line or the answer so far
	tally tally
	last  bool // an event came after which no other says anything of usage
	told  bool
	began time.Time // the request
}

func newMeter(a Answer) *meter {
	if a.Route.Wire == "" || a.Route.Used == nil || a.Method != http.MethodPost {
		return nil
	}
	return &meter{wire: a.Route.Wire, path: a.Path, used: a.Route.Used, began: time.Now()}
}

// asked sees the request's body.
func (m *meter) asked(p []byte) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.in += int64(len(p))
	m.asks = append(m.asks, p[:min(len(p), askedBytesMax-len(m.asks))]...)
}

// answered sees the answer's head.
func (m *meter) answered(r *http.Response) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ok = r.StatusCode/100 == 2
	m.no = !m.ok && !(workedOn(r.StatusCode) && time.Since(m.began) >= workSoonest)
	m.lines = strings.HasPrefix(lower(strings.TrimSpace(r.Header.Get("Content-Type"))), "text/event-stream")
}

// Write sees the answer's body.
func (m *meter) Write(p []byte) {
	if m == nil || len(p) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ok || m.told {
		return
	}
	if !m.lines {
		m.out += int64(len(p))
		m.keep(p)
		return
	}
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		m.keep(line)
		if p = rest; !whole {
			return
		}
		if !m.long {
			m.event(m.kept)
		}
		m.kept, m.long = m.kept[:0], false
	}
	if m.tally.final && m.last { // before it, a later event may say more
		m.tell()
	}
}

func (m *meter) keep(p []byte) {
	if m.long || len(m.kept)+len(p) > eventBytesMax {
		m.long, m.kept = true, nil
		return
	}
	m.kept = append(m.kept, p...)
}

// event takes in one line of a stream of events.
func (m *meter) event(line []byte) {
	data, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\r")), []byte("data:"))
	if !ok {
		return
	}
	var p part
	if json.Unmarshal(data, &p) == nil {
		m.tally.add(m.wire, p, true)
	}
	m.last = m.last || ends(m.wire, p, data)
	var whole any
	switch {
	case m.tally.final:
	case len(data) > wordsBytesMax: // no model writes so much at once; it is not taken apart
		m.out += int64(len(data))
	case json.Unmarshal(data, &whole) == nil:
		m.out += words(whole, "")
	}
}

// close tells what is known once nothing more comes. sent says that the request went out, so that a model may have worked even if
// no answer came.
func (m *meter) close(sent bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told || m.no || !m.ok && !sent {
		return
	}
	m.object()
	m.tell()
}

// object takes in an answer that is no stream: an object, or a list of what would else be events. What is left of a stream is none.
func (m *meter) object() {
	var one part
	var list []part
	if json.Unmarshal(m.kept, &one) == nil {
		m.tally.add(m.wire, one, false)
	} else if json.Unmarshal(m.kept, &list) == nil {
		for _, p := range list {
			m.tally.add(m.wire, p, false)
		}
	}
}

// tell says once what was used.
func (m *meter) tell() {
	if !m.tally.final {
		if !m.tally.some && free(m.path) {
			return
		}
		m.tally.estimate(m.in, m.out)
		m.tally.Output = max(m.tally.Output, int64(time.Since(m.began).Seconds()*tokensPerSecond)) // what a model thinks is not in its words
	}
	if m.tally.Model == "" {
		m.tally.Model = m.model()
	}
	m.told, m.kept, m.asks = true, nil, nil
	m.tally.At = time.Now()
	m.used(m.tally.Usage)
}

// model is the name that the request gave: in its path, or in its first bytes.
func (m *meter) model() string {
	if _, name, ok := strings.Cut(m.path, "/models/"); ok {
		name, _, _ = strings.Cut(name, ":")
		return cut(plain(name), 128)
	}
	d := json.NewDecoder(bytes.NewReader(m.asks))
	if t, _ := d.Token(); t != json.Delim('{') {
		return ""
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return ""
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return ""
		}
		var name string
		if key == "model" && json.Unmarshal(value, &name) == nil {
			return cut(plain(name), 128)
		}
	}
	return ""
}

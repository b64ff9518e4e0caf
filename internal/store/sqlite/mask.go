package sqlite

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"modernc.org/sqlite"

	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
)

// masks are the replacements of texts that one blank copy has to tell apart: the same text has the same one in every table.
type masks struct {
	mu   sync.Mutex
	made map[string]string
}

// runs are the blank copies that are being made, by number.
var (
	runs     sync.Map // int64 → *masks
	runsMu   sync.Mutex
	runsLast int64
)

// beginMasks begins one copy; end forgets what it knew.
func beginMasks() (run int64, end func()) {
	runsMu.Lock()
	defer runsMu.Unlock()
	runsLast++
	run = runsLast
	runs.Store(run, &masks{made: map[string]string{}})
	return run, func() { runs.Delete(run) }
}

func init() { // the driver has functions for all connections or for none
	sqlite.MustRegisterFunction("sallyport_blank",
		&sqlite.FunctionImpl{NArgs: 3, Scalar: func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			run, _ := args[0].(int64)
			w, _ := args[1].(string)
			found, ok := runs.Load(run)
			m, is := found.(*masks)
			if !ok || !is {
				return nil, problem.New(problem.Internal, "no blank copy is being made")
			}
			text, is := args[2].(string)
			if !is { // NULL
				return args[2], nil
			}
			return m.blank(way(w), text)
		}})
}

func (m *masks) blank(w way, text string) (string, error) {
	switch w {
	case xs:
		return crossed(text), nil
	case mask:
		return m.mask(text), nil
	case who:
		return m.who(text), nil
	case choice:
		return m.choice(text), nil
	case doc:
		return m.doc(text)
	}
	return "", problem.Errorf(problem.Internal, "", "no way %q of blanking", w)
}

var scheme = pattern.Of(`^(?:https?://|wss?://|file:)`)

// crossed is as many x as a text has letters, behind its scheme.
func crossed(text string) string {
	begin := scheme().FindString(text)
	return begin + strings.Repeat("x", utf8.RuneCountInString(text[len(begin):]))
}

var (
	number   = pattern.Of(`^[0-9]{1,3}$`) // key of an option
	aSession = pattern.Of(`^[0-9a-z][0-9a-z-]{0,40}-[0-9a-z]{5}$`)
	ours     = pattern.Of(`^(?:chg|apr|lnd|psn|qst|cnv|cht|msg|out|tsk)-[0-9a-z]{8}$|^(?:msg|out)-[0-9a-z]{10}$|^ckpt-[0-9]{3,6}-[0-9a-f]{8}$`)
	machine  = pattern.Of(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,63}$`)
	named    = pattern.Of(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)
)

// mask is x and a number, at least as long as the text. The empty one and an id of ours stay.
func (m *masks) mask(text string) string {
	if text == "" || ours().MatchString(text) {
		return text
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made[text] == "" {
		n := fmt.Sprint(len(m.made) + 1)
		begin := "x"
		if strings.HasPrefix(text, "/") {
			begin = "/x" // a path stays one
		}
		m.made[text] = begin + strings.Repeat("x", max(0, utf8.RuneCountInString(text)-len(begin)-len(n))) + n
	}
	return m.made[text]
}

// choice leaves what the host itself offers.
func (m *masks) choice(key string) string {
	switch key {
	case "approve", "refuse", "void", "yes", "no", "allow", "deny":
		return key
	}
	if number().MatchString(key) {
		return key
	}
	return m.mask(key)
}

// who masks the account of platform:account. One at the terminal is a uid, by which a daemon knows its owner: it stays.
func (m *masks) who(text string) string {
	platform, account, is := strings.Cut(text, ":")
	switch {
	case !is:
		return m.mask(text)
	case platform == "terminal":
		return text
	}
	return platform + ":" + m.mask(account)
}

// doc blanks JSON; the empty text is none.
func (m *masks) doc(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	read := json.NewDecoder(bytes.NewReader([]byte(text)))
	read.UseNumber()
	var v any
	if err := read.Decode(&v); err != nil {
		return "", fmt.Errorf("blank a stored text: %w", err)
	}
	raw, err := json.Marshal(m.value("", v))
	return string(raw), err
}

// keptUnder are the names in JSON under which stand ids, digests, states, and names that the host gives; what there has another form goes.
var keptUnder = map[string]bool{
	"kind": true, "state": true, "status": true, "trigger": true, "change": true, "landing": true, "person": true, "chat": true, "wish": true,
	"subject": true, "question": true, "reverts": true, "promotes": true, "approve": true, "group": true, "agent": true, "class": true,
	"scope": true, "strategy": true, "isolation": true,
	"handshake_state": true, "undoing": true, "oid": true, "head": true, "base": true, "tree": true, "new_tree": true, "new_commit": true,
	"checked": true, "commit": true, "parent": true,
	"digest": true, "policy": true, "target_digest": true, "boot": true, "mode": true, "op": true, "proposal": true,
}

// mapsUnder are the names in JSON under which stand objects whose own names somebody else chose.
var mapsUnder = map[string]bool{"bases": true, "env": true, "per_file_summaries": true}

// value blanks what stands under a name.
func (m *masks) value(under string, v any) any {
	switch v := v.(type) {
	case string:
		return m.inDoc(under, v)
	case []any:
		for i := range v {
			v[i] = m.value(under, v[i])
		}
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, field := range v {
			kept := name
			if mapsUnder[under] || !named().MatchString(name) {
				kept = m.mask(name)
			}
			inside := name
			if mapsUnder[under] {
				inside = ""
			}
			all[kept] = m.value(inside, field)
		}
		return all
	}
	return v
}

// inDoc blanks a text that stands under a name.
func (m *masks) inDoc(under, text string) string {
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil || ours().MatchString(text) {
		return text
	}
	switch {
	case keptUnder[under] && machine().MatchString(text):
		return text
	case under == "key":
		return m.choice(text)
	case (under == "id" || under == "session" || under == "identity") && aSession().MatchString(text):
		return text
	case under == "identity":
		return m.who(text)
	}
	return crossed(text)
}

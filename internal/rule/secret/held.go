package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Held are secrets that the host holds for a while, such as a model's key. A scanner that is made with them finds each while it is
// held, wherever it stands, whatever it looks like. One that is as short as a word is not looked for: it would be found everywhere.
// All methods may be called at once; a nil Held holds nothing.
type Held struct {
	mu    sync.Mutex
	count map[string]int
	now   atomic.Pointer[heldNow]
}

// heldNow is what is held at one moment.
type heldNow struct {
	plain  []string
	digest string // names them all, for a cache
}

// Hold adds a secret. What is added twice stays until it is dropped twice.
func (h *Held) Hold(v Value) { h.turn(v, 1) }

// Drop takes a secret away again.
func (h *Held) Drop(v Value) { h.turn(v, -1) }

func (h *Held) turn(v Value, by int) {
	plain := v.Reveal()
	if h == nil || len(plain) < knownMin {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == nil {
		h.count = map[string]int{}
	}
	if h.count[plain] += by; h.count[plain] <= 0 {
		delete(h.count, plain)
	}
	is := &heldNow{}
	for p := range h.count {
		is.plain = append(is.plain, spellings(p)...)
	}
	slices.Sort(is.plain)
	is.plain = slices.Compact(is.plain)
	if len(is.plain) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(is.plain, "\x00")))
		is.digest = " held " + hex.EncodeToString(sum[:])
	}
	h.now.Store(is)
}

// is returns what is held now.
func (h *Held) is() heldNow {
	if h == nil {
		return heldNow{}
	}
	if now := h.now.Load(); now != nil {
		return *now
	}
	return heldNow{}
}

// Format answers every verb and flag, as that of a Value does.
func (h *Held) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue shows nothing of what is held.
func (h *Held) LogValue() slog.Value { return slog.StringValue(shown) }

// MarshalJSON shows nothing of what is held.
func (h *Held) MarshalJSON() ([]byte, error) { return []byte(`"` + shown + `"`), nil }

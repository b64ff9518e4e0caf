package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/pattern"
)

// What is not known to be free of secrets is not shown.
const unscanned = "[secret: not scanned]"

const (
	redactHold = 16 << 10 // bytes held back: a secret up to this size is seen whole
	redactStep = 32 << 10 // bytes scanned at once beyond those
	redactPast = 512      // bytes already written that are looked at again: what makes a value a secret may stand before it
	redactTime = 30 * time.Second
)

// Redact returns text with each secret replaced by `[secret: <rule>]` (CW-028). It has no base: nothing is excused. What cannot be
// scanned is replaced as a whole.
func (s *Scanner) Redact(text string) string {
	var out strings.Builder
	r := s.Redactor(&out)
	if _, err := io.WriteString(r, text); err != nil {
		return unscanned
	}
	if err := r.Close(); err != nil {
		return unscanned
	}
	return out.String()
}

// RedactJSON is Redact for a JSON document. Escapes in strings hide nothing, and what comes out is JSON again.
func (s *Scanner) RedactJSON(doc []byte) []byte {
	var out bytes.Buffer
	rest := doc
	for {
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			break
		}
		end := i + 1
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			break // no JSON: seen below
		}
		out.Write(rest[:i])
		out.Write(s.redactString(rest[i : end+1]))
		rest = rest[end+1:]
	}
	out.Write(rest)
	// As a whole too: a name makes its value a secret.
	whole := []byte(s.Redact(out.String()))
	if !json.Valid(whole) {
		return []byte(`"` + unscanned + `"`)
	}
	return whole
}

// redactString takes and gives a JSON string with its quotes.
func (s *Scanner) redactString(quoted []byte) []byte {
	var plain string
	if err := json.Unmarshal(quoted, &plain); err != nil {
		return quoted
	}
	clean := s.Redact(plain)
	if clean == plain {
		return quoted
	}
	again, err := json.Marshal(clean)
	if err != nil {
		return []byte(`"` + unscanned + `"`)
	}
	return again
}

// Redactor writes what is written to it with each secret replaced, also one that comes in pieces. It holds back at most
// 16 KiB; Flush gives what can be told by now, Close all. Base64 that is wrapped over lines is put together only if no Flush comes
// between them. It is for one goroutine.
type Redactor struct {
	scanner *Scanner
	to      io.Writer
	buf     []byte
	past    int    // how much of buf is written already
	swallow string // bytes to drop from what comes next: a secret larger than what is held back goes on
	gone    string // what stands in the place of that
	lined   bool   // every line end stays, and each line of a secret is replaced by itself
	fresh   bool   // what was written last ends a line
	err     error
}

// Redactor returns one that writes to w. The caller closes it; w stays open.
func (s *Scanner) Redactor(w io.Writer) *Redactor { return &Redactor{scanner: s, to: w} }

var errClosed = errors.New("the redactor is closed")

// Write takes all of p or fails; an error of the writer below comes back from every later call.
func (r *Redactor) Write(p []byte) (int, error) {
	taken := 0
	for r.err == nil && taken < len(p) {
		n := min(redactStep, len(p)-taken)
		r.take(p[taken : taken+n])
		taken += n
		if len(r.buf)-r.past >= redactHold+redactStep {
			r.pass(len(r.buf)-redactHold, false)
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

func (r *Redactor) take(p []byte) {
	if r.swallow != "" {
		rest := bytes.TrimLeft(p, r.swallow)
		r.lose(string(p[:len(p)-len(rest)]))
		if len(rest) == 0 {
			return
		}
		p, r.swallow = rest, ""
	}
	r.buf = append(r.buf, p...)
}

// lose writes what stands in the place of what is dropped, where lines stay.
func (r *Redactor) lose(taken string) {
	if !r.lined || r.err != nil || taken == "" {
		return
	}
	told := onLines(taken, r.gone)
	if r.fresh && taken[0] != '\n' {
		told = r.gone + told
	}
	r.fresh = strings.HasSuffix(taken, "\n")
	_, r.err = io.WriteString(r.to, told)
}

// onLines is what stands in the place of what goes on from a line that was told already.
func onLines(taken, label string) string {
	var out strings.Builder
	for i, line := range strings.Split(taken, "\n") {
		if i == 0 {
			continue
		}
		out.WriteByte('\n')
		if line != "" {
			out.WriteString(label)
		}
	}
	return out.String()
}

// instead is what stands in the place of a part of a text.
func (r *Redactor) instead(taken, label string) string {
	if !r.lined {
		return label
	}
	return label + onLines(taken, label)
}

// Flush writes all but an unfinished word, key or other secret at the end, also one that the host knows and that has several words.
func (r *Redactor) Flush() error {
	if r.err != nil {
		return r.err
	}
	end := len(r.buf)
	for end > r.past && end > len(r.buf)-redactHold && strings.IndexByte(" \t\r\n", r.buf[end-1]) < 0 {
		end--
	}
	// Half a header of a key is not yet one.
	if i := bytes.LastIndex(r.buf, []byte("-----BEGIN")); i >= 0 && len(r.buf)-i < 64 && bytes.Count(r.buf[i:], []byte("-----")) == 1 {
		end = min(end, max(i, r.past))
	}
	rest := string(r.buf[r.past:])
	for _, known := range r.scanner.knownNow() {
		end = min(end, len(r.buf)-begun(rest, known))
	}
	if end > r.past {
		r.pass(end, false)
	}
	return r.err
}

// Close writes the rest. No more can be written.
func (r *Redactor) Close() error {
	if errors.Is(r.err, errClosed) {
		return nil
	}
	if r.err == nil && len(r.buf) > r.past {
		r.pass(len(r.buf), true)
	}
	err := r.err
	if err == nil {
		r.err = errClosed
	}
	return err
}

// pass writes buf up to end, or a little more or less where a secret stands there.
func (r *Redactor) pass(end int, last bool) {
	text := string(r.buf)
	ctx, cancel := context.WithTimeout(context.Background(), redactTime)
	defer cancel()
	hits, err := r.scanner.inspect(ctx, "", text)
	var out strings.Builder
	at := r.past
	if err != nil {
		out.WriteString(r.instead(text[at:end], unscanned))
		at = end
	}
	for _, m := range marks(text, hits) {
		if err != nil || m.from >= end {
			break
		}
		if !last && unfinished(text, m) {
			if len(text)-m.from < redactHold {
				end = max(m.from, at)
				break
			}
			r.swallow, r.gone = swallowed(m.rule), label(m.rule)
			if r.lined { // a line of a key has no space: what has one is a line of something else
				r.swallow = strings.ReplaceAll(r.swallow, " ", "")
			}
			m.to = len(text)
		}
		if m.to <= at {
			continue
		}
		out.WriteString(text[at:max(at, m.from)])
		out.WriteString(r.instead(text[max(at, m.from):m.to], label(m.rule)))
		at = m.to
	}
	if at < end {
		out.WriteString(text[at:end])
		at = end
	}
	if _, err := io.WriteString(r.to, out.String()); err != nil {
		r.err = err
		return
	}
	r.fresh = strings.HasSuffix(text[:at], "\n")
	keep := max(at-redactPast, 0)
	r.buf = append(r.buf[:0], r.buf[keep:]...)
	r.past = at - keep
}

// begun is how much of a secret a text ends with, if that is not all of it.
func begun(text, secret string) int {
	for n := min(len(text), len(secret)-1); n > 0; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}

// unfinished says whether what comes next may belong to a secret. A key is finished by its last line, or by so much that is no key.
func unfinished(text string, m mark) bool {
	const noKey = 128
	if m.to == len(text) {
		return true
	}
	return m.rule == "private-key" && len(text)-m.to < noKey && !strings.Contains(text[m.from:m.to], "-----END")
}

// swallowed are the bytes that a secret of this kind goes on with.
func swallowed(rule string) string {
	const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_.-"
	if strings.Contains(rule, "private-key") {
		return token + "\r\n\t \\\"',"
	}
	return token
}

// label is what is shown in the place of a secret.
func label(rule string) string { return "[secret: " + rule + "]" }

// mark is a part of a text that must not be shown.
type mark struct {
	from, to int
	rule     string
}

// marks returns every place of every secret, in order, none touching another.
func marks(text string, hits []hit) []mark {
	const everywhereMin = 8 // shorter ones are common words by chance
	var all []mark
	seen := map[string]bool{}
	for _, h := range keyed(hits) {
		if h.secret == "" || seen[h.secret] {
			continue
		}
		from := min(h.at, len(text))
		if len(h.secret) >= everywhereMin {
			seen[h.secret] = true
			from = 0
		}
		for {
			i := strings.Index(text[from:], h.secret)
			if i < 0 {
				break
			}
			from += i + len(h.secret)
			all = append(all, mark{from - len(h.secret), from, h.rule})
			if len(h.secret) < everywhereMin {
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b mark) int { return a.from - b.from })
	var out []mark
	for _, m := range all {
		if n := len(out); n > 0 && m.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, m.to)
			continue
		}
		out = append(out, m)
	}
	return out
}

// A key as the library finds it reaches from a header to the next words that end as one, whatever stands between.
var (
	keyStart = pattern.Of(`^-----[^\n]*?-----`)
	keyStuff = pattern.Of(`[A-Za-z0-9+/=]{20,}`)
)

// keyed returns hits with a key that the library has found in its parts: the header, and what can be of a key. What else stands there is
// shown, or whoever writes a header could hide what follows.
func keyed(hits []hit) []hit {
	var all []hit
	for _, h := range hits {
		if h.own || h.rule != "private-key" {
			all = append(all, h)
			continue
		}
		for _, at := range append(keyStart().FindAllStringIndex(h.secret, 1), keyStuff().FindAllStringIndex(h.secret, -1)...) {
			all = append(all, hit{rule: h.rule, at: h.at + at[0], secret: h.secret[at[0]:at[1]]})
		}
	}
	return all
}

// blot replaces every secret in a text.
func blot(text string, hits []hit) string {
	var out strings.Builder
	at := 0
	for _, m := range marks(text, hits) {
		out.WriteString(text[at:m.from])
		out.WriteString(label(m.rule))
		at = m.to
	}
	return out.String() + text[at:]
}

package egress

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
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

// spelling is a row of letters that tells a key, in small letters. In a text each may be escaped in a way of its own.
type spelling []byte

// spellings are the ways in which an endpoint may write a key: as it is, backwards, in hexadecimal digits, in base64.
type spellings []spelling

func spell(key []byte) (s spellings) {
	if key == nil {
		return nil
	}
	backwards := slices.Clone(key)
	slices.Reverse(backwards)
	for _, one := range append([]string{string(key), string(backwards), hex.EncodeToString(key)}, inBase64(key)...) {
		if folded := fold([]byte(one)); !slices.ContainsFunc(s, func(o spelling) bool { return slices.Equal(o, folded) }) {
			s = append(s, folded)
		}
	}
	return s
}

// inBase64 is what a key always is within a text that was encoded whole, wherever in it the key stands.
func inBase64(key []byte) (all []string) {
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), key...))
			own := (before*8 + 5) / 6            // letters that hold something of what stands before it
			whole := (before + len(key)) * 8 / 6 // letters that hold nothing of what stands behind it
			all = append(all, text[own:whole])
		}
	}
	return all
}

// fold makes small letters of ASCII, and nothing longer or shorter.
func fold(p []byte) []byte {
	out := slices.Clone(p)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// beginnings are the bytes that a key may begin with.
func (s spellings) beginnings() (is [256]bool) {
	for _, one := range s {
		is[one[0]] = true
	}
	for c := range is {
		is[c] = is[c] || escapes(byte(c))
	}
	return is
}

// escapes reports whether an escape begins with a byte.
func escapes(c byte) bool { return c == '%' || c == '\\' || c == '&' }

// zerosMax is how many zero bytes may stand behind a letter: UTF-32 has three.
const zerosMax = 3

// match says how long the spelling is at the beginning of a text, 0 = it is not there. more says that the text ends before that is known.
func (s spelling) match(text []byte) (n int, more bool) {
	for _, c := range s { // which is never 0
		for zeros := 0; zeros < zerosMax && n < len(text) && text[n] == 0; zeros++ {
			n++
		}
		if n == len(text) {
			return 0, true
		}
		if !escapes(text[n]) {
			if text[n] != c {
				return 0, false
			}
			n++
			continue
		}
		value, length, unsure := unescape(text[n:])
		switch {
		case unsure:
			return 0, true
		case value == c:
			n += length
		case text[n] == c:
			n++
		default:
			return 0, false
		}
	}
	return n, false
}

// escapeBytesMax bounds how an escape may be written: &#x00000041;
const escapeBytesMax = 12

// unescape reads an escape for a URL, a string, JSON or a page, and how long it is; 0 = it is none. more says that the text ends before
// that is known.
func unescape(p []byte) (value byte, length int, more bool) {
	head, digits, base := "", 0, 16
	for _, form := range []struct {
		head         string
		digits, base int // digits 0: up to a semicolon
	}{{`\u`, 4, 16}, {`\x`, 2, 16}, {"%u", 4, 16}, {"%", 2, 16}, {"&#x", 0, 16}, {"&#", 0, 10}} {
		if strings.HasPrefix(form.head, string(p[:min(len(p), len(form.head))])) {
			head, digits, base = form.head, form.digits, form.base
			break
		}
	}
	switch {
	case head == "" && p[0] == '\\': // of a backslash alone the form is not known yet
		return p[1], 2, false
	case head == "":
		return 0, 0, false
	case len(p) < len(head):
		return 0, 0, true
	}
	number := p[len(head):min(len(p), escapeBytesMax)]
	end := digits
	if digits == 0 {
		if end = strings.IndexByte(string(number), ';'); end < 0 {
			return 0, 0, len(p) < escapeBytesMax
		}
		length = 1
	} else if len(number) < digits {
		return 0, 0, true
	}
	v, err := strconv.ParseUint(string(number[:end]), base, 32)
	if err != nil || v > 0x7f {
		return 0, 0, false
	}
	return fold([]byte{byte(v)})[0], length + len(head) + end, false
}

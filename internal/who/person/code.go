package person

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"
)

// LinkCode is what somebody sends from an account to show that it is theirs.
type LinkCode string

const (
	// CodeFor is how long a code is good.
	CodeFor = 10 * time.Minute

	codeLength = 8
	codeLetter = "23456789ABCDEFGHJKMNPQRSTUVWXYZ" // none that looks like another

	codesMax = 4096 // that are looked for in what somebody says
	codeGap  = 3    // characters between the halves of one, at most
)

// NewCode returns a code that nobody can guess in its time: 31^8 are possible.
func NewCode() LinkCode {
	var b strings.Builder
	raw := make([]byte, 1)
	for b.Len() < codeLength {
		if _, err := rand.Read(raw); err != nil {
			panic("no randomness from the system: " + err.Error()) // crypto/rand never returns one on Linux
		}
		if int(raw[0]) < 256/len(codeLetter)*len(codeLetter) {
			b.WriteByte(codeLetter[int(raw[0])%len(codeLetter)])
		}
	}
	return LinkCode(b.String())
}

// ReadCode reads a whole message as a code, in any case and with a dash or a space in its middle; false if it is none.
func ReadCode(text string) (LinkCode, bool) {
	text = strings.ToUpper(strings.TrimSpace(text))
	if len(text) == codeLength+1 && (text[codeLength/2] == '-' || text[codeLength/2] == ' ') {
		text = text[:codeLength/2] + text[codeLength/2+1:]
	}
	if len(text) != codeLength || strings.Trim(text, codeLetter) != "" {
		return "", false
	}
	return LinkCode(text), true
}

// CodesIn returns what may be a code in texts that say more than that, also within longer words: each once, and at most codesMax of them.
// Ordinary words are among them.
func CodesIn(texts ...string) (all []LinkCode) {
	seen := map[LinkCode]bool{}
	add := func(text string) {
		if code, is := ReadCode(text); is && !seen[code] && len(all) < codesMax {
			seen[code], all = true, append(all, code)
		}
	}
	const half = codeLength / 2
	for _, text := range texts {
		before, end := "", 0 // the word before, and where it ends
		for at := 0; at < len(text) && len(all) < codesMax; at++ {
			word := wordAt(text, at)
			if word == "" {
				continue
			}
			if len(before) >= half && len(word) >= half && utf8.RuneCountInString(text[end:at]) <= codeGap {
				add(before[len(before)-half:] + word[:half])
			}
			for from := 0; from+codeLength <= len(word) && len(all) < codesMax; from++ {
				add(word[from : from+codeLength])
			}
			at += len(word)
			before, end = word, at
		}
	}
	return all
}

// wordAt returns the run of letters and digits that begins at a place, whatever stands beside it; "" if none does. It is a loop and no
// expression, because everything that anybody says is looked through.
func wordAt(text string, at int) string {
	end := at
	for end < len(text) && ('0' <= text[end] && text[end] <= '9' || 'A' <= text[end]&^0x20 && text[end]&^0x20 <= 'Z') {
		end++
	}
	return text[at:end]
}

// String is the code as a person reads it.
func (c LinkCode) String() string { return string(c[:codeLength/2]) + "-" + string(c[codeLength/2:]) }

// Hash is all that is stored of it.
func (c LinkCode) Hash() string {
	sum := sha256.Sum256([]byte("link code " + string(c)))
	return hex.EncodeToString(sum[:])
}

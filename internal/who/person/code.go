package person

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// LinkCode is what somebody sends from an account to show that it is theirs.
type LinkCode string

const (
	// CodeFor is how long a code is good.
	CodeFor = 10 * time.Minute

	codeLength = 8
	codeLetter = "23456789ABCDEFGHJKMNPQRSTUVWXYZ" // none that looks like another
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

// String is the code as a person reads it.
func (c LinkCode) String() string { return string(c[:codeLength/2]) + "-" + string(c[codeLength/2:]) }

// Hash is all that is stored of it.
func (c LinkCode) Hash() string {
	sum := sha256.Sum256([]byte("link code " + string(c)))
	return hex.EncodeToString(sum[:])
}

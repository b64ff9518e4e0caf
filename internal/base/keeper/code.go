package keeper

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
)

// A code is twelve letters of these, shown in fours: 60 bits. None looks like another.
const (
	codeLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	codeLength  = 12
	codeRounds  = 100_000
)

// Code is what a keeper knows of a code: a hash that tells whether a word is the code, and not what the code is.
type Code struct {
	Salt   []byte `json:"salt"`
	Rounds int    `json:"rounds"` // of PBKDF2 with SHA-256
	Sum    []byte `json:"sum"`
}

// NewCode makes a code. The plain one is shown once, to the person who confirms with it (SM-923); hash is what is kept.
func NewCode() (plain string, hash Code, err error) {
	hash = Code{Salt: make([]byte, 16), Rounds: codeRounds}
	letters := make([]byte, codeLength)
	for _, random := range [][]byte{hash.Salt, letters} {
		if _, err := rand.Read(random); err != nil {
			return "", Code{}, fmt.Errorf("make a code: %w", err)
		}
	}
	for i, b := range letters {
		letters[i] = codeLetters[int(b)%len(codeLetters)] // 32 divides 256: each letter is as likely
	}
	if hash.Sum, err = hash.of(string(letters)); err != nil {
		return "", Code{}, fmt.Errorf("make a code: %w", err)
	}
	return fmt.Sprintf("%s-%s-%s", letters[:4], letters[4:8], letters[8:]), hash, nil
}

// IsCode reports whether a word has the form of a code. Spaces, dashes and case do not matter.
func IsCode(word string) bool {
	word = bare(word)
	return len(word) == codeLength && strings.Trim(word, codeLetters) == ""
}

// Matches reports whether a word is the code. Spaces, dashes and case do not matter.
func (c Code) Matches(plain string) bool {
	if c.check() != nil || !IsCode(plain) {
		return false
	}
	sum, err := c.of(bare(plain))
	return err == nil && subtle.ConstantTimeCompare(sum, c.Sum) == 1
}

// check refuses a hash that no code was made with: nothing may match it by accident.
func (c Code) check() error {
	if len(c.Salt) < 16 || c.Rounds < codeRounds || c.Rounds > 100*codeRounds || len(c.Sum) != sha256.Size {
		return fmt.Errorf("the hash of the code is none that this keeper knows")
	}
	return nil
}

func (c Code) of(letters string) ([]byte, error) {
	return pbkdf2.Key(sha256.New, letters, c.Salt, c.Rounds, sha256.Size)
}

func bare(word string) string {
	if len(word) > 64 { // more than anybody types
		return ""
	}
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(word))
}

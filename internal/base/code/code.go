// Package code makes the code that confirms a change of the host, and tells whether a word is it.
package code

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
	alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	length   = 12
	rounds   = 100_000
)

// Hash is what a keeper knows of a code: it tells whether a word is the code, and not what the code is.
type Hash struct {
	Salt   []byte `json:"salt"`
	Rounds int    `json:"rounds"` // of PBKDF2 with SHA-256
	Sum    []byte `json:"sum"`
}

// New makes a code. The plain one is shown once, to the person who confirms with it (SM-923); hash is what is kept.
func New() (plain string, hash Hash, err error) {
	hash = Hash{Salt: make([]byte, 16), Rounds: rounds}
	letters := make([]byte, length)
	for _, random := range [][]byte{hash.Salt, letters} {
		if _, err := rand.Read(random); err != nil {
			return "", Hash{}, fmt.Errorf("make a code: %w", err)
		}
	}
	for i, b := range letters {
		letters[i] = alphabet[int(b)%len(alphabet)] // 32 divides 256: each letter is as likely
	}
	if hash.Sum, err = hash.of(string(letters)); err != nil {
		return "", Hash{}, fmt.Errorf("make a code: %w", err)
	}
	return fmt.Sprintf("%s-%s-%s", letters[:4], letters[4:8], letters[8:]), hash, nil
}

// Is reports whether a word has the form of a code. Spaces, dashes and case do not matter.
func Is(word string) bool {
	word = bare(word)
	return len(word) == length && strings.Trim(word, alphabet) == ""
}

// Matches reports whether a word is the code. Spaces, dashes and case do not matter.
func (h Hash) Matches(plain string) bool {
	if h.Check() != nil || !Is(plain) {
		return false
	}
	sum, err := h.of(bare(plain))
	return err == nil && subtle.ConstantTimeCompare(sum, h.Sum) == 1
}

// Check refuses a hash that no code was made with: nothing may match it by accident.
func (h Hash) Check() error {
	if len(h.Salt) < 16 || h.Rounds < rounds || h.Rounds > 100*rounds || len(h.Sum) != sha256.Size {
		return fmt.Errorf("the hash of the code is none that this keeper knows")
	}
	return nil
}

func (h Hash) of(letters string) ([]byte, error) {
	return pbkdf2.Key(sha256.New, letters, h.Salt, h.Rounds, sha256.Size)
}

func bare(word string) string {
	if len(word) > 64 { // more than anybody types
		return ""
	}
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(word))
}

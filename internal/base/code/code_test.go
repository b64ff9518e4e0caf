package code

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestOnlyTheCodeMatches(t *testing.T) {
	plain, hash, err := New()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := New()
	if err != nil || other == plain || !Is(plain) {
		t.Fatalf("%q after %q, %v", other, plain, err)
	}
	bare := strings.ReplaceAll(plain, "-", "")
	last := "A"
	if strings.HasSuffix(bare, last) {
		last = "B"
	}
	for word, want := range map[string]bool{
		plain: true, bare: true, strings.ToLower(plain): true, " " + strings.ReplaceAll(plain, "-", " ") + " ": true,
		other: false, "": false, "confirm": false, bare[:11]: false, bare + last: false, bare[:11] + last: false, plain + strings.Repeat(" ", 64-len(plain)): true, plain + strings.Repeat(" ", 65-len(plain)): false,
	} {
		if got := hash.Matches(word); got != want {
			t.Errorf("%q matches %t", word, got)
		}
	}
	for word, want := range map[string]bool{other: true, "ABCD-EFGH-JKLM": true, "abcd efgh jklm": true, "ABCD-EFGH-JKLI": false, "ABCD-EFGH-JKL": false, "ABCD-EFGH-JKLMN": false, "ÄBCD-EFGH-JKL": false} {
		if Is(word) != want {
			t.Errorf("%q has the form %t", word, !want)
		}
	}
	raw, err := json.Marshal(hash)
	if err != nil || strings.Contains(string(raw), bare) {
		t.Errorf("%s, %v", raw, err)
	}
	cheap := Hash{Salt: hash.Salt, Rounds: 1}
	if cheap.Sum, err = cheap.of(bare); err != nil || cheap.Matches(plain) || (Hash{}).Matches("") {
		t.Errorf("the hash of no code matches, %v", err)
	}
}

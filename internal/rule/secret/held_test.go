package secret_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/rule/secret"
)

func TestASecretIsFoundForAsLongAsItIsHeld(t *testing.T) {
	const key, other = "plain words of a key 1", "another one that is held"
	var held secret.Held
	cache := secret.NewMemory(10)
	s, err := secret.New(secret.Config{Held: &held, Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	text := "it says " + key + " and goes on"
	found := func() bool {
		b := blob("a.txt", text)
		b.ID = "0123456789abcdef0123456789abcdef01234567"
		fs, err := s.ScanBlob(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return len(fs) > 0
	}
	look := func(when string, want bool) {
		t.Helper()
		if got := found(); got != want { // the second time from the cache
			t.Errorf("%s: found %v", when, got)
		}
		if shown := s.Redact(text); strings.Contains(shown, key) == want {
			t.Errorf("%s: %q", when, shown)
		}
	}
	look("before", false)
	held.Hold(secret.Hold(key))
	look("held", true)
	held.Hold(secret.Hold(key))
	held.Hold(secret.Hold(other))
	held.Drop(secret.Hold(key))
	look("held by one of two", true)
	held.Drop(secret.Hold(key))
	look("dropped", false)
	held.Drop(secret.Hold(key))
	held.Hold(secret.Hold(key))
	look("held again", true)
	held.Hold(secret.Hold("goes"))
	if shown := s.Redact(text); !strings.Contains(shown, "goes") {
		t.Errorf("a word is taken out everywhere: %q", shown)
	}
	raw, err := json.Marshal(&held)
	if told := fmt.Sprintf("%v %+v %#v %s", &held, &held, &held, raw); err != nil || strings.Contains(told, key) {
		t.Errorf("what is held is printed: %s, %v", told, err)
	}
	var none *secret.Held
	none.Hold(secret.Hold(key))
	plain, err := secret.New(secret.Config{Held: none})
	if err != nil || plain.Redact(text) != text {
		t.Errorf("without anything held: %v", err)
	}
}

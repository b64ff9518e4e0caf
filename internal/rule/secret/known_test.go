package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/base/inert"
)

func TestWhatTheHostKnowsIsFoundWhateverItLooksLike(t *testing.T) {
	plain := "mellow-" + "otter-4711"
	s, err := New(Config{Known: Environment([]string{
		"BILLING_TOKEN=" + plain, "DB_PASS" + "WORD=short1", "SECRET_KEY=development", "GCP_KEY=/etc/keys/file-1.json", "HOME_PAGE=elsewhere-4711", "not an assignment",
	})})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.known) != 1 {
		t.Errorf("%d values are held", len(s.known))
	}
	for _, text := range []string{plain, "a\nb " + plain + " c", base64.StdEncoding.EncodeToString([]byte("it is " + plain + ", they say"))} {
		fs, err := s.Scan(t.Context(), "a.txt", strings.NewReader(text), -1)
		if err != nil || len(fs) != 1 || fs[0].Rule != "known-secret" || fs[0].Severity != Critical {
			t.Errorf("%v, %v", fs, err)
		}
		if got := s.Redact(text); strings.Contains(got, plain) || !strings.Contains(got, "[secret: known-secret]") {
			t.Errorf("%q", got)
		}
	}
	for _, text := range []string{"short1", "development", "/etc/keys/file-1.json", "elsewhere-4711"} {
		if got := s.Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if other, _ := New(Config{}); other.Digest() != s.Digest() || other.cached == s.cached {
		t.Error("a known secret is told by the digest, or not by the cache's key")
	}
}

func TestWhatTheHostKnowsIsFoundAsLogsAndProgramsSpellIt(t *testing.T) {
	plain := "Otter&4711" + "\"mellow\\\t<tail>"
	held := &Held{}
	s, err := New(Config{Held: held})
	if err != nil {
		t.Fatal(err)
	}
	held.Hold(Hold(plain))
	known, err := New(Config{Known: []Value{Hold(plain)}})
	if err != nil {
		t.Fatal(err)
	}
	var plainly strings.Builder
	e := json.NewEncoder(&plainly)
	e.SetEscapeHTML(false)
	if err := e.Encode(plain); err != nil {
		t.Fatal(err)
	}
	escaped, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{plain, fmt.Sprintf("%q", plain), inert.Line(plain), plainly.String(), string(escaped)} {
		for name, s := range map[string]*Scanner{"held": s, "known": known} {
			if got := s.Redact("it is " + text + ", they say"); strings.Contains(got, "4711") || strings.Contains(got, "tail") {
				t.Errorf("%s: %q becomes %q", name, text, got)
			}
		}
	}
}

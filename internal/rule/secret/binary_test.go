package secret

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestABinaryIsReadWhereItCanBeRead(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, short: ü":           "plain text, short: ü",
		"a\x00bc\x00long enough\xff\xfe": "     long enough  ",
		"\x00x\ny\x00secret\n\x01":       "  \n  secret\n ",
		"\x00":                           " ",
	} {
		if got := readable(in); got != want {
			t.Errorf("%q is read as %q, want %q", in, got, want)
		}
	}
}

// The key stands between random bytes, as in an image or a program, at any place.
func TestASecretInABinaryIsFoundWithItsLine(t *testing.T) {
	key := "ghp_" + strings.Repeat("a1B2c3", 6)
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		noise := make([]byte, 2000+random.IntN(2000))
		for i := range noise {
			noise[i] = byte(random.UintN(256))
		}
		at := random.IntN(len(noise))
		data := bytes.Join([][]byte{noise[:at], {0}, []byte(key), {0}, noise[at:]}, nil)
		found, err := s.Scan(t.Context(), "image.png", bytes.NewReader(data), int64(len(data)))
		if err != nil || len(found) == 0 || found[0].Line != bytes.Count(data[:at], []byte("\n"))+1 {
			t.Fatalf("at %d of %d: %+v, %v", at, len(noise), found, err)
		}
	}
}

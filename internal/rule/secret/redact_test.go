package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/rapidtest"
)

// keyBlock is a whole private key, as a file has it.
func keyBlock(rnd *rand.Rand, lines int) string {
	body := wrap(random(rnd, std64, 64*lines)+random(rnd, std64, 20)+"==", 64, "\n")
	return "-----" + "BEGIN RSA PRIVATE KEY" + "-----\n" + body + "\n-----" + "END RSA PRIVATE KEY-----"
}

func TestWhatGoesOutHoldsNoSecret(t *testing.T) {
	s, _ := scanners()
	rnd := rand.New(rand.NewPCG(6, 6))
	for rule, forms := range known(rnd) {
		for _, secret := range forms {
			if rule == "private-key" {
				continue
			}
			got := s.Redact("before " + secret + " after\nand " + secret + "\n")
			if want := "before [secret: " + rule + "] after\nand [secret: " + rule + "]\n"; got != want &&
				!(rule == "database-password" && !strings.Contains(got, secret) && strings.HasPrefix(got, "before [secret: ")) {
				t.Errorf("%s: %q", rule, got)
			}
		}
	}
	block := keyBlock(rnd, 20)
	b64 := base64.StdEncoding.EncodeToString([]byte("token " + known(rnd)["github-token"][0]))
	for name, c := range map[string]struct{ text, want string }{
		"a key":                 {"a\n" + block + "\nb", "a\n[secret: private-key]\nb"},
		"a key without its end": {"a\n" + block[:900] + "\n\nthe end, really", "a\n[secret: private-key]\n\nthe end, really"},
		"a key in program text": {`k = "` + strings.ReplaceAll(block, "\n", `\n`) + `";`, `k = "[secret: private-key]";`},
		"a header alone":        {"see " + block[:31] + " in the docs", "see [secret: private-key] in the docs"},
		"behind base64":         {"v: " + b64 + " x", "v: [secret: github-token] x"},
		"a general secret":      {`api_key = "` + "x8Kq2mZ0pL5vR7tN" + `" # ours`, `api_key = "[secret: secret-assignment]" # ours`},
		"nothing":               {"just text, no more\n", "just text, no more\n"},
		"":                      {"", ""},
	} {
		if got := s.Redact(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// However a text is cut into writes, and wherever it is flushed, what comes out is free of each secret and else complete.
func TestASecretThatComesInPiecesIsCaught(t *testing.T) {
	s, _ := scanners()
	rapidtest.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		secrets := known(rnd)
		rule := rapid.SampledFrom(slices.Sorted(maps.Keys(secrets))).Draw(rt, "rule")
		secret := secrets[rule][0]
		if rule == "private-key" {
			secret = keyBlock(rnd, rapid.IntRange(1, 60).Draw(rt, "lines"))
		}
		if i := strings.IndexByte(secret, '@'); rule == "database-password" {
			secret = secret[:i+1] // the host may be shown
		}
		before := strings.Repeat("a plain line of a log\n", rapid.IntRange(0, 3000).Draw(rt, "before"))
		after := strings.Repeat("\nand more of it", rapid.IntRange(0, 3000).Draw(rt, "after"))
		text := before + secret + after
		var out bytes.Buffer
		r := s.Redactor(&out)
		for at := 0; at < len(text); {
			n := 1 + rnd.IntN(40_000)
			if at+n > len(before) && at < len(before)+len(secret) {
				n = 1 + rnd.IntN(max(len(secret)/3, 1))
			}
			n = min(n, len(text)-at)
			if _, err := r.Write([]byte(text[at : at+n])); err != nil {
				rt.Fatal(err)
			}
			if rnd.IntN(4) == 0 {
				if err := r.Flush(); err != nil {
					rt.Fatal(err)
				}
			}
			if held := len(r.buf); held > redactHold+2*redactStep+redactPast {
				rt.Fatalf("%d bytes held", held)
			}
			at += n
		}
		if err := r.Close(); err != nil {
			rt.Fatal(err)
		}
		if want := before + "[secret: " + rule + "]" + after; out.String() != want {
			got := out.String()
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			rt.Fatalf("%s: differs at %d of %d (%d)", rule, i, len(want), len(got))
		}
	})
}

func TestASecretLargerThanWhatIsHeldDoesNotComeThrough(t *testing.T) {
	s, _ := scanners()
	rnd := rand.New(rand.NewPCG(8, 8))
	for name, secret := range map[string]string{
		"token": "s" + "k-" + random(rnd, alnum, 200_000), "key": keyBlock(rnd, 3000),
		"base64": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("some text ", 100) + known(rnd)["aws-access-key"][0] + strings.Repeat(" more", 9000))),
	} {
		got := s.Redact("before\n" + secret + "\n(after)\n")
		for i := 0; i+40 < len(secret); i += 1000 {
			if strings.Contains(got, secret[i:i+40]) && name != "base64" {
				t.Errorf("%s: a part of it came through", name)
				break
			}
		}
		if !strings.HasPrefix(got, "before\n[secret: ") || !strings.Contains(got, "(after)\n") {
			t.Errorf("%s: %d bytes: %.60q", name, len(got), got)
		}
	}
}

func TestFlushGivesWhatCanBeTold(t *testing.T) {
	s, _ := scanners()
	var out strings.Builder
	r := s.Redactor(&out)
	write := func(text, want string) {
		t.Helper()
		if _, err := r.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("after %q: %q, want %q", text, out.String(), want)
		}
	}
	write("hello there\n", "hello there\n")
	write("key AK", "hello there\nkey ")
	write("IAQ3EGRZ5YXNWWVT2B ok\n", "hello there\nkey [secret: aws-access-key] ok\n")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte("x")); err == nil {
		t.Error("a closed redactor took more")
	}
}

// TestAKnownSecretOfSeveralWordsIsCaughtAlsoWordByWord: a pause between its words shows none of them.
func TestAKnownSecretOfSeveralWordsIsCaughtAlsoWordByWord(t *testing.T) {
	const held = "seven blue\nhorses and 12 oxen"
	s, err := New(Config{Known: []Value{Hold(held)}})
	if err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		"a " + held + " z\n":                              "a [secret: known-secret] z\n",
		"seven seven " + held + "\n":                      "seven seven [secret: known-secret]\n",
		"seven blue\nhorses and 12 mules\n":               "seven blue\nhorses and 12 mules\n",
		held + held + "\nseven blue\n":                    "[secret: known-secret][secret: known-secret]\nseven blue\n",
		`{"key":"seven blue\nhorses and 12 oxen"}` + "\n": `{"key":"[secret: known-secret]"}` + "\n",
	} {
		var out strings.Builder
		r := s.Redactor(&out)
		for _, b := range []byte(said) {
			if _, err := r.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("of %q %q is shown, want %q", said, out.String(), want)
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	s, _ := scanners()
	rnd := rand.New(rand.NewPCG(6, 1))
	token, block := known(rnd)["github-token"][0], keyBlock(rnd, 5)
	doc, err := json.Marshal(map[string]any{"n": 12345678901234567, "token": token, "k": []any{block, "a \"quoted\" \\ word", nil, true}, token: 1,
		"url": "postgres" + "://u:p&<>w@h"})
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.Replace(string(doc), "p_", `p\u005f`, 1)
	got := s.RedactJSON([]byte(escaped))
	var back map[string]any
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if bytes.Contains(got, []byte(token[4:])) || bytes.Contains(got, []byte(block[40:80])) || bytes.Contains(got, []byte(`w@h`)) ||
		!bytes.Contains(got, []byte(`"a \"quoted\" \\ word"`)) || !bytes.Contains(got, []byte("12345678901234567")) {
		t.Errorf("%s", got)
	}
	if got := string(s.RedactJSON([]byte(`{"a":1,"b":"c"}`))); got != `{"a":1,"b":"c"}` {
		t.Error(got)
	}
	if got := string(s.RedactJSON([]byte(`no json "` + token))); !json.Valid([]byte(got)) || strings.Contains(got, token) {
		t.Error(got)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestARedactorSaysWhenNothingCanBeWritten(t *testing.T) {
	s, _ := scanners()
	r := s.Redactor(failing{})
	_, _ = r.Write([]byte("some words "))
	if r.Flush() == nil || r.Close() == nil {
		t.Error("the error was lost")
	}
	if _, err := r.Write([]byte("more")); err == nil {
		t.Error("the error was lost")
	}
}

func FuzzDecoding(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 1))
	token := known(rnd)["github-token"][0]
	f.Add(base64.StdEncoding.EncodeToString([]byte(token)))
	f.Add(wrap(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(token, 5))), 64, "\n"))
	f.Add(wide(token, true, true))
	f.Add(strings.Repeat("\\n\"+ \n", 9) + strings.Repeat("aA/-", 30))
	s, _ := scanners()
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := decode(text, []stretch{{0, len(text)}}, decodedMax*len(text)+1<<20)
		if !ok {
			t.Fatal("more was decoded than a text this short can hold")
		}
		for _, d := range []decoded{d, widened(text)} {
			for at := range d.text {
				if o := d.of(at); o.from < 0 || o.from > o.to || o.to > len(text) {
					t.Fatalf("origin %+v of %d bytes", o, len(text))
				}
			}
			for _, p := range d.plain {
				if p.from > p.to || p.to > len(d.text) {
					t.Fatalf("part %+v of %d bytes", p, len(d.text))
				}
			}
		}
		if got := s.Redact(text + "\n" + token + "\n"); strings.Contains(got, token) {
			t.Fatal("a secret came through")
		}
	})
}

func FuzzArchives(f *testing.F) {
	f.Add("a.zip", []byte("PK\x03\x04"))
	f.Add("a.gz", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00"))
	f.Add("a.tar", append(make([]byte, 257), "ustar\x00"...))
	f.Add("a.bz2", []byte("BZh91AY&SY\x00"))
	s, err := New(Config{Unpack: Unpack{BytesMax: 1 << 20, FilesMax: 50}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		_, err := s.Scan(t.Context(), name, bytes.NewReader(content), int64(len(content)))
		if err != nil && !errors.Is(err, ErrNotScanned) {
			t.Fatal(err)
		}
	})
}

func TestAKeyThatComesLineByLineIsCaught(t *testing.T) {
	s, _ := scanners()
	rnd := rand.New(rand.NewPCG(6, 2))
	var out strings.Builder
	r := s.Redactor(&out)
	block := keyBlock(rnd, 50)
	for line := range strings.Lines("before\n" + block + "\nafter\n") {
		for _, half := range []string{line[:len(line)/2], line[len(line)/2:]} {
			if _, err := r.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if out.String() != "before\n[secret: private-key]\nafter\n" {
		t.Errorf("%d bytes: %.80q", out.Len(), out.String())
	}
}

// TestAKeyThatBeginsInAnothersHeadersIsAPartOfIt: to read each on its own took time by the square of how many there are.
func TestAKeyThatBeginsInAnothersHeadersIsAPartOfIt(t *testing.T) {
	s, _ := scanners()
	begin, end, line := "-----"+"BEGIN PRIVATE KEY"+"-----\n", "-----"+"END PRIVATE KEY-----", strings.Repeat("Qm9keQ", 10)+"\n"
	for name, c := range map[string]struct {
		text string
		keys int
	}{
		"in its headers": {begin + "Comment: " + begin + line + line + end, 1},
		"after a line":   {begin + line + "Comment: " + begin + line + end, 1},
		"one by one":     {begin + line + end + "\n" + begin + line + end, 2},
		"unfinished":     {begin + line + begin + line + end, 2},
		"many headers":   {begin + strings.Repeat("Hash: SHA256\n", 30) + line + end, 1},
	} {
		got := s.Redact("a\n" + c.text + "\nz\n")
		if strings.Contains(got, "Qm9k") || strings.Count(got, "[secret: private-key]") != c.keys || !strings.HasPrefix(got, "a\n[") || !strings.HasSuffix(got, "]\nz\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

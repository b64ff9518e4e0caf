package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"sallyport/internal/base/race/racetest"
)

// scan fails the test if the scan does.
func scan(t testing.TB, name, text string) []Finding {
	t.Helper()
	s, _ := scanners()
	fs, err := s.Scan(t.Context(), name, strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return fs
}

// has says whether a critical finding of a rule is on a line; line 0: anywhere.
func has(fs []Finding, rule string, line int) bool {
	return slices.ContainsFunc(fs, func(f Finding) bool {
		return f.Rule == rule && f.Severity == Critical && (line == 0 || f.Line == line)
	})
}

func wide(text string, big, bom bool) string {
	var out strings.Builder
	letters := utf16.Encode([]rune(text))
	if bom {
		letters = append([]uint16{0xfeff}, letters...)
	}
	for _, u := range letters {
		if big {
			out.WriteByte(byte(u >> 8))
			out.WriteByte(byte(u))
		} else {
			out.WriteByte(byte(u))
			out.WriteByte(byte(u >> 8))
		}
	}
	return out.String()
}

func wrap(text string, width int, between string) string {
	var lines []string
	for part := range slices.Chunk([]byte(text), width) {
		lines = append(lines, string(part))
	}
	return strings.Join(lines, between)
}

// Every known format, in every place and dress that the product promises to see: 0 misses.
func TestNoKnownSecretIsMissed(t *testing.T) {
	rounds := 12
	if racetest.Part() {
		rounds = 1
	}
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	url := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	dresses := map[string]func(s string) (name, text string){
		"bare":             func(s string) (string, string) { return "a.txt", s },
		"assigned":         func(s string) (string, string) { return "a.go", "x := \"" + s + "\"\n" },
		"glued":            func(s string) (string, string) { return "a.txt", "xY3" + s + "é" },
		"added in a diff":  func(s string) (string, string) { return "a.patch", "@@ -0,0 +1 @@\n+" + s + "\n" },
		"crlf":             func(s string) (string, string) { return "a.ini", "[x]\r\nkey=" + s + "\r\n" },
		"json":             func(s string) (string, string) { return "a.json", `{"a":"` + s + `"}` },
		"lock file":        func(s string) (string, string) { return "package-lock.json", "  \"" + s + "\"\n" },
		"image by name":    func(s string) (string, string) { return "a.png", "\x89PNG\r\n\x1a\n\x00\x00" + s + "\x00\xff" },
		"go.sum":           func(s string) (string, string) { return "go.sum", s + "\n" },
		"binary":           func(s string) (string, string) { return "a.out", "\x7fELF\x00\x01" + s + "\x00\xfe\xff" },
		"protobuf":         func(s string) (string, string) { return "a.bin", "\n" + string(rune('0'+len(s)%70)) + s + "\x12" },
		"base64":           func(s string) (string, string) { return "a.yaml", "v: " + b64("user "+s+"\n") + "\n" },
		"base64 alone":     func(s string) (string, string) { return "a.yaml", "v: " + b64(s) + "\n" },
		"base64url":        func(s string) (string, string) { return "a.txt", url("{\"a\":\"" + s + "\"}") },
		"base64 twice":     func(s string) (string, string) { return "a.txt", b64("x=" + b64(s)) },
		"base64 of binary": func(s string) (string, string) { return "a.txt", b64("\x00\x01\xff" + s + "\xfe") },
		"base64 in a path": func(s string) (string, string) { return "a.txt", "https://h/api/v1/" + b64(s) },
		"base64 wrapped 76": func(s string) (string, string) {
			return "a.txt", wrap(b64(strings.Repeat("padding ", 9)+s+" and more"), 76, "\n")
		},
		"base64 wrapped 64": func(s string) (string, string) {
			return "a.txt", wrap(b64(strings.Repeat("padding ", 9)+s+" and more"), 64, "\r\n")
		},
		"base64 indented": func(s string) (string, string) {
			return "a.yaml", "k: |\n  " + wrap(b64(strings.Repeat("padding ", 8)+s), 60, "\n  ")
		},
		"base64 in source": func(s string) (string, string) {
			return "a.go", "x = \"" + wrap(b64(strings.Repeat("padding ", 8)+s), 60, "\" +\n\t\"") + "\""
		},
		"base64 escaped": func(s string) (string, string) {
			return "a.json", `"` + wrap(b64(strings.Repeat("padding ", 8)+s), 64, `\n`) + `"`
		},
		"hex":               func(s string) (string, string) { return "a.txt", hex.EncodeToString([]byte("key: " + s + " .....")) },
		"utf-16 le":         func(s string) (string, string) { return "a.txt", wide("Ж "+s+"\n", false, true) },
		"utf-16 be":         func(s string) (string, string) { return "a.txt", wide("key "+s+"\n", true, true) },
		"utf-16 in program": func(s string) (string, string) { return "a.exe", "MZ\x00\x01\x02" + wide(s, false, false) + "\xff\xff" },
		"powershell":        func(s string) (string, string) { return "a.ps1", "-enc " + b64(wide("$x='"+s+"'", false, false)) },
		"long line": func(s string) (string, string) {
			return "a.js", strings.Repeat("a=1;", 20_000) + s + strings.Repeat(";b=2", 20_000)
		},
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	tries := 0
	for range rounds {
		secrets := known(rnd)
		for _, rule := range slices.Sorted(maps.Keys(secrets)) {
			for i, s := range secrets[rule] {
				for _, dress := range slices.Sorted(maps.Keys(dresses)) {
					if len(s) < 15 && (strings.HasPrefix(dress, "base64") || dress == "hex") {
						continue // what is so short is not looked for behind a coding
					}
					if (dress == "json" || dress == "base64 in source") && strings.Contains(s, "\n") {
						continue
					}
					name, text := dresses[dress](s)
					tries++
					fs := scan(t, name, text)
					if !has(fs, rule, 0) {
						t.Errorf("missed %s (form %d) as %s: %v", rule, i, dress, fs)
					}
					for _, f := range fs {
						if len(s) > 8 && strings.Contains(fmt.Sprintf("%+v %s", f, f), s[:8]) {
							t.Errorf("%s: a finding shows what it found", rule)
						}
					}
				}
			}
		}
	}
	if !t.Failed() {
		t.Logf("%d secrets planted, none missed", tries)
	}
}

func TestAFindingNamesTheLine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	key := known(rnd)["aws-access-key"][0]
	encoded := base64.StdEncoding.EncodeToString([]byte("aws " + key + " key"))
	for name, text := range map[string]string{
		"plain": "a\nb\n" + key + "\nc\n", "encoded": "a\nb\n" + encoded + "\nc\n", "wide": wide("a line\nb line\n"+key+"\nc", false, true),
		"last": "a\n\n" + key,
	} {
		if fs := scan(t, "f", text); !has(fs, "aws-access-key", 3) {
			t.Errorf("%s: %v", name, fs)
		}
	}
}

// Texts that look like secrets and are none. The rate is printed; the bound keeps it from rising unseen.
func TestLookAlikesAreMostlyLeftAlone(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	hex := func(n int) string { return random(rnd, hexa, n) }
	uuid := func() string { return hex(8) + "-" + hex(4) + "-4" + hex(3) + "-a" + hex(3) + "-" + hex(12) }
	looks := map[string]func() string{
		"commit":       func() string { return "commit " + hex(40) },
		"sha256":       func() string { return hex(64) + "  dist/app.tar.gz" },
		"go.sum":       func() string { return "example.org/m v1.2.3 h1:" + random(rnd, std64, 43) + "=" },
		"integrity":    func() string { return `"integrity": "sha512-` + random(rnd, std64, 86) + `=="` },
		"digest":       func() string { return "image: registry.example.org/app@sha256:" + hex(64) },
		"uuid":         func() string { return "id: " + uuid() },
		"short openai": func() string { return "s" + "k-" + random(rnd, alnum, 12) },
		"name":         func() string { return "task-" + random(rnd, lower, 8) + "-" + random(rnd, lower, 5) },
		"short github": func() string { return "gh" + "p_" + random(rnd, alnum, 20) },
		"aws word":     func() string { return "AK" + "IA" + random(rnd, upper, 8) + " " + random(rnd, upper, 8) },
		"aws lower":    func() string { return "ak" + "ia" + random(rnd, lower, 16) },
		"slack word":   func() string { return "xo" + "xb-your-token-here" },
		"public key":   func() string { return "-----BEGIN PUBLIC KEY-----\n" + random(rnd, std64, 64) },
		"certificate":  func() string { return "-----BEGIN CERTIFICATE-----\nMII" + random(rnd, std64, 61) },
		"ssh public":   func() string { return "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA" + random(rnd, std64, 44) },
		"url":          func() string { return "postgres" + "://localhost:5432/app_" + random(rnd, lower, 5) },
		"url user":     func() string { return "postgres" + "://" + random(rnd, lower, 5) + "@localhost/app" },
		"url template": func() string {
			return "mysql" + "://%s:%s@%s/x postgres" + "://u:${DB_PASSWORD}@h postgres" + "://u:<password>@h"
		},
		"env":         func() string { return "password = os.Getenv(\"APP_PASSWORD\")" },
		"struct":      func() string { return "Token string `json:\"token\"`" },
		"call":        func() string { return "key := cache.Key(request.Path, user.Name)" },
		"placeholder": func() string { return `api_key: "<your-api-key>"` },
		"data image":  func() string { return "data:image/png;base64,iVBORw0KGgo" + random(rnd, std64, 300) },
		"minified":    func() string { return "function " + random(rnd, lower, 2) + "(t){return t.key||t.access.token}" },
		"jwt header":  func() string { return "ey" + "JhbGciOiJIUzI1NiJ9" },
		"version":     func() string { return "access: v1." + random(rnd, digits, 2) + "." + random(rnd, digits, 2) },
		"identifier":  func() string { return "authenticationTokenProviderFactory.createAccessKey()" },
		"build id":    func() string { return "Go build ID: \"" + random(rnd, url64, 20) + "/" + random(rnd, url64, 20) + "\"" },
		"csp":         func() string { return "script-src 'nonce-" + random(rnd, std64, 22) + "=='" },
		"binary rubble": func() string {
			b := make([]byte, 300)
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			return string(b)
		},
	}
	each := 60
	if racetest.Part() {
		each = 10
	}
	tries, wrong, critical := 0, map[string]int{}, 0
	for _, kind := range slices.Sorted(maps.Keys(looks)) {
		for range each {
			tries++
			fs := scan(t, "src/a.txt", "line one\n"+looks[kind]()+"\nline three\n")
			if len(fs) > 0 {
				wrong[kind+": "+fs[0].Rule]++
				if has(fs, fs[0].Rule, 0) {
					critical++
				}
			}
		}
	}
	sum := 0
	for _, n := range wrong {
		sum += n
	}
	t.Logf("false positives: %d of %d (%.2f %%), critical %d; %v", sum, tries, 100*float64(sum)/float64(tries), critical, wrong)
	if sum*100 > 2*tries {
		t.Errorf("more than 2 %% false positives")
	}
}

package secret_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/zricethezav/gitleaks/v8/config"

	"sallyport/internal/base/problem"
	"sallyport/internal/rule/secret"
)

var (
	awsKey = "AK" + "IA" + "Q3EGRZ5YXNWWVT2B"
	ghKey  = "gh" + "p_" + "0123456789abcdefghijABCDEFGHIJ012345"
)

func scanner(t testing.TB, cfg secret.Config) *secret.Scanner {
	t.Helper()
	s, err := secret.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func blob(path, content string) secret.Blob {
	return secret.Blob{Path: path, Size: int64(len(content)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func based(b secret.Blob, content string) secret.Blob {
	b.Base = func(context.Context) ([]byte, error) { return []byte(content), nil }
	return b
}

func rules(fs []secret.Finding) string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%s:%d:%s", f.File, f.Line, f.Rule))
	}
	return strings.Join(out, " ")
}

func TestWhatExcusesCountsOnlyAsItStandsAtTheBase(t *testing.T) {
	marked := "key = \"" + awsKey + "\" // " + "gitleaks:allow\n"
	bare := "key = \"" + awsKey + "\"\n"
	ignore := []byte("# ours\n0123abc:a.go:aws-access-key:1\na.go:aws-access-token:1\n")
	plain, listed := scanner(t, secret.Config{Trusted: true}), scanner(t, secret.Config{Ignore: ignore, Trusted: true})
	for _, c := range []struct {
		name    string
		scanner *secret.Scanner
		blob    secret.Blob
		clean   bool
	}{
		{"a mark that the change brings", plain, blob("a.go", marked), false},
		{"a mark on a new line of a file with another", plain, based(blob("a.go", marked), "x\n"), false},
		{"a mark that was there, moved down", plain, based(blob("a.go", "new\n\n"+marked), marked+"old\n"), true},
		{"a mark added to a line that was there", plain, based(blob("a.go", marked), bare), false},
		{"a mark that was there, with another secret", plain, based(blob("a.go", strings.ReplaceAll(marked, "Q3", "Z7")), marked), false},
		{"an ignored line that was there", listed, based(blob("a.go", "new\n"+bare), bare), true},
		{"an ignored place with another secret", listed, based(blob("a.go", strings.ReplaceAll(bare, "Q3", "Z7")), bare), false},
		{"an ignored rule in another file", listed, based(blob("b.go", bare), bare), false},
		{"an ignored line without a base", listed, blob("a.go", bare), false},
		{"a line that was there, unexcused", plain, based(blob("a.go", bare), bare), false},
		{"in an archive's file nothing is excused", plain, based(blob("a.tar", tarball(t, "x", marked)), tarball(t, "x", marked)), false},
	} {
		fs, err := c.scanner.ScanBlob(t.Context(), c.blob)
		if err != nil || (len(fs) == 0) != c.clean {
			t.Errorf("%s: %s %v", c.name, rules(fs), err)
		}
	}
}

func TestTheBasesRules(t *testing.T) {
	own := "qqq" + "_0123456789"
	text := "a\nv = " + own + "\n"
	slackHook := "hooks.slack.com" + "/services/" + strings.Repeat("aB3", 15)
	for _, c := range []struct {
		name, toml, text, want string
	}{
		{"a rule of its own", "[[rules]]\nid='ours'\nregex='''qqq_[0-9]{10}'''\nkeywords=['qqq_']\n", text, "f:2:ours"},
		{"the default rules stay", "[[rules]]\nid='ours'\nregex='''qqq_[0-9]{10}'''\n", slackHook, "f:1:slack-webhook-url"},
		{"until disabled by name", "[extend]\nuseDefault=true\ndisabledRules=['slack-webhook-url']\n", slackHook, ""},
		{"a path that is allowed", "[allowlist]\npaths=['^f$']\n", slackHook, ""},
		{"does not excuse what is known", "[allowlist]\npaths=['.*']\nregexes=['.*']\nstopwords=['a']\n", ghKey, "f:1:github-token"},
		{"an expression for a rule", "[[allowlists]]\ntargetRules=['slack-webhook-url']\nregexes=['aB3']\nregexTarget='match'\n", slackHook, ""},
	} {
		s := scanner(t, secret.Config{Toml: []byte(c.toml), Trusted: true})
		fs, err := s.ScanBlob(t.Context(), blob("f", c.text))
		if err != nil || rules(fs) != c.want {
			t.Errorf("%s: %s %v, want %q", c.name, rules(fs), err, c.want)
		}
		if s.Digest() == scanner(t, secret.Config{}).Digest() {
			t.Errorf("%s: the digest does not tell the rules apart", c.name)
		}
	}
	for name, toml := range map[string]string{
		"no TOML": "[[", "another file": "[extend]\npath='/etc/passwd'\n", "a URL": "[extend]\nurl='http://x'\n",
		"no expression": "[[rules]]\nid='x'\nregex='('\nkeywords=['x']\n", "an allowlist that does not compile": "[allowlist]\nregexes=['(']\n",
		"too long": "[[rules]]\nid='x'\nregex='''" + strings.Repeat("a", 1001) + "'''\n", "too large": strings.Repeat("#", 600<<10),
		"too long, in the older spelling": "[allowlist]\nregexes=['" + strings.Repeat("a", 1001) + "']\n", "too long, in a rule's": "[[rules]]\nid='x'\nregex='x'\n[rules.allowlist]\nregexes=['" + strings.Repeat("a", 1001) + "']\n",
		"too many": "[allowlist]\nregexes=[" + strings.Repeat("'x',", 5001) + "]\n", "too costly": "[allowlist]\npaths=[" + strings.Repeat(`'\pL{999}',`, 400) + "]\n",
		"a rule without effect": "[[rules]]\nid='x'\n", "an unknown target": "[[allowlists]]\ntargetRules=['nope']\npaths=['x']\n",
	} {
		if _, err := secret.New(secret.Config{Toml: []byte(toml), Trusted: true}); problem.KindOf(err) != problem.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := secret.New(secret.Config{Toml: []byte(strings.ReplaceAll(config.DefaultConfig, "regex = '''", "regex = '''(?:)"))}); err != nil {
		t.Errorf("all the default rules, written a little differently: %v", err)
	}
	for range 4 { // the library's own way of extending works twice and then no more
		s := scanner(t, secret.Config{Toml: []byte("[extend]\nuseDefault=true\n")})
		if fs, _ := s.ScanBlob(t.Context(), blob("f", slackHook)); len(fs) != 1 {
			t.Fatalf("the default rules got lost: %s", rules(fs))
		}
	}
}

func tarball(t testing.TB, namesAndContents ...string) string {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i+1 < len(namesAndContents); i += 2 {
		body := namesAndContents[i+1]
		err := errors.Join(w.WriteHeader(&tar.Header{Name: namesAndContents[i], Mode: 0o600, Size: int64(len(body))}))
		if _, err2 := io.WriteString(w, body); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func gzipped(t testing.TB, body string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, body)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// commented is what gzip makes of nothing, with a comment in its head.
func commented(t testing.TB, comment string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Comment = comment
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func unhex(t testing.TB, digits string) string {
	raw, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func zipped(t testing.TB, namesAndContents ...string) string {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i+1 < len(namesAndContents); i += 2 {
		f, err := w.Create(namesAndContents[i])
		if err == nil {
			_, err = io.WriteString(f, namesAndContents[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestArchivesAreLookedInto(t *testing.T) {
	text := "x\n" + awsKey + "\n"
	s := scanner(t, secret.Config{})
	for _, c := range []struct{ name, content, want string }{
		{"a.zip", zipped(t, "in/a.txt", text), "a.zip!in/a.txt:2:aws-access-key"},
		{"a.jar", zipped(t, "A.class", "\xca\xfe\xba\xbe\x00"+awsKey), "a.jar!A.class:1:aws-access-key"},
		{"no-name", zipped(t, "a", text), "no-name!a:2:aws-access-key"},
		{"setup.zip", "#!/bin/sh\x00\n" + zipped(t, "a", text), "setup.zip!a:2:aws-access-key"},
		{"a.tgz", gzipped(t, tarball(t, "a", "", "b", text)), "a.tgz!a.tar!b:2:aws-access-key"},
		{"a.txt.gz", gzipped(t, text), "a.txt.gz!a.txt:2:aws-access-key"},
		{"a.tar", tarball(t, "b", text), "a.tar!b:2:aws-access-key"},
		{"deep.zip", zipped(t, "b.zip", zipped(t, "c.gz", gzipped(t, text))), "deep.zip!b.zip!c.gz!c:2:aws-access-key"},
		{"paths.zip", zipped(t, "x/.env", "A=1", "../.ssh/id", "k"), "paths.zip!../.ssh/id:0:path .ssh/ paths.zip!x/.env:0:path .env"},
		{"names.zip", zipped(t, ghKey+".txt", "k"), "names.zip!.txt:0:github-token"},
		{"comment.gz", commented(t, awsKey), "comment.gz:1:aws-access-key comment.gz!comment:1:aws-access-key"},
		{"packed.bz2", unhex(t, "425a6839314159265359406f7ec500000b4e8000101a0032a935f000402000314c269a034c4280033519a86e14d9319e2a3c833c18b91f177245385090406f7ec5"), "packed.bz2!packed:2:aws-access-key"}, // the text, by bzip2
		{"words.txt", "BZh is how bzip2 begins", ""},
		{"clean.zip", zipped(t, "a", "b"), ""},
		{"pointer.zip", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", ""},
		{"empty.zip", "", ""},
	} {
		fs, err := s.ScanBlob(t.Context(), blob(c.name, c.content))
		got := strings.ReplaceAll(rules(fs), "[secret: github-token]", "")
		if strings.HasPrefix(c.name, "a.t") || c.name == "names.zip" { // stored as it is, the archive's own bytes show it too
			if err != nil || !strings.Contains(got, strings.Fields(c.want)[0]) {
				t.Errorf("%s: %s %v, want %s", c.name, got, err, c.want)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestWhatCannotBeScannedIsRefusedByName(t *testing.T) {
	s := scanner(t, secret.Config{BytesMax: 1 << 20, Unpack: secret.Unpack{BytesMax: 1 << 20, FilesMax: 10, DepthMax: 2}})
	encrypted := []byte(zipped(t, "a", "b"))
	encrypted[6] |= 1
	encrypted[bytes.Index(encrypted, []byte("PK\x01\x02"))+8] |= 1
	nested := zipped(t, "c.zip", zipped(t, "b.zip", zipped(t, "a", "b")))
	var many []string
	for i := range 11 {
		many = append(many, fmt.Sprint(i), "x")
	}
	cut := gzipped(t, strings.Repeat("abc", 1000))
	short := blob("short", "abc")
	short.Size = 4
	broken := blob("broken", "")
	broken.Open = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), nil
	}
	absent := blob("absent", "")
	absent.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such object") }
	unknown := blob("unknown size", strings.Repeat("a ", 1<<20))
	unknown.Size = -1
	for _, b := range []secret.Blob{
		blob("large", strings.Repeat("a ", 1<<20)), unknown, short, broken, absent,
		blob("bomb.gz", gzipped(t, strings.Repeat("a", 2<<20))), blob("bomb.zip", zipped(t, "a", strings.Repeat("a", 2<<20))),
		blob("many.zip", zipped(t, many...)), blob("nested.zip", nested), blob("encrypted.zip", string(encrypted)),
		blob("cut.gz", cut[:len(cut)-9]), blob("trailing.gz", cut+"junk"), blob("no.zip", "\x00\x01\x02"), blob("a.7z", "7z\xbc\xaf\x27\x1c\x00\x04"),
		blob("b", "\xfd7zXZ\x00\x00"), blob("c.rar", "Rar!\x1a\x07\x00"), blob("d.zst", "\x28\xb5\x2f\xfd\x00"), blob("e.deb", "!<arch>\ndebian-binary"),
		blob("f.tar", "\x80\x01"), blob("g.zip", "PK\x03\x04rubbish"),
	} {
		fs, err := s.ScanBlob(t.Context(), b)
		var told *secret.NotScanned
		if !errors.As(err, &told) || !errors.Is(err, secret.ErrNotScanned) || problem.KindOf(err) != problem.Refused || !strings.HasPrefix(told.File, b.Path) {
			t.Errorf("%s: %s %v", b.Path, rules(fs), err)
		}
	}
}

func TestAScanThatIsEndedIsNotClean(t *testing.T) {
	s := scanner(t, secret.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ScanBlob(ended, blob("a", "b")); !errors.Is(err, secret.ErrNotScanned) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	slow := scanner(t, secret.Config{TimeMax: time.Nanosecond})
	_, err := slow.ScanBlob(t.Context(), blob("a", "b"))
	if !errors.Is(err, secret.ErrNotScanned) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1ns") {
		t.Errorf("late: %v", err)
	}
}

func TestPathsAndTargetsOfLinksAreScanned(t *testing.T) {
	s := scanner(t, secret.Config{})
	fs, err := s.ScanBlob(t.Context(), blob("dir/"+ghKey+"/"+awsKey+".txt", "x"+awsKey))
	if err != nil || len(fs) != 3 {
		t.Fatalf("%s %v", rules(fs), err)
	}
	for _, f := range fs {
		if strings.Contains(f.File, ghKey[4:12]) || strings.Contains(f.File, awsKey[4:12]) {
			t.Error("a finding's path shows the secret")
		}
	}
	if _, err := s.ScanBlob(t.Context(), blob(ghKey+".7z", "7z\xbc\xaf\x27\x1c\x00")); err == nil || strings.Contains(err.Error(), ghKey[4:12]) {
		t.Error("an error's path shows the secret")
	}
	for target, want := range map[string]string{"../x/" + awsKey: "l:1:aws-access-key", "/root/.ssh/id_x": "l:1:path .ssh/", "a/b": ""} {
		link := blob("l", target)
		link.Link = true
		if fs, err := s.ScanBlob(t.Context(), link); err != nil || rules(fs) != want {
			t.Errorf("%d bytes: %s %v, want %s", len(target), rules(fs), err, want)
		}
	}
}

type counting struct {
	*secret.Memory
	hits int
}

func (c *counting) Find(k secret.Key) ([]secret.Finding, bool) {
	fs, ok := c.Memory.Find(k)
	if ok {
		c.hits++
	}
	return fs, ok
}

func TestAScanIsKeptPerBlobAndRules(t *testing.T) {
	cache := &counting{Memory: secret.NewMemory(3)}
	s := scanner(t, secret.Config{Cache: cache})
	other := scanner(t, secret.Config{Cache: cache, Ignore: []byte("a:b:1\n")})
	opened := 0
	with := func(id, path, content string) secret.Blob {
		b := blob(path, content)
		b.ID = id
		open := b.Open
		b.Open = func(ctx context.Context) (io.ReadCloser, error) { opened++; return open(ctx) }
		return b
	}
	steps := []struct {
		s    *secret.Scanner
		b    secret.Blob
		read bool
	}{
		{s, with("1", "a", awsKey), true}, {s, with("1", "a", awsKey), false}, {s, with("1", "b", awsKey), true},
		{other, with("1", "a", awsKey), true}, {s, with("", "a", awsKey), true},
	}
	for i, step := range steps {
		before := opened
		fs, err := step.s.ScanBlob(t.Context(), step.b)
		if err != nil || len(fs) != 1 || (opened > before) != step.read {
			t.Errorf("step %d: %s %v, read: %v", i, rules(fs), err, opened > before)
		}
		if len(fs) > 0 {
			fs[0].Rule = "spoilt" // what a caller does with it does not reach the cache
		}
	}
	bad := with("9", "a.7z", "7z\xbc\xaf\x27\x1c\x00")
	for range 2 {
		if _, err := s.ScanBlob(t.Context(), bad); err == nil {
			t.Error("what was not scanned was kept as clean")
		}
	}
	before := opened
	for _, id := range []string{"2", "3", "4"} {
		_, _ = s.ScanBlob(t.Context(), with(id, "a", "x"))
	}
	_, _ = s.ScanBlob(t.Context(), with("1", "a", awsKey))
	if opened != before+4 {
		t.Errorf("the cache holds more than it may")
	}
}

func TestManyScansAtOnce(t *testing.T) {
	s := scanner(t, secret.Config{Cache: secret.NewMemory(10)})
	var scans sync.WaitGroup
	for i := range 40 {
		scans.Go(func() {
			b := blob(fmt.Sprintf("f%02d", i), strings.Repeat("line\n", i)+awsKey)
			b.ID = fmt.Sprint(i % 5)
			if fs, err := s.ScanBlob(t.Context(), b); err != nil || len(fs) != 1 || fs[0].File != b.Path {
				t.Errorf("%s: %v, %v", b.Path, fs, err)
			}
		})
	}
	scans.Wait()
}

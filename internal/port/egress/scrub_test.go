package egress

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"

	"sallyport/internal/rule/secret"
)

func TestAKeyIsNotPassedOnInWhateverPieces(t *testing.T) {
	const key = "abcabcabd"
	stars := strings.Repeat("*", len(key))
	for text, want := range map[string]string{
		"":                             "",
		"nothing of it, abcabca":       "nothing of it, abcabca",
		"x" + key + "y":                "x" + stars + "y",
		key + key:                      stars + stars,
		"abc" + key:                    "abc" + stars, // it begins within what could be its beginning
		"abcab" + key + "abcabcab":     "abcab" + stars + "abcabcab",
		"Authorization: Bearer " + key: "Authorization: Bearer " + stars,
		"abc\x00\x00\x00abcabd":        stars + "***",
		"abc\x00\x00\x00\x00abcabd":    "abc\x00\x00\x00\x00abcabd", // no letters are so wide
		`\u0161bcabcabd`:               `\u0161bcabcabd`,            // another letter
	} {
		for size := 1; size <= len(text)+1; size++ {
			var out bytes.Buffer
			s := &scrubber{to: &out, keys: spell([]byte(key))}
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				if wrote, err := s.Write(rest[:n:n]); wrote != n || err != nil {
					t.Fatalf("%d, %v", wrote, err)
				}
				rest = rest[n:]
			}
			if err := s.end(); err != nil || out.String() != want {
				t.Errorf("%q in pieces of %d became %q, %v", text, size, out.String(), err)
			}
		}
	}
}

func TestAnEndpointThatTellsWhatItWasSentTellsNoKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Header.Get("Authorization"))
		w.Header().Set("X-Other", "stays")
		io.WriteString(w, "you sent "+r.Header.Get("Authorization")[:12])
		w.(http.Flusher).Flush()
		io.WriteString(w, r.Header.Get("Authorization")[12:]+" to me")
	}))
	defer s.Close()
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, s.URL)} })
	resp, body := w.send(get("/model/models", Inside))
	if want := "you sent Bearer " + strings.Repeat("*", len(theKey)) + " to me"; body != want || resp.Header.Get("X-Seen") != "" || resp.Header.Get("X-Other") != "stays" {
		t.Errorf("%q %v", body, resp.Header)
	}
	if (Route{Value: secret.Hold("Bearer 1234567")}).key() != nil {
		t.Error("a word of seven letters is looked for in every text")
	}
	if (Route{Value: secret.Hold("Bearer 12345678")}).key() == nil {
		t.Error("a word of eight letters is not looked for")
	}
	odd := []byte(`100%-sure&safe\word`) // with what escapes begin with
	if undecided, found := spell(odd).hide(odd); !found || undecided != len(odd) || strings.Trim(string(odd), "*") != "" {
		t.Errorf("%q stays", odd)
	}
}

// Each is written here as somebody else's library would; what stays of it in the text is not enough to be read back.
func TestAKeyIsNotPassedOnInAnotherSpelling(t *testing.T) {
	const key = `sk-Live+of/The=Owneraz_0123456789`
	per := func(format string) (s string) {
		for _, c := range []byte(key) {
			s += fmt.Sprintf(format, c)
		}
		return s
	}
	wide := func(order binary.AppendByteOrder) (s []byte) {
		for _, u := range utf16.Encode([]rune(key)) {
			s = order.AppendUint16(s, u)
		}
		return s
	}
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{
		"capitals":    strings.ToUpper(key),
		"backwards":   "9876543210_zarenwO=ehT/fo+eviL-ks",
		"hex":         hex.EncodeToString([]byte(key)),
		"HEX":         strings.ToUpper(hex.EncodeToString([]byte(key))),
		"a query":     url.QueryEscape(key),
		"a path":      strings.ReplaceAll(key, "/", "%2F"),
		"percent":     per("%%%02X"),
		"a string":    per(`\x%02x`),
		"JSON":        per(`\u%04x`),
		"Go's JSON":   string(quoted[1 : len(quoted)-1]),
		"PHP's JSON":  strings.ReplaceAll(key, "/", `\/`),
		"HTML":        per("&#%d;"),
		"hex in HTML": per("&#x%X;"),
		"UTF-16LE":    string(wide(binary.LittleEndian)),
		"UTF-16BE":    string(wide(binary.BigEndian)),
	}
	for n := range 3 {
		before := "Authorization: Bearer "[n:]
		told[fmt.Sprint("base64 ", n)] = base64.StdEncoding.EncodeToString([]byte(before + key + "\r\nmore"))
		told[fmt.Sprint("base64url ", n)] = base64.URLEncoding.EncodeToString([]byte(before + key + "\r\nmore"))
	}
	for name, text := range told {
		for _, size := range []int{1, 7, len(text)} {
			var out bytes.Buffer
			s := &scrubber{to: &out, keys: spell([]byte(key))}
			for piece := range slices.Chunk([]byte(text), size) {
				if _, err := s.Write(slices.Clip(piece)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.end(); err != nil || out.Len() != len(text) {
				t.Fatalf("%s: %q, %v", name, out.String(), err)
			}
			stars := strings.Count(out.String(), "*")
			if strings.HasPrefix(name, "base64") {
				if stars < len(key)*4/3-2 {
					t.Errorf("%s in pieces of %d: %q", name, size, out.String())
				}
			} else if left := len(text) - stars; left > 1 { // a zero byte of UTF-16
				t.Errorf("%s in pieces of %d: %q", name, size, out.String())
			}
		}
	}
}

// An endpoint that is out to tell the key, on every way that HTTP has but the text.
func TestAnAnswerTellsNoKeyBesideItsText(t *testing.T) {
	addr, got := raw(t, "HTTP/1.1 103 Early\r\nLink: "+theKey+"\r\n\r\nHTTP/1.1 299 "+theKey+"\r\nX-"+theKey+": 1\r\nX-Hex: "+hex.EncodeToString([]byte(theKey))+
		"\r\nForwarded: by="+theKey+"\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n2;x="+theKey+"\r\nok\r\n0\r\nX-End: "+theKey+"\r\n\r\n")
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, "http://"+addr)} })
	c := w.connect()
	io.WriteString(c, "GET /model/models HTTP/1.1\r\nHost: "+Inside+"\r\nConnection: close\r\n\r\n")
	down, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(down), "HTTP/1.1 299 \r\n") || !strings.HasSuffix(string(down), "2\r\nok\r\n0\r\n\r\n") {
		t.Errorf("%q, %v", down, err)
	}
	if spell([]byte(theKey)).in(string(down)) || !strings.Contains(<-got, theKey) {
		t.Errorf("down came %q", down)
	}
}

func TestWhatCannotBeSearchedForAKeyIsNotPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		head string
		want string // in the reason; "" = it is passed on, without the key
	}{
		"as it is":       {"", ""},
		"said to be so":  {"Content-Encoding: identity\r\n", ""},
		"brotli":         {"Content-Encoding: br\r\n", "compressed its answer (br)"},
		"zstd":           {"Content-Encoding: zstd\r\n", "compressed its answer (zstd)"},
		"deflate":        {"Content-Encoding: deflate\r\n", "compressed its answer (deflate)"},
		"twice":          {"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", "compressed its answer (gzip,gzip)"},
		"of its own":     {"Content-Encoding: \x7f\xff\r\n", ""},
		"a set of parts": {"Content-Type: multipart/byteranges; boundary=x\r\n", "a part of what was asked for"},
	} {
		addr, _ := raw(t, "HTTP/1.1 200 OK\r\n"+c.head+"Content-Length: 20\r\n\r\n"+theKey)
		w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, "http://"+addr)} })
		resp, body := w.send(get("/model/models", Inside))
		if c.want == "" && name != "of its own" && (resp.StatusCode != http.StatusOK || body != strings.Repeat("*", len(theKey))) {
			t.Errorf("%s: %d %q", name, resp.StatusCode, body)
		}
		if c.want != "" && (resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, c.want)) || strings.Contains(body, theKey) {
			t.Errorf("%s: %d %q", name, resp.StatusCode, body)
		}
		w.stop()
	}
	addr, _ := raw(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"+theKey)
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, "http://"+addr)} })
	c := w.connect()
	io.WriteString(c, get("/model/models", Inside))
	if down, _ := io.ReadAll(c); !strings.HasSuffix(string(down), "\r\n\r\n") {
		t.Errorf("of what is not packed as it says %q came", down)
	}
	w.stop()
	if told := w.decisions(); len(told) != 1 || told[0].Verdict != Allowed {
		t.Errorf("told %+v", told)
	}
	for left, want := range map[int64]error{5: nil, 4: errUnpacked} {
		var short bytes.Buffer
		z := gzip.NewWriter(&short)
		io.WriteString(z, "hello")
		z.Close()
		if _, err := io.ReadAll(&unpacking{packed: io.NopCloser(&short), n: unpackedMax - left}); err != want {
			t.Errorf("%v where %d bytes more may be unpacked", err, left)
		}
	}
	part, _ := raw(t, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-19/20\r\nContent-Length: 15\r\n\r\n"+theKey[5:])
	s := packed(t, "text/plain", "it was "+theKey)
	for base, want := range map[string]string{"http://" + part: "a part of what was asked for", s.URL: "it was " + strings.Repeat("*", len(theKey))} {
		w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, base)} })
		if _, body := w.send(get("/model/models", Inside)); !strings.Contains(body, want) || strings.Contains(body, theKey[5:]) {
			t.Errorf("%q", body)
		}
		w.stop()
	}
}

// A model that thinks says nothing for long; who goes away then has used what it thought.
func TestAnAnswerThatDoesNotSayItsUsageCountsTheTimeThatItsModelHad(t *testing.T) {
	for name, test := range map[string]struct {
		after  time.Duration
		status int
		want   int64 // 0: it is not counted
	}{
		"at once":               {0, 200, 10},
		"late":                  {30 * time.Second, 200, 3000},
		"refused":               {30 * time.Second, 400, 0},
		"failed at once":        {time.Second, 502, 0},
		"failed too soon":       {workSoonest - 1, 504, 0},
		"failed late enough":    {workSoonest, 504, 500},
		"took too long":         {30 * time.Second, 408, 3000},
		"was given up":          {30 * time.Second, 499, 3000},
		"broke":                 {30 * time.Second, 500, 3000},
		"outlasted a gateway":   {30 * time.Second, 504, 3000},
		"the model is too busy": {30 * time.Second, 429, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []Usage
			m := newMeter(Answer{Route: &Route{Wire: wireChat, Used: func(u Usage) { told = append(told, u) }}, Method: "POST", Path: "/chat/completions"})
			m.asked([]byte(`{"model":"m"}`))
			if test.status != 200 {
				time.Sleep(test.after)
			}
			m.answered(&http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {"text/event-stream"}}})
			m.Write([]byte(`data: {"choices":[{"delta":{"content":"` + strings.Repeat("a", 40) + `"}}]}` + "\n\n"))
			if test.status == 200 {
				time.Sleep(test.after)
			}
			m.close(true)
			if test.want == 0 && len(told) == 0 {
				return
			}
			if len(told) != 1 || told[0].Output != test.want || !told[0].Unknown {
				t.Errorf("%s: %+v", name, told)
			}
		})
	}
}

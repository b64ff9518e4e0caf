package egress

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// headersMax bounds the number of a request's headers.
const headersMax = 128

// chunked is the length of a body that says itself where it ends.
const chunked = -1

// head is a request's head, read strictly: what two programs could read in two ways is refused, not mended.
type head struct {
	method  string
	target  string
	minor   int // of HTTP/1
	header  http.Header
	host    string // Host as it was sent
	hosts   int    // Host headers
	length  int64  // of the body, or chunked
	upgrade bool
	last    bool // the client wants no other request on this connection
	expects bool // 100-continue
}

// errHeadLong says that a head does not end within the limit.
var errHeadLong = errors.New("the head is too long")

// readHead reads up to the empty line that ends a head. At most one empty line may stand before it.
func readHead(r *bufio.Reader, limit int) ([]byte, error) {
	var raw []byte
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if len(raw)+len(line) > limit {
			return nil, errHeadLong
		}
		raw = append(raw, line...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return raw, err
		}
		whole := len(line) == len(raw) || raw[len(raw)-len(line)-1] == '\n'
		if whole && (string(line) == "\r\n" || string(line) == "\n") {
			if first {
				raw = raw[:0]
				continue
			}
			return raw, nil
		}
	}
}

// parseHead reads a head; why is set if it is not exactly what HTTP/1.1 says.
func parseHead(raw []byte) (h head, why string) {
	lines := strings.Split(string(raw), "\r\n")
	if n := len(lines); n < 3 || lines[n-1] != "" || lines[n-2] != "" {
		return h, "its headers do not end in an empty line"
	}
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			return h, "its headers have a line break or a zero byte where none may be"
		}
	}
	parts := strings.Split(lines[0], " ")
	if len(parts) != 3 || !token(parts[0]) || parts[1] == "" {
		return h, "its first line is no request"
	}
	h.method, h.target = parts[0], parts[1]
	switch parts[2] {
	case "HTTP/1.1":
		h.minor = 1
	case "HTTP/1.0":
		h.last = true
	default:
		return h, "it is neither HTTP/1.1 nor HTTP/1.0"
	}
	if why := h.parseFields(lines[1 : len(lines)-2]); why != "" {
		return h, why
	}
	return h, h.frame()
}

func (h *head) parseFields(lines []string) string {
	if len(lines) > headersMax {
		return "it has more than 128 headers"
	}
	h.header = http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !token(name) {
			return "one of its headers is malformed"
		}
		value = strings.Trim(value, " \t")
		for i := range len(value) {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return "one of its headers has a control character"
			}
		}
		if lower(name) == "host" {
			h.host = value
			h.hosts++
			continue
		}
		h.header.Add(name, value)
	}
	return ""
}

// frame finds out where the body ends; what says it twice is refused.
func (h *head) frame() string {
	for name := range h.header {
		switch strings.ReplaceAll(lower(name), "_", "-") {
		case "content-length", "transfer-encoding", "host", "connection", "upgrade":
			if strings.Contains(name, "_") {
				return "one of its headers is spelled with _ where a header that frames the request has -"
			}
		}
	}
	lengths, codings := h.header["Content-Length"], h.header["Transfer-Encoding"]
	switch {
	case len(lengths)+len(codings) > 1:
		return "its headers say more than once where its body ends"
	case len(codings) == 1:
		if h.minor == 0 || lower(codings[0]) != "chunked" {
			return "its Transfer-Encoding is not chunked"
		}
		h.length = chunked
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 63) // digits alone, without a sign
		if err != nil {
			return "its Content-Length is no number"
		}
		h.length = int64(n)
	}
	h.upgrade = len(h.header["Upgrade"]) > 0 || len(h.header["Http2-Settings"]) > 0
	for _, c := range append(h.header["Connection"], h.header["Proxy-Connection"]...) {
		for _, word := range strings.Split(lower(c), ",") {
			switch strings.TrimSpace(word) {
			case "close":
				h.last = true
			case "upgrade":
				h.upgrade = true
			}
		}
	}
	if expect := h.header["Expect"]; len(expect) > 0 {
		if len(expect) > 1 || lower(expect[0]) != "100-continue" {
			return "its Expect header asks for something other than 100-continue"
		}
		h.expects = h.minor == 1
	}
	return ""
}

// token reports whether s is a word of HTTP: a method, the name of a header.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// hopByHop are the headers that concern one connection only.
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Content-Length", "Expect", "Alt-Svc"}

// onTheWay are, with all that begin with X-Forwarded, the headers in which those on the way say for whom they ask, and what of. Up they
// would be an agent's word for where it is; down they name what is in others' networks.
var onTheWay = []string{"forwarded", "via", "x-host", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-originating-ip", "x-remote-ip", "x-remote-addr",
	"client-ip", "true-client-ip", "cf-connecting-ip", "fastly-client-ip", "x-proxyuser-ip"}

// overrides are headers by which some servers take another method or path than the request has.
var overrides = []string{"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url", "X-Original-Method"}

// endToEnd returns the headers that go on, without those of the connection and those that the Connection header names.
func endToEnd(from http.Header) http.Header {
	out := from.Clone()
	for _, c := range append(from["Connection"], from["Proxy-Connection"]...) {
		for _, name := range strings.Split(c, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	for name := range out {
		if n := strings.ReplaceAll(lower(name), "_", "-"); strings.HasPrefix(n, "x-forwarded") || oneOf(n, onTheWay) {
			delete(out, name)
		}
	}
	return out
}

// withoutOverrides drops what would undo the judgement of a method or path.
func withoutOverrides(h http.Header) {
	for name := range h {
		for _, o := range overrides {
			if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), o) {
				delete(h, name)
			}
		}
	}
}

// withoutCredentials drops every header that is, or could be read as, a credential, or says on whose account one is used.
func withoutCredentials(h http.Header) {
	for name := range h {
		n := strings.ReplaceAll(lower(name), "_", "-")
		for _, word := range []string{"authorization", "cookie", "api-key", "apikey", "token", "secret", "credential", "organization",
			"openai-project", "user-project", "fieldmask"} {
			if strings.Contains(n, word) {
				delete(h, name)
			}
		}
	}
}

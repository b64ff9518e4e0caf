package egress

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/pattern"
)

// A model's endpoint can do more than let a model speak: search the web, fetch a page or a picture, talk to a server that somebody
// names. Then the agent reaches from there what no door opens, with whatever words it likes. What is asked is read here, and what would
// do so is not sent to its end. No endpoint begins to work on half a request.

// Bounds of what is kept of a request: its depth, and the beginning of a name or a text.
const (
	askDepthMax = 512
	askTextMax  = 256
)

const (
	whyNoJSON   = "its request to the model is no JSON in UTF-8, so the host cannot read what it asks"
	whyAskDeep  = "its request to the model is nested too deeply for the host to read"
	whyPacked   = "its request to the model is compressed, so the host cannot read what it asks"
	whyLater    = "it asks the model to go on working after its answer, where the host cannot count the usage"
	whyAskReach = "it asks the model's endpoint to reach the network for it: "
)

// errAsked refuses a request by what it asks; its text is the reason.
type errAsked string

func (e errAsked) Error() string { return string(e) }

// asking reads along with what a model is asked, whatever its wire is: gateways translate one into another. It takes strict JSON alone, for what
// a lenient reader makes of anything else is not known. Names are compared without case, as the most lenient reader does, and
// each of several of one name counts.
type asking struct {
	why   string
	next  due
	stack []level
	word  []byte // of a number, true, false or null that is not over
	in    bool   // a text
	left  int    // in an escape: bytes to come
	code  rune   // of an escape by number
	text  []byte
	part  []byte // of a character of several bytes
}

// due is what may come next between texts.
type due int

const (
	dueObject due = iota // the one that is the whole
	dueValue
	dueFirst // a value, or the end of an array
	dueName
	dueMember // a name, or the end of an object
	dueColon
	dueMore // a comma, or the end of what lies around
	dueEnd
)

// level is an object or an array that is not over.
type level struct {
	array  bool
	listed bool   // it is an element of an array
	up     int    // the object that it lies in, arrays in between or not; -1: none
	under  string // the name that it has there
	key    string // of an object: the last name in it
}

// Write looks at more of a request and returns why it may not go on.
func (q *asking) Write(p []byte) string {
	for _, c := range p {
		if q.why != "" {
			break
		}
		if q.in {
			q.inText(c)
		} else {
			q.outside(c)
		}
	}
	return q.why
}

func (q *asking) outside(c byte) {
	if len(q.word) > 0 {
		if len(q.word) < wordMax && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '-' || c == '.') {
			q.word = append(q.word, c)
			return
		}
		if !json.Valid(q.word) {
			q.why = whyNoJSON
			return
		}
		q.word = nil
		q.done()
	}
	array := len(q.stack) > 0 && q.stack[len(q.stack)-1].array
	value := q.next == dueValue || q.next == dueFirst
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
	case c == '{' && (value || q.next == dueObject), c == '[' && value:
		q.value(c)
		q.push(c == '[')
	case c == '}' && (q.next == dueMember || q.next == dueMore && !array), c == ']' && (q.next == dueFirst || q.next == dueMore && array):
		q.stack = q.stack[:len(q.stack)-1]
		q.done()
	case c == ',' && q.next == dueMore:
		if q.next = dueName; array {
			q.next = dueValue
		}
	case c == ':' && q.next == dueColon:
		q.next = dueValue
	case c == '"' && (value || q.next == dueName || q.next == dueMember):
		if value {
			q.value(c)
		}
		q.in, q.left, q.text = true, 0, q.text[:0]
	case value && (c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n'):
		q.value(c)
		q.word = append(q.word, c)
	default:
		q.why = whyNoJSON
	}
}

// wordMax bounds a number.
const wordMax = 64

// done takes the end of a value.
func (q *asking) done() {
	if q.next = dueMore; len(q.stack) == 0 {
		q.next = dueEnd
	}
}

func (q *asking) push(array bool) {
	if len(q.stack) == askDepthMax {
		q.why = whyAskDeep
		return
	}
	l := level{array: array, up: -1}
	if n := len(q.stack); n > 0 {
		top := q.stack[n-1]
		if l.listed = top.array; top.array {
			l.up, l.under = top.up, top.under
		} else {
			l.up, l.under = n-1, top.key
		}
	}
	if q.next = dueMember; array {
		q.next = dueFirst
	}
	q.stack = append(q.stack, l)
}

// inText takes a byte of a text; of what is escaped the meaning counts.
func (q *asking) inText(c byte) {
	switch {
	case len(q.part) > 0 || c >= 0x80 && q.left == 0:
		if q.part = append(q.part, c); utf8.FullRune(q.part) {
			r, n := utf8.DecodeRune(q.part)
			if q.part = q.part[:0]; r == utf8.RuneError && n == 1 {
				q.why = whyNoJSON
				return
			}
			q.keep(r)
		}
	case q.left == 5: // behind a backslash
		if q.left, q.code = 0, 0; c == 'u' {
			q.left = 4
			return
		}
		at := strings.IndexByte(`bfnrt"\/`, c)
		if at < 0 {
			q.why = whyNoJSON
			return
		}
		c = "\b\f\n\r\t\"\\/"[at]
		q.keep(rune(c))
	case q.left > 0:
		if !isHex(c) {
			q.why = whyNoJSON
			return
		}
		q.code = q.code<<4 | rune(unhex(c))
		if q.left--; q.left == 0 {
			q.keep(q.code)
		}
	case c == '\\':
		q.left = 5
	case c == '"':
		q.in = false
		q.over(string(q.text))
	case c < ' ':
		q.why = whyNoJSON
	case len(q.text) < askTextMax:
		q.text = append(q.text, c)
	}
}

func (q *asking) keep(r rune) {
	if len(q.text) < askTextMax {
		q.text = utf8.AppendRune(q.text, r) // half a character stands for no letter that matters here
	}
}

// over takes a text that has ended: a name, or a value.
func (q *asking) over(text string) {
	n := len(q.stack) - 1
	if top := &q.stack[n]; q.next == dueName || q.next == dueMember {
		top.key, q.next = folded(text), dueColon
		q.named(*top)
		return
	}
	q.done()
	if top := q.stack[n]; !top.array {
		q.said(top, n == 0, text)
	} else if top.up >= 0 { // one of a list counts as what the list is
		o := q.stack[top.up]
		o.key = top.under
		q.said(o, top.up == 0, text)
	}
}

// folded writes a name in the letters that the most lenient reader takes it for.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\u017f':
			return 's'
		case '\u212a':
			return 'k'
		}
		return r
	}, lower(text))
}

var (
	// reachKeys stand in a tool of an endpoint's own that reaches out.
	reachKeys = []string{"googlesearch", "google_search", "googlesearchretrieval", "google_search_retrieval", "enterprisewebsearch", "enterprise_web_search",
		"urlcontext", "url_context", "googlemaps", "google_maps", "mcpservers", "mcp_servers", "server_url", "connector_id"}
	// reachTypes begin the types of such tools.
	reachTypes = []string{"mcp", "web_", "browser", "x_search", "image_search", "builtin_function", "openrouter:web", "url_context", "google_search"}
	// reachOptions switch such a tool on at the top of a request.
	reachOptions = []string{"web_search_options", "search_parameters", "plugins", "mcp_servers", "enable_search"}
	// mediaKeys name what an endpoint fetches for a model to look at.
	mediaKeys = append([]string{"image_url", "file_url", "video_url", "audio_url"}, thingKeys...)
	// thingKeys may hold the thing itself, in base64: that has no colon, and no format begins with what would be two slashes.
	thingKeys = []string{"file_data", "image", "video", "audio"}
	// searching are models that search by themselves, as a part of their names.
	searching = pattern.Of(`:online$|[-/]search(-|$)|deep-?research|(^|/)(sonar|compound)(-|$)`)
)

// named judges a name in an object.
func (q *asking) named(o level) {
	if o.under == "tools" && oneOf(o.key, reachKeys) ||
		o.key == "network_policy" && oneOf(o.under, []string{"container", "environment"}) && q.above(o) == "tools" {
		q.why = whyAskReach + "with a tool of its own"
	}
}

// above is the name of what an object's parent is under.
func (q *asking) above(o level) string {
	if o.up < 0 {
		return ""
	}
	return q.stack[o.up].under
}

// value judges the first byte of a value.
func (q *asking) value(c byte) {
	n := len(q.stack)
	if n == 0 {
		return
	}
	key, listed := q.stack[0].key, n == 2 && q.stack[1].array
	if n > 1 && !listed || !listed && strings.IndexByte("fn", c) >= 0 { // false, null
		return
	}
	switch {
	case key == "background" && !listed:
		q.why = whyLater
	case oneOf(key, reachOptions) && (listed || c != '['): // an empty list switches nothing on
		q.why = whyAskReach + "with a tool of its own"
	}
}

// said judges a text that an object has under a name; whole says that the object is the whole request.
func (q *asking) said(o level, whole bool, text string) {
	plain := folded(text)
	switch {
	case o.key == "type" && o.under == "tools":
		if slices.ContainsFunc(reachTypes, func(t string) bool { return strings.HasPrefix(plain, t) }) {
			q.why = whyAskReach + "with a tool of its own"
		}
	case whole && (o.key == "model" || o.key == "models"):
		if searching().MatchString(plain) {
			q.why = whyAskReach + "with a model that searches"
		}
	case q.fetched(o) && !strings.HasPrefix(plain, "data:") && (!oneOf(o.key, thingKeys) || strings.Contains(plain, ":") || strings.HasPrefix(plain, "//")):
		q.why = whyAskReach + "for a file or a picture by its URL"
	}
}

// fetched reports whether what an object has under its name is where an endpoint fetches something from. The arguments of a tool
// may have the same names: they lie elsewhere.
func (q *asking) fetched(o level) bool {
	holds := func(o level) bool {
		return o.under == "content" || o.under == "output" || o.under == "input_image_mask" || o.under == "input" && (o.listed || o.up == 0)
	}
	within := func() bool { return o.up >= 0 && holds(q.stack[o.up]) }
	switch {
	case oneOf(o.key, mediaKeys):
		return holds(o) || oneOf(o.under, []string{"file", "input_file", "input_audio"}) && within()
	case o.key == "url" && (oneOf(o.under, mediaKeys) || o.under == "source"):
		return within()
	case o.key == "fileuri" || o.key == "file_uri":
		return (o.under == "filedata" || o.under == "file_data") && q.above(o) == "parts"
	}
	return false
}

// readable judges whether what a request asks a model can be looked at.
func (h head) readable() string {
	for _, v := range h.values("content-encoding") {
		if lower(v) != "identity" {
			return whyPacked
		}
	}
	for _, v := range h.values("content-type") {
		kind, _, _ := strings.Cut(lower(v), ";")
		_, set, named := strings.Cut(strings.ReplaceAll(lower(v), " ", ""), "charset=")
		if strings.TrimSpace(kind) != "application/json" || named && strings.Trim(set, `"`) != "utf-8" {
			return whyNoJSON
		}
	}
	return ""
}

// values are those of a header, however its name is written: some servers take an underscore for a hyphen.
func (h head) values(name string) (all []string) {
	for is, v := range h.header {
		if strings.ReplaceAll(lower(is), "_", "-") == name {
			all = append(all, v...)
		}
	}
	return all
}

package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
)

// Codes of faults.
const (
	noMethod  = -32601
	needsAuth = -32000
)

const saidBytesMax = 400

// fault is an error in the agent's answer.
type fault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error is one line for a person.
func (f *fault) Error() string { return explained(f.Code, f.said()) }

// said is what the agent says of it: agents put it in many places.
func (f *fault) said() string {
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
		Error   string `json:"error"`
	}
	said := f.Message
	var text string
	if json.Unmarshal(f.Data, &text) == nil && text != "" {
		return joined(said, text)
	}
	_ = json.Unmarshal(f.Data, &data) // another shape says nothing more
	for _, more := range []string{data.Details, data.Message, data.Error} {
		if more != "" {
			return joined(said, more)
		}
	}
	return said
}

// joined says the more exact of two texts, or both.
func joined(message, details string) string {
	if message == "" || strings.EqualFold(strings.Trim(message, ". "), "internal error") || strings.Contains(details, message) {
		return details
	}
	return message + ": " + details
}

// nested is an error of a model's endpoint, as agents pass it on whole.
type nested struct {
	Error   json.RawMessage `json:"error"`
	Message string          `json:"message"`
}

// unwrapped takes the words out of an endpoint's error, if said is one or holds one.
func unwrapped(said string) string {
	for range 4 { // some wrap it several times
		at := strings.IndexByte(said, '{')
		if at < 0 {
			return said
		}
		var n nested
		if json.NewDecoder(strings.NewReader(said[at:])).Decode(&n) != nil {
			return said
		}
		var in nested
		var text string
		switch {
		case json.Unmarshal(n.Error, &in) == nil && in.Message != "":
			said = in.Message
		case json.Unmarshal(n.Error, &text) == nil && text != "":
			said = text
		case n.Message != "":
			said = n.Message
		default:
			return said
		}
	}
	return said
}

// status is one of HTTP that says what is wrong, at the beginning of what was said or after a word for it.
var status = pattern.Of(`(?i)(?:^|\bstatus:? (?:code:? )?|\berror:? |\bhttp |\bcode:? )(4\d\d|5\d\d)\b`)

// explained makes of an agent's error a line that says what is wrong, if that can be told.
func explained(code int, said string) string {
	if code < 400 || code > 599 {
		code = 0
		if m := status().FindStringSubmatch(said); m != nil {
			code, _ = strconv.Atoi(m[1])
		}
	}
	said = inert.Brief(unwrapped(said), saidBytesMax)
	low := strings.ToLower(said)
	what := "the agent gave up"
	switch {
	case code == 0 && strings.Contains(low, "authentication required"):
		what = "the agent asks for a login: it has no model with a key, or the model's endpoint refused the key"
	case code == 401 || strings.Contains(low, "invalid api key") || strings.Contains(low, "unauthorized"):
		what = "the model's endpoint refused the key (401)"
	case code == 429 || strings.Contains(low, "rate limit"):
		what = "the model's endpoint takes no more requests at the moment (429)"
	case strings.Contains(low, "fetch failed") || strings.Contains(low, "connection refused") || strings.Contains(low, "econnrefused") ||
		strings.Contains(low, "connection error") || strings.Contains(low, "unable to connect") || strings.Contains(low, "cannot connect"):
		what = "the model's endpoint cannot be reached"
	case code >= 500:
		what = fmt.Sprintf("the model's endpoint failed (%d)", code)
	case code >= 400:
		what = fmt.Sprintf("the model's endpoint refused the agent's request (%d)", code)
	}
	if said == "" {
		return what
	}
	return what + ": " + said
}

// login reports whether an error says that the agent wants to know who one is.
func wantsLogin(err error) bool {
	var f *fault
	return errors.As(err, &f) && (f.Code == needsAuth || strings.Contains(strings.ToLower(f.said()), "authentication required"))
}

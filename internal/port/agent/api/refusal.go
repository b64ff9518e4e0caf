package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"sallyport/internal/base/inert"
)

// refusal is an error that the endpoint answered.
type refusal struct {
	status int    // 0 = in the middle of a stream
	kind   string // in the vendor's words: overloaded_error, invalid_api_key
	text   string // one line
	retry  *bool  // what the endpoint says about asking again
}

const refusalBytesMax = 300

func (r refusal) Error() string {
	text := r.text
	if text == "" {
		text = r.kind
	}
	if r.status == 0 {
		return "the model answered with an error: " + text
	}
	why := http.StatusText(r.status)
	switch r.status {
	case http.StatusUnauthorized:
		why = "the key is missing or not valid"
	case http.StatusForbidden:
		why = "the key may not do this"
	case http.StatusTooManyRequests:
		why = "too many requests, or too large ones"
	}
	if text == "" {
		return fmt.Sprintf("the model answered %d, %s", r.status, why)
	}
	return fmt.Sprintf("the model answered %d, %s: %s", r.status, why, text)
}

// passing reports whether asking again may help.
func (r refusal) passing() bool {
	if r.retry != nil {
		return *r.retry
	}
	switch r.status {
	case 0:
		return !strings.Contains(r.kind, "invalid") && !strings.Contains(r.kind, "authentication") && !strings.Contains(r.kind, "permission")
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return r.status >= 500
}

// long reports whether the conversation is more than the model takes.
func (r refusal) long() bool {
	if r.status != http.StatusBadRequest && r.status != http.StatusRequestEntityTooLarge {
		return false
	}
	text := strings.ToLower(r.kind + " " + r.text)
	return r.status == http.StatusRequestEntityTooLarge || strings.Contains(text, "context") || strings.Contains(text, "too long") ||
		strings.Contains(text, "too large")
}

// refused reads an error in any vendor's shape.
func refused(status int, body []byte) refusal {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	r := refusal{status: status}
	if json.Unmarshal(body, &e) == nil {
		r = readRefusal(r, e.Error, e.Message)
	} else {
		r.text = string(body) // a proxy's words
	}
	r.text = inert.Brief(r.text, refusalBytesMax)
	return r
}

func (e *vendorError) fill(r refusal) refusal {
	r.kind, r.text = e.Type, e.Message
	if code, ok := e.Code.(string); ok && code != "" {
		r.kind = code
	}
	return r
}

// vendorError is what stands below "error".
type vendorError struct {
	Type    string `json:"type"`
	Code    any    `json:"code"` // a word, or a number
	Message string `json:"message"`
}

func readRefusal(r refusal, raw json.RawMessage, message string) refusal {
	var v vendorError
	var words string
	switch {
	case len(raw) > 0 && json.Unmarshal(raw, &v) == nil:
		return v.fill(r)
	case len(raw) > 0 && json.Unmarshal(raw, &words) == nil:
		r.text = words
	default:
		r.text = message
	}
	return r
}

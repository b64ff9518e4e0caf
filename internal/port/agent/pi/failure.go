package pi

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
)

const failureBytesMax = 300

// failures are what pi says when its model gave up, by what it means to a person; the first that fits counts.
var failures = []struct {
	has  func() *regexp.Regexp
	says string
}{
	{pattern.Of(`(?i)^401\b|unauthorized|authentication_error|invalid.{0,4}api.?key`), "the model's endpoint refuses the key"},
	{pattern.Of(`(?i)^403\b|permission_error`), "the model's endpoint refuses this request"},
	{pattern.Of(`(?i)^429\b|rate.?limit|too many requests|quota`),
		"the model's endpoint takes no more requests at the moment: there were too many, or a budget is used up"},
	{pattern.Of(`(?i)^404\b|model.{0,80}(not.found|does not exist|not supported)`),
		"the model's endpoint does not know this model (another is chosen with --model) or this address"},
	{pattern.Of(`(?i)^413\b|prompt is too long|context.{0,20}(window|length|overflow)`), "the conversation is too long for the model"},
	{pattern.Of(`(?i)connection error|fetch failed|econnrefused|connect.*refused`), "the model's endpoint cannot be reached"},
	{pattern.Of(`(?i)^terminated|socket hang up|ended without|stream ended|other side closed`), "the model's endpoint broke off its answer"},
	{pattern.Of(`(?i)^5\d\d\b|overloaded|server.?error`), "the model's endpoint has failed"},
}

// explain is what pi says of a turn that failed, as one line for a person.
func explain(said string) string {
	said = strings.TrimSpace(said)
	text := plain(said)
	for _, f := range failures {
		if f.has().MatchString(said) {
			if text == "" {
				return f.says
			}
			return f.says + ": " + text
		}
	}
	if text == "" {
		return "the model failed and did not say why"
	}
	return "the model failed: " + text
}

func failed(said string) error { return errors.New(explain(said)) }

// plain is an error's text without the JSON that some endpoints wrap it in.
func plain(said string) string {
	at := strings.IndexByte(said, '{')
	if at < 0 {
		return inert.Brief(said, failureBytesMax)
	}
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal([]byte(said[at:]), &body) != nil {
		return inert.Brief(said, failureBytesMax)
	}
	text := body.Message
	var inner struct {
		Message string `json:"message"`
	}
	var words string
	switch {
	case json.Unmarshal(body.Error, &inner) == nil && inner.Message != "":
		text = inner.Message
	case json.Unmarshal(body.Error, &words) == nil && words != "":
		text = words
	}
	if text == "" {
		return inert.Brief(said, failureBytesMax)
	}
	return inert.Brief(strings.TrimSpace(said[:at])+" "+text, failureBytesMax)
}

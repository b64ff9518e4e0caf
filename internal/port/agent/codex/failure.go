package codex

import (
	"regexp"
	"strings"

	"sallyport/internal/base/pattern"
)

// failures are what codex says when its model gave up, by what it means to a person; the first that fits counts.
var failures = []struct {
	has  func() *regexp.Regexp
	says string
}{
	{pattern.Of(`(?i)\b401\b|unauthorized|invalid.api.key`), "the model's endpoint refuses the key"},
	{pattern.Of(`(?i)\b403\b|forbidden`), "the model's endpoint refuses this request"},
	{pattern.Of(`(?i)\b429\b|rate.limit|quota`), "the model's endpoint takes no more requests at the moment: there were too many, or a budget is used up"},
	{pattern.Of(`(?i)model.{0,80}(not.found|does.not.exist|not.supported)|\b404\b`), "the model's endpoint does not know this model or address"},
	{pattern.Of(`(?i)error sending request|connection (failed|refused)|network`), "the model's endpoint cannot be reached"},
	{pattern.Of(`(?i)high demand|\b5\d\d\b|overloaded`), "the model's endpoint has failed"},
	{pattern.Of(`(?i)stream disconnected|closed before`), "the model's endpoint broke off its answers"},
}

// address is a URL in a message: inside it is that of the way out, which tells a person nothing.
var address = pattern.Of(`[,;]?\s*\(?(?:url: |for url )?\(?https?://127\.0\.0\.1[^\s),]*\)?\)?`)

// explain is what codex says of a turn that failed, for a person.
func explain(said string) string {
	said = strings.TrimSpace(address().ReplaceAllString(said, ""))
	for _, f := range failures {
		if f.has().MatchString(said) {
			return f.says + ": " + said
		}
	}
	return said
}

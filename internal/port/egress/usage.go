package egress

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Languages of a model's endpoint, as package agent names them.
const (
	wireResponses = "responses"
	wireChat      = "chat"
	wireMessages  = "messages"
	wireGemini    = "gemini"
)

// count is a number of tokens as an endpoint may write it.
type count int64

const tokensMax = 1e12

// UnmarshalJSON takes any number, and nothing else for 0: one odd field must not hide the others.
func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(n > 0) {
		n = 0
	}
	*c = count(min(n, tokensMax))
	return nil
}

// text is a string, or nothing where something else stands.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// tokens are the fields of usage of the three wires that call it usage.
type tokens struct {
	Input        count `json:"input_tokens"`  // responses: with what is cached; messages: without
	Output       count `json:"output_tokens"` // responses, messages
	InputDetails struct {
		Cached count `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	CacheCreated  count `json:"cache_creation_input_tokens"`
	CacheRead     count `json:"cache_read_input_tokens"`
	Prompt        count `json:"prompt_tokens"` // chat
	Completion    count `json:"completion_tokens"`
	PromptDetails struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// part is what an answer, or one event of it, says of itself in any of the four wires.
type part struct {
	Type  text    `json:"type"`
	Model text    `json:"model"`
	Usage *tokens `json:"usage"`
	Inner *part   `json:"response"` // responses: in an event
	Start *part   `json:"message"`  // messages: in message_start

	Version  text `json:"modelVersion"`
	Metadata *struct {
		Prompt     count `json:"promptTokenCount"` // with what is cached
		Cached     count `json:"cachedContentTokenCount"`
		Tools      count `json:"toolUsePromptTokenCount"`
		Candidates count `json:"candidatesTokenCount"`
		Thoughts   count `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	Candidates []struct {
		Finish text `json:"finishReason"`
	} `json:"candidates"`
}

// tally is what is known of one request's usage so far.
type tally struct {
	Usage
	some  bool // something is known
	final bool // and nothing that comes will change it
}

// add takes in what a part says. Later parts are more right than earlier ones.
func (t *tally) add(wire string, p part, stream bool) {
	if m := string(p.Model + p.Version); m != "" {
		t.Model = cut(m, 128)
	}
	switch {
	case p.Inner != nil:
		t.add(wire, *p.Inner, stream)
		t.final = t.final && (!stream || oneOf(string(p.Type), responseEnds)) // what stands in its first event is no count yet
		return
	case p.Start != nil:
		t.add(wire, *p.Start, stream)
		return
	case wire == wireGemini:
		t.gemini(p, stream)
		return
	case p.Usage == nil:
		return
	}
	u := p.Usage
	t.some, t.final = true, true
	switch wire {
	case wireResponses:
		t.set(u.Input, u.InputDetails.Cached, u.Output)
	case wireChat:
		t.set(u.Prompt, u.PromptDetails.Cached, u.Completion)
	case wireMessages:
		if sum := int64(u.Input + u.CacheCreated); sum > 0 {
			t.Input = sum
		}
		t.Cached, t.Output = max(t.Cached, int64(u.CacheRead)), max(t.Output, int64(u.Output))
		t.final = !stream || p.Type == "message_delta"
	}
}

// responseEnds are the events with which a stream of responses ends.
var responseEnds = []string{"response.completed", "response.failed", "response.incomplete"}

// ends reports whether an event is the last of a stream. Some endpoints count as they go: only then is what they say whole. A stream of
// gemini's has no such event.
func ends(wire string, p part, data []byte) bool {
	switch wire {
	case wireResponses:
		return oneOf(string(p.Type), responseEnds)
	case wireChat:
		return strings.TrimSpace(string(data)) == "[DONE]"
	case wireMessages:
		return p.Type == "message_stop"
	}
	return false
}

func (t *tally) gemini(p part, stream bool) {
	m := p.Metadata
	if m == nil {
		return
	}
	t.set(m.Prompt+m.Tools, m.Cached, m.Candidates+m.Thoughts)
	t.some, t.final = true, !stream || len(p.Candidates) > 0 && p.Candidates[0].Finish != ""
}

func (t *tally) set(input, cached, output count) {
	cached = min(cached, input)
	t.Input, t.Cached, t.Output = int64(input-cached), int64(cached), int64(output)
}

// Estimates: what a token has of text, and how fast a model writes.
const (
	bytesPerToken   = 4
	tokensPerSecond = 100
	workSoonest     = 5 * time.Second // a refusal that comes sooner cost nothing
)

// estimate fills what an answer did not say from its bytes.
func (t *tally) estimate(asked, said int64) {
	t.Unknown = true
	if t.Input+t.Cached == 0 {
		t.Input = max(1, asked/bytesPerToken)
	}
	t.Output = max(1, t.Output, said/bytesPerToken)
}

// free reports whether a request to this path only counts what another would use. Every other makes a model work, so that an answer without
// usage is an unknown one and not none.
func free(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return last == "count_tokens" || last == "input_tokens" || strings.HasSuffix(last, ":countTokens")
}

// workedOn are answers after which a model may have worked all the same, if they took long enough.
func workedOn(status int) bool { return status == 408 || status == 499 || status >= 500 }

// textKeys hold a model's words in the events of the four wires.
var textKeys = []string{"content", "text", "delta", "arguments", "partial_json", "thinking", "reasoning", "reasoning_content"}

// words counts the bytes of a model's words in an event.
func words(v any, key string) (n int64) {
	switch v := v.(type) {
	case string:
		if oneOf(key, textKeys) {
			return int64(len(v))
		}
	case []any:
		for _, e := range v {
			n += words(e, key)
		}
	case map[string]any:
		for k, e := range v {
			n += words(e, k)
		}
	}
	return n
}

func cut(s string, limit int) string {
	return s[:min(len(s), limit)]
}

package acp

import (
	"encoding/json"
	"slices"

	"sallyport/internal/base/inert"
)

// ask answers what the agent asks: permissions, and for words in the middle of a turn. Files and terminals of its client it has none.
func (t *talk) ask(method string, params json.RawMessage) (any, *fault, bool) {
	switch {
	case method == "session/request_permission":
		var r request
		_ = json.Unmarshal(params, &r) // what is not there is not allowed
		return map[string]any{"outcome": t.decide(r)}, nil, true
	case method == "craft/drainMidTurnQueue" && t.dialect.drains:
		texts := t.withdraw()
		if texts == nil {
			texts = []string{}
		}
		return map[string]any{"messages": texts, "hasQueuedPrompt": false}, nil, true
	}
	return nil, nil, false
}

// decide answers by the kind of the tool call: the first option that holds for this once. An option that holds for longer is never
// taken: some agents write it down among the files that they work on.
func (t *talk) decide(r request) map[string]any {
	cancelled := map[string]any{"outcome": "cancelled"}
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.turn
	if u == nil || u.cancelled {
		return cancelled
	}
	c := u.call(r.Call)
	kind := c.kind
	allowed := slices.Contains(kinds, kind) && !slices.Contains(t.at.Denied, kind)
	t.shown(u, c, r.Call)
	if allowed {
		if id, ok := once(r.Options, "allow_once"); ok {
			return map[string]any{"outcome": "selected", "optionId": id}
		}
	}
	c.refused, u.refused = true, true
	t.show.Note("refused: " + c.kind + " " + inert.Brief(c.title, saidBytesMax))
	t.show.Ended(r.Call.Call, true)
	if id, ok := once(r.Options, "reject_once"); ok {
		return map[string]any{"outcome": "selected", "optionId": id}
	}
	return cancelled
}

func once(options []option, kind string) (string, bool) {
	for _, o := range options {
		if o.Kind == kind && o.ID != "" && len(o.ID) <= idMax {
			return o.ID, true
		}
	}
	return "", false
}

package api

import (
	"encoding/json"
	"fmt"
	"strings"
)

// What a model is reminded of. Bytes stand for tokens: about four make one.
const (
	contextBytesMax = 480 << 10
	contextBytesMin = 24 << 10 // less says nothing
	contextLast     = 6        // entries that stay whole as long as anything else is left
	shortBytes      = 600      // what stays of a long text
)

// size is what an entry counts.
func (e entry) size() int {
	n := len(e.Text) + 40
	for _, c := range e.Calls {
		n += len(c.Args) + len(c.Name) + 40
	}
	for _, raw := range e.Opaque {
		n += len(raw)
	}
	return n
}

func sizeOf(said []entry) (n int) {
	for _, e := range said {
		n += e.size()
	}
	return n
}

// fit shortens a conversation that is larger than budget to three quarters of it, oldest first: results of tools, then arguments and
// reasoning of calls, then words; then whole exchanges go. So a vendor that remembers a beginning finds the same one many times.
// The first words, which are the request, stay.
func fit(said []entry, budget int) []entry {
	if sizeOf(said) <= budget {
		return said
	}
	goal := budget * 3 / 4
	over := sizeOf(said) - goal
	shorten := func(last int, one func(e *entry)) {
		for i := range said {
			if over <= 0 || i >= len(said)-last {
				return
			}
			before := said[i].size()
			one(&said[i])
			over -= before - said[i].size()
		}
	}
	shorten(contextLast, (*entry).forgetResult)
	shorten(contextLast, (*entry).forgetCalls)
	shorten(contextLast, (*entry).forgetWords)
	if over > 0 {
		said, over = dropOldest(said, over)
	}
	shorten(0, (*entry).forgetResult)
	shorten(0, (*entry).forgetCalls)
	shorten(0, (*entry).forgetWords)
	return said
}

func (e *entry) forgetResult() {
	if e.Role == roleTool && len(e.Text) > shortBytes {
		e.Text = short(e.Text)
	}
}

// forgetCalls shortens the long texts among arguments; they stay what they were meant to be.
func (e *entry) forgetCalls() {
	if e.Role != roleAssistant {
		return
	}
	e.Opaque = nil
	for i, c := range e.Calls {
		if len(c.Args) <= shortBytes {
			continue
		}
		var args map[string]any
		if json.Unmarshal([]byte(c.Args), &args) != nil {
			e.Calls[i].Args = "{}"
			continue
		}
		for name, v := range args {
			if s, ok := v.(string); ok && len(s) > shortBytes {
				args[name] = short(s)
			}
		}
		raw, err := json.Marshal(args)
		if err != nil || len(raw) > 4*shortBytes {
			raw = []byte("{}")
		}
		e.Calls[i].Args = string(raw)
	}
}

func (e *entry) forgetWords() {
	if e.Role != roleTool && len(e.Text) > 4*shortBytes {
		e.Text = short(e.Text)
	}
}

// short is the beginning of a text and how much was left out.
func short(s string) string {
	return fmt.Sprintf("%s\n(%d bytes were left out here to save room)", strings.ToValidUTF8(s[:shortBytes/2], ""), len(s)-shortBytes/2)
}

// dropOldest leaves out whole exchanges after the first words: calls never lose their results.
func dropOldest(said []entry, over int) ([]entry, int) {
	end := 1
	for end < len(said)-contextLast && over > 0 {
		over -= said[end].size()
		end++
	}
	for end < len(said) && said[end].Role == roleTool {
		over -= said[end].size()
		end++
	}
	if end == 1 {
		return said, over
	}
	gap := entry{Role: roleUser, Text: "(Part of this conversation was left out here to save room.)"}
	out := append([]entry{said[0], gap}, said[end:]...)
	return out, over
}

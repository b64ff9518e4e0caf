package api

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"sallyport/internal/port/agent"
)

// The conversation lies in the agent's home folder. The agent's own commands can write there: it says nothing that the agent could not
// say anyway.
const (
	keptDir      = ".sallyport"
	keptName     = "api.json"
	keptBytesMax = 32 << 20
)

// kept is a conversation as it is kept.
type kept struct {
	Session string     `json:"session"`
	Wire    agent.Wire `json:"wire"`
	Model   string     `json:"model,omitempty"`
	Said    []entry    `json:"said"`
}

func newKept(w agent.Wire) kept {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // it never fails
	return kept{Session: "api-" + hex.EncodeToString(raw), Wire: w}
}

// load returns the conversation named last. Errors: os.ErrNotExist if there is none of that name.
func load(home, last string) (k kept, err error) {
	raw, err := agent.ReadOwn(filepath.Join(home, keptDir, keptName), keptBytesMax)
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(raw, &k); err != nil {
		return kept{}, err
	}
	if k.Session == "" || k.Session != last {
		return kept{}, os.ErrNotExist
	}
	return k, k.check()
}

// check holds what was read to what was written.
func (k kept) check() error {
	for _, e := range k.Said {
		if e.Role != roleUser && e.Role != roleAssistant && e.Role != roleTool {
			return errors.New("the file holds a message of an unknown role")
		}
	}
	return nil
}

// save replaces what is kept.
func (k kept) save(home string) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return agent.WriteOwn(filepath.Join(home, keptDir, keptName), raw)
}

// interrupted is the result of a call that has none.
const interrupted = "This call was interrupted before it ended. Some of its work may have been done: look before you go on."

// mend gives every call a result: a wire takes no conversation in which one is missing. A result of no call goes.
func mend(said []entry) []entry {
	var out []entry
	var open []call
	settle := func() {
		for _, c := range open {
			out = append(out, entry{Role: roleTool, ID: c.ID, Text: interrupted, Failed: true})
		}
		open = nil
	}
	for _, e := range said {
		if e.Role == roleTool {
			for i, c := range open {
				if c.ID == e.ID {
					out = append(out, e)
					open = append(open[:i:i], open[i+1:]...)
					break
				}
			}
			continue
		}
		settle()
		out = append(out, e)
		open = e.Calls
	}
	settle()
	return out
}

package acp

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// version is the one of the protocol that is spoken here.
const version = 1

// kinds are those of tool calls in the protocol.
var kinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}

// greeting is the answer to initialize.
type greeting struct {
	Version int `json:"protocolVersion"`
	Agent   struct {
		Loads    bool `json:"loadSession"`
		Sessions struct {
			Resume *struct{} `json:"resume"`
			Title  *struct{} `json:"title"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Logins []login `json:"authMethods"`
	Meta   struct {
		Steering struct {
			Supported bool `json:"supported"`
		} `json:"steering"`
	} `json:"_meta"`
}

// login is a way to say who one is.
type login struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// opened is the answer to session/new, session/load and session/resume.
type opened struct {
	ID     string `json:"sessionId"`
	Models struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
	Options []struct {
		ID       string `json:"id"`
		Category string `json:"category"`
	} `json:"configOptions"`
}

// update is what a session/update tells; which fields count depends on its Type.
type update struct {
	Type      string          `json:"sessionUpdate"`
	Content   json.RawMessage `json:"content"`
	MessageID string          `json:"messageId"`
	Call      string          `json:"toolCallId"`
	Kind      string          `json:"kind"`
	Title     string          `json:"title"`
	Status    string          `json:"status"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Entries []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`
	Input json.RawMessage `json:"rawInput"`
	Meta  struct {
		Claude struct {
			Tool string `json:"toolName"`
		} `json:"claudeCode"`
		Codex struct {
			Thread struct {
				Type string `json:"type"`
			} `json:"threadStatus"`
			Error struct {
				Message   string `json:"message"`
				WillRetry bool   `json:"willRetry"`
			} `json:"error"`
		} `json:"codex"`
	} `json:"_meta"`
}

// text is what a chunk of a message says; "" for pictures and the like.
func (u update) text() string {
	var block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if bytes.HasPrefix(u.Content, []byte("{")) && json.Unmarshal(u.Content, &block) == nil && block.Type == "text" {
		return block.Text
	}
	return ""
}

// timeout is how long a tool call says that it may take: agents whose commands have a limit give it in milliseconds.
func (u update) timeout() time.Duration {
	var input struct {
		Timeout float64 `json:"timeout"`
	}
	if !bytes.HasPrefix(u.Input, []byte("{")) || json.Unmarshal(u.Input, &input) != nil || !(input.Timeout > 0 && input.Timeout < 1e12) {
		return 0
	}
	return time.Duration(input.Timeout * float64(time.Millisecond))
}

// path is the first file that a tool call names, below dir if it lies there.
func (u update) path(dir string) string {
	path := ""
	if len(u.Locations) > 0 {
		path = u.Locations[0].Path
	}
	var parts []struct {
		Path string `json:"path"`
	}
	if path == "" && bytes.HasPrefix(u.Content, []byte("[")) {
		_ = json.Unmarshal(u.Content, &parts) // content of another shape names none
		for _, part := range parts {
			if path == "" {
				path = part.Path
			}
		}
	}
	return strings.TrimPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// request is what session/request_permission asks.
type request struct {
	Session string `json:"sessionId"`
	Call    update `json:"toolCall"`
	Options []option
}

type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// turnOver is the answer to session/prompt.
type turnOver struct {
	Reason string          `json:"stopReason"`
	Usage  json.RawMessage `json:"usage"`
}

// words is a prompt of text.
func words(session, text string) map[string]any {
	return map[string]any{"sessionId": session, "prompt": []map[string]string{{"type": "text", "text": text}}}
}

package modeltest

import (
	"cmp"
	"fmt"
	"net/http"

	"sallyport/internal/port/agent"
)

// kinds are what each vendor calls an error.
var kinds = map[int]struct{ openai, code, anthropic, google string }{
	400: {"invalid_request_error", "invalid_value", "invalid_request_error", "INVALID_ARGUMENT"},
	401: {"invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"},
	403: {"permission_error", "forbidden", "permission_error", "PERMISSION_DENIED"},
	404: {"invalid_request_error", "model_not_found", "not_found_error", "NOT_FOUND"},
	429: {"rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"},
	500: {"server_error", "server_error", "api_error", "INTERNAL"},
	503: {"server_error", "server_error", "api_error", "UNAVAILABLE"},
	529: {"server_error", "server_error", "overloaded_error", "UNAVAILABLE"},
}

// refuse answers with an error in the shape of its wire.
func refuse(w http.ResponseWriter, wire agent.Wire, turn Turn) {
	kind, ok := kinds[turn.Status]
	if !ok {
		kind = kinds[500]
	}
	text := cmp.Or(turn.Message, fmt.Sprintf("the test's model answers %d", turn.Status))
	if turn.RetryAfter != "" {
		w.Header().Set("Retry-After", turn.RetryAfter)
	}
	if turn.Final {
		w.Header().Set("X-Should-Retry", "false")
	}
	var body object
	switch wire {
	case agent.Messages:
		body = object{"type": "error", "error": object{"type": kind.anthropic, "message": text}, "request_id": "req_test"}
	case agent.Gemini:
		body = object{"error": object{"code": turn.Status, "message": text, "status": kind.google}}
	default:
		body = object{"error": object{"message": text, "type": kind.openai, "code": kind.code, "param": nil}}
	}
	reply(w, turn.Status, body)
}

// other answers what is for no model: lists of models, counts of tokens, and what is not there.
func (s *Server) other(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	models := s.models
	allowed := s.header == "" || req.Header.Get(s.header) == s.value
	s.mu.Unlock()
	path := req.URL.Path
	if m := geminiCall.FindStringSubmatch(path); m != nil {
		reply(w, http.StatusOK, object{"totalTokens": 100})
		return
	}
	if len(path) > 13 && path[len(path)-13:] == "/count_tokens" {
		reply(w, http.StatusOK, object{"input_tokens": 100})
		return
	}
	list, one := modelsPath(path)
	switch {
	case req.Method != http.MethodGet || !list && one == "":
		refuse(w, agent.Chat, Turn{Status: http.StatusNotFound, Message: "there is nothing here"})
	case !allowed:
		refuse(w, agent.Chat, Turn{Status: http.StatusUnauthorized, Message: "the key is not valid"})
	case list:
		reply(w, http.StatusOK, modelList(models))
	default:
		for _, name := range models {
			if name == one {
				reply(w, http.StatusOK, modelEntry(name))
				return
			}
		}
		refuse(w, agent.Chat, Turn{Status: http.StatusNotFound, Message: "there is no such model"})
	}
}

package agent

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Wires are the languages of endpoints there are.
var Wires = []Wire{Responses, Chat, Messages, Gemini}

// endpoints are where each wire is spoken by the company it comes from. Keys are named by who uses one. Lists and batches that an
// endpoint keeps for its key are the owner's, and no agent's.
var endpoints = map[Wire]Endpoint{
	Responses: {Wire: Responses, Base: "https://api.openai.com/v1", Header: "Authorization", Prefix: "Bearer ", Paths: []string{"/responses", "/models"},
		Only: []string{"POST /responses", "POST /responses/compact", "POST /responses/input_tokens", "GET /models", "GET /models/*"}},
	Chat: {Wire: Chat, Base: "https://api.openai.com/v1", Header: "Authorization", Prefix: "Bearer ", Paths: []string{"/chat/completions", "/models"},
		Only: []string{"POST /chat/completions", "GET /models", "GET /models/*"}},
	Messages: {Wire: Messages, Base: "https://api.anthropic.com", Header: "x-api-key", Paths: []string{"/v1/messages", "/v1/models"},
		Only: []string{"POST /v1/messages", "POST /v1/messages/count_tokens", "GET /v1/models", "GET /v1/models/*"}},
	Gemini: {Wire: Gemini, Base: "https://generativelanguage.googleapis.com", Header: "x-goog-api-key", Paths: []string{"/v1beta/models", "/v1/models"},
		Only: []string{
			"POST /v1beta/models/*:generateContent", "POST /v1beta/models/*:streamGenerateContent", "POST /v1beta/models/*:countTokens",
			"GET /v1beta/models", "GET /v1beta/models/*",
			"POST /v1/models/*:generateContent", "POST /v1/models/*:streamGenerateContent", "POST /v1/models/*:countTokens",
			"GET /v1/models", "GET /v1/models/*",
		}},
}

// at returns the endpoint of a wire with the names by which people keep its key and, if they moved it, its URL.
func (w Wire) at(bases []string, keys ...string) Endpoint {
	e := endpoints[w]
	e.Paths, e.Keys, e.Bases = slices.Clone(e.Paths), keys, bases
	return e
}

// Local reports whether a URL names this machine: a model there may be asked without a key.
func Local(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

package agent

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Wires are the languages of endpoints there are.
var Wires = []Wire{Responses, Chat, Messages, Gemini}

// endpoints are where each wire is spoken by the company it comes from. Keys are named by who uses one.
var endpoints = map[Wire]Endpoint{
	Responses: {Wire: Responses, Base: "https://api.openai.com/v1", Header: "Authorization", Prefix: "Bearer ", Paths: []string{"/responses", "/models"}},
	Chat:      {Wire: Chat, Base: "https://api.openai.com/v1", Header: "Authorization", Prefix: "Bearer ", Paths: []string{"/chat/completions", "/models"}},
	Messages:  {Wire: Messages, Base: "https://api.anthropic.com", Header: "x-api-key", Paths: []string{"/v1/messages", "/v1/models"}},
	Gemini:    {Wire: Gemini, Base: "https://generativelanguage.googleapis.com", Header: "x-goog-api-key", Paths: []string{"/v1beta/models", "/v1/models"}},
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

// CheckBase refuses a URL that cannot be the base of an endpoint. The error is one clause, without the URL: a key may stand in it.
func CheckBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || len(base) > BaseBytesMax || strings.ContainsFunc(base, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errBase("it is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return errBase("it must begin with https:// or http://")
	case u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return errBase("it names no host")
	case u.User != nil:
		return errBase("a user name or password cannot stand in it; the key is named by key:")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(base, "#"):
		return errBase("nothing can follow its path: no ? and no #")
	case strings.HasSuffix(base, "/"):
		return errBase("it must not end in a slash")
	case u.Path != "" && slices.ContainsFunc(strings.Split(u.EscapedPath(), "/"), dots):
		return errBase("its path holds . or ..")
	case u.Scheme == "http" && !Local(base) && !private(u.Hostname()):
		return errBase("http:// is taken only for this machine and private addresses: the key would cross the net in plain text")
	}
	return nil
}

// BaseBytesMax bounds the URL of an endpoint.
const BaseBytesMax = 2048

type errBase string

func (e errBase) Error() string { return string(e) }

func dots(segment string) bool {
	plain, err := url.PathUnescape(segment)
	return err != nil || plain == "." || plain == ".."
}

// private reports whether a host is an address of a private network, or a name that only such a network has.
func private(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsPrivate()
	}
	return !strings.Contains(host, ".")
}

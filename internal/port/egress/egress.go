package egress

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"net/url"
	"time"

	"sallyport/internal/rule/secret"
)

// Rule lets a session reach one name, or all names below one.
type Rule struct {
	Host    string   `json:"host"`              // registry.npmjs.org, or *.example.org for what is below it
	Ports   []uint16 `json:"ports,omitempty"`   // empty: 443, and 80 for plain HTTP
	Methods []string `json:"methods,omitempty"` // empty: all. With methods or paths the host looks into TLS, with an authority of its own
	Paths   []string `json:"paths,omitempty"`   // prefixes, whole segments
	From    string   `json:"from,omitempty"`    // where it is written: sallyport.yaml, --egress, registries
}

// Inspected reports whether what goes to this host has to be looked into.
func (r Rule) Inspected() bool { return len(r.Methods)+len(r.Paths) > 0 }

// Route is an endpoint with a credential.
type Route struct {
	Name   string       // first part of the path inside: model
	Base   *url.URL     // as the owner wrote it; what stands behind Name is added to its path
	Header string       // that carries the credential; "" = none is added
	Value  secret.Value // of it, prefix included
	// Credential, if there is one, says Value anew for each request.
	Credential Credential
	Methods    []string // GET, POST
	Paths      []string // prefixes below Base, whole segments
	Only       []string // if there are any, of those only these: a method and a whole path, such as "GET /models/*"; see only
	Wire       string   // how the usage of a model stands in an answer: responses, chat, messages, gemini; "" = it is not counted
	// Admit is asked before each request; an error is the answer, such as a budget that is used up. What it returns is called once
	// the request is over and Used was told of it. It may wait, as long as ctx lasts. May be nil.
	Admit func(ctx context.Context) (over func(), err error)
	// Used is told what a request has used, once it is known and before the agent is told the end of its answer. May be nil.
	// Requests run side by side: it is called from several goroutines.
	Used func(Usage)
	// Waits is told for how long the endpoint bids wait, where it limits rates (Retry-After). May be nil.
	Waits func(time.Duration)
	// Moved is told that a byte of a request has moved, either way, at most once in MovedEvery for each. May be nil.
	Moved func()
	Idle  time.Duration // in the place of the door's; 0 = that
}

// MovedEvery is how often it is told that a request moves.
const MovedEvery = time.Second

// Credential is one that changes while a door is open, such as the token of a login.
type Credential interface {
	// Present returns Route.Value for a request, and more headers that go with it. An error is the answer: a sentence for a person.
	Present(ctx context.Context) (value secret.Value, more map[string]string, err error)
	// Refused is told that the endpoint took a value no more (401). Nil says that there is another now, and whoever asked may ask again.
	Refused(ctx context.Context, value secret.Value) error
}

// Usage is what one request to a model has used, as the model's endpoint said.
type Usage struct {
	At     time.Time `json:"at"`
	Model  string    `json:"model"`
	Input  int64     `json:"input_tokens"` // without Cached
	Cached int64     `json:"cached_tokens"`
	Output int64     `json:"output_tokens"` // thinking included
	// Unknown says that the answer did not tell, or was cut, or that a gateway gave up: then Input and Output are estimates from its bytes
	// and its time, never less than 1.
	Unknown bool `json:"unknown,omitempty"`
}

// Verdict says how a request was met.
type Verdict string

const (
	Allowed Verdict = "allowed"
	Refused Verdict = "refused" // a rule, or the absence of one
	Failed  Verdict = "failed"  // it was allowed and did not work
)

// Decision is one request and what became of it. Its texts are an agent's and must be escaped where they are shown; a
// query and a user name are never in it.
type Decision struct {
	At      time.Time `json:"at"`
	Method  string    `json:"method"` // CONNECT, GET
	Host    string    `json:"host"`   // as asked, at most 253 bytes
	Port    uint16    `json:"port"`
	Path    string    `json:"path,omitempty"`  // where it can be seen, without a query, at most 256 bytes
	Route   string    `json:"route,omitempty"` // of a route
	Verdict Verdict   `json:"verdict"`
	Why     string    `json:"why,omitempty"`  // one clause, for a person
	Rule    string    `json:"rule,omitempty"` // that allowed it
}

// Config says what a Door lets through.
type Config struct {
	Rules   []Rule
	Routes  []Route
	CA      *Authority     // for Rules that are Inspected; nil: such rules refuse
	Decided func(Decision) // is told each decision once, one at a time; may be nil
	Limits  Limits
	// Resolve asks for a name's addresses; nil = the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial opens a connection to an address; nil = the system's.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Roots verify what is asked over TLS; nil = the system's.
	Roots Roots
}

// Limits bound a Door; zero is the default.
type Limits struct {
	Conns        int           // at once; default 64
	HeaderBytes  int           // of a request; default 64 KiB
	RequestBytes int64         // of one request's body, and of what goes up one tunnel; default 64 MiB
	SentBytes    int64         // up, of a session in all, what its routes are asked aside; default 1 GiB
	HeaderTime   time.Duration // until a request's head, or a client's hello, is there; default 10 s
	DialTime     time.Duration // default 10 s
	Idle         time.Duration // without a byte either way; default 10 min: a session that is paused keeps its tunnels so long
	Hosts        int           // names that one session may ask for; default 1000
}

// Roots is where trusted authorities come from.
type Roots = *x509.CertPool

package api

import (
	"fmt"
	"io"
	"log/slog"
)

// Key is the plain text of a key as it crosses the socket, once, from a person's environment to the daemon's memory. No print or
// log shows it; JSON does, for that is how it crosses.
type Key string

const hidden = "[secret]"

func (Key) String() string             { return hidden }
func (Key) GoString() string           { return hidden }
func (Key) LogValue() slog.Value       { return slog.StringValue(hidden) }
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// Why a change is blocked (SV-091).
const (
	InteractiveModeFailure = "interactive_mode_failure"
	CredentialMissing      = "credential_missing" // its agent's key is not there
	BudgetUsedUp           = "budget_used_up"     // its agent may not ask its model before a person, or time, has changed the budgets
)

// Keys are keys by the names of the variables that they came from.
type Keys map[string]Key

// Wanted says which variables of a person's environment an agent asks for. Who gives them looks at no other.
type Wanted struct {
	Change string   `json:"change,omitempty"`
	Agent  string   `json:"agent"`
	Keys   []string `json:"keys"`  // that may hold the key of its model
	Bases  []string `json:"bases"` // that may say that its model is elsewhere
	Env    []string `json:"env"`   // that the home's env: for it refers to
	Held   bool     `json:"held"`  // a key is there already, or none is needed
}

// WhoWants asks which variables an agent asks for: the one of a change, or that a request would have.
type WhoWants struct {
	Of     string `json:"of" is:"work"` // a change, or a session of one; "" = a request
	Agent  string `json:"agent"`        // of a request; "" = the repository's own
	Dir    string `json:"dir"`          // absolute: where it is made
	Branch string `json:"branch"`       // "" = the one checked out
}

// GiveKeys hands keys over for a change.
type GiveKeys struct {
	Of   string `path:"name" json:"-"` // a change
	Keys Keys   `json:"keys"`
}

// Place is where a person stands and finds programs.
type Place struct {
	Dir  string `json:"dir,omitempty"`  // absolute; "" = nowhere
	Path string `json:"path,omitempty"` // the person's PATH
	Home string `json:"home,omitempty"` // the person's home folder
}

// AgentFound and AgentAbsent are what Agent.InGroups says.
const (
	AgentFound  = "found"
	AgentAbsent = "absent"
)

// Agent is one agent that has a name, as it is on this machine.
type Agent struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Driver    string `json:"driver"`
	Installed bool   `json:"installed"`
	Path      string `json:"path,omitempty"`
	Version   string `json:"version,omitempty"`   // as it said in a sandbox
	InGroups  string `json:"in_groups,omitempty"` // found or absent: what the daemon finds, with its own PATH, for groups; empty where it does not say
	Problem   string `json:"problem,omitempty"`   // why it cannot be run, or its version is not known
	Install   string `json:"install,omitempty"`   // a command that installs it
	Model     string `json:"model,omitempty"`     // that the home chose
	Endpoint  string `json:"endpoint,omitempty"`
	// Endpoints are where its model is by the variable that its key is in, if there are several.
	Endpoints map[string]string `json:"endpoints,omitempty"`
	// Bases are the variables that say that an endpoint is elsewhere, by the endpoint; none where the home says where it is.
	Bases        map[string][]string `json:"bases,omitempty"`
	Keys         []string            `json:"keys"`               // variables that may hold its key
	KeyFrom      string              `json:"key_from,omitempty"` // where one was found, by the daemon: $NAME, file:/path or login:/path
	Login        string              `json:"login,omitempty"`    // where its own program's login is, which key: login would use
	Keyless      bool                `json:"keyless,omitempty"`  // its model asks for none
	Capabilities Capabilities        `json:"capabilities"`
	Hosts        []string            `json:"hosts"` // asked for beside the model, and refused unless egress: names them; it works without
	Off          []string            `json:"off"`   // what of its own is switched off inside
}

// Capabilities is what an agent can do (SV-080).
type Capabilities struct {
	InteractiveMode  bool   `json:"supportsInteractiveMode"`
	WorkingDirectory bool   `json:"supportsWorkingDirectory"`
	PauseResume      bool   `json:"supportsPauseResume"`
	MessagePassing   bool   `json:"supportsMessagePassing"`
	Acknowledgment   bool   `json:"supportsAcknowledgment"`
	PauseProtocol    string `json:"pause_resume_protocol"`
}

// TestAgent asks for a try of an agent.
type TestAgent struct {
	Place
	Agent string            `json:"agent"`
	Model string            `json:"model,omitempty"`
	Keys  Keys              `json:"keys,omitempty"`
	Bases map[string]string `json:"bases,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
}

// AgentTest is how a try of an agent went.
type AgentTest struct {
	Agent   string `json:"agent"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"` // not_installed, no_key, key_refused, model_unknown, host_refused, cannot_start, no_answer
	Text    string `json:"text"`              // in one line
	Next    string `json:"next,omitempty"`
	TookMS  int64  `json:"took_ms"`
	Says    string `json:"says,omitempty"` // the agent's answer, in its own words
}

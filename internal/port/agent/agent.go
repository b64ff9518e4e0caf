// Package agent is the port to what edits code: a driver turns a task into a program for a sandbox.
//
// A driver has two sides. Outside, in the daemon, Driver says what to start and where its model is. Inside, in the
// sandbox, Engine drives the agent's own program by the agent's own protocol; package adapter
// stands between an Engine and the host, so that to the host every agent is one program that speaks the
// protocol of SV-083 on its standard streams. What an agent writes in its own protocol is read inside only.
package agent

import (
	"sallyport/internal/port/sandbox"
)

// Task is what an agent is given.
type Task struct {
	Text     string   // the person's request
	Agent    string   // as it was asked for: codex, api, acp:CMD; "" for command and replay
	Settings Settings // of the home for this agent; the zero value has the defaults
	Argv     []string // of the command driver
	Script   []byte   // of the replay driver
	Messages bool     // the person says that the program reads messages on its stdin
	Path     string   // the person's PATH
	Home     string   // the person's home folder; never mounted
	Top      string   // the person's repository, to see what lies inside it
	Workdir  string   // folder relative to the top that the person stood in; "" = top
	Image    string   // shown in place of the machine's programs (sandbox.Spec.Image); "" = the machine's
	// Resumed is set when a session goes on that an agent of this driver has begun.
	Resumed *Resumed
	// Chat says that the program is to serve a conversation: there is no request, and words come as messages.
	Chat bool
	// System is what the agent of a conversation is told once: the group's prompts. Of its tools and of work that takes long it is told
	// beside that (Order.Foreword).
	System string
	Tools  string   // path inside of the socket at which it asks the host for things; "" = none
	Off    []string // tools that it is not given, by its own names, beside those that its driver gives to no conversation
	Denied []string // kinds of tool calls that are refused, beside those of Settings.Permissions
}

// Resumed says how a session goes on.
type Resumed struct {
	Why        string // for the agent: the daemon died, a person resumed it
	Files      string // what has become of its files, where they are not as they were kept
	Transcript string // the end of what was said, at most TranscriptBytesMax; for an agent that cannot load its own
}

// TranscriptBytesMax is the most of an old transcript that a new session is told.
const TranscriptBytesMax = 64 << 10

// Settings are a home's choices for one agent.
type Settings struct {
	Model       string          // "" = the agent's own default
	Base        string          // URL of the model's endpoint; "" = Endpoint.Base of the driver
	Wire        Wire            // of the api driver: chat or messages; "" = by the environment
	Login       bool            // its model is asked with the login of its own program: Known.Login says where
	Args        []string        // added to the agent's command line
	Env         []string        // added to its environment, NAME=value; never a credential
	Permissions map[string]bool // by kind of tool call (ACP): false refuses; what is not named is allowed
	Rounds      int             // of change and check, at the most; 0 = RoundsDefault
}

// Program is what to start in the sandbox.
type Program struct {
	Name  string // short, for the identity: sh, codex, replay
	Argv  []string
	Env   []string // added to the sandbox's own
	Dirs  []string // folders to put in front of PATH, inside
	Binds []sandbox.Bind
	Stdin []byte
	// Messages says that the program reads messages, one JSON object a line, on its stdin after Stdin
	// (SV-083). Without it stdin ends after Stdin.
	Messages bool
	// Turns says that the program tells the end of each turn (TurnEnd) and then waits for more words until its stdin ends.
	Turns bool
	// Chat says that it serves a conversation: it waits for words before its first turn, and tells Text and ToolCall.
	Chat bool
	// Steers says that its agent takes words in the middle of a turn. Some do not at a moment, and say so.
	Steers bool
	// Rounds of change and check that such a program has at the most; 0 = RoundsDefault.
	Rounds int
	// Keeps says that the program has a home folder that outlives it, from which a later one can go on.
	Keeps bool
	// Model is where the program's model is; nil: it has none, and no way out.
	Model *Endpoint
}

// Driver is the port.
type Driver interface {
	// Name is the driver's name: command, replay, acp, codex, pi, api, echo.
	Name() string
	// Capabilities says what the driver's programs can do at the most.
	Capabilities() Capabilities
	// Program resolves a task. Errors: problem.Usage for a task that is not this
	// driver's, and for a conversation that it cannot serve; problem.NotFound if the program is not on this machine,
	// or not in the image.
	Program(task Task) (Program, error)
}

// Capabilities is what a driver's programs can do (SV-080).
type Capabilities struct {
	InteractiveMode  bool          `json:"supportsInteractiveMode"`  // they may be looked at while they work
	WorkingDirectory bool          `json:"supportsWorkingDirectory"` // they start in the person's folder
	PauseResume      bool          `json:"supportsPauseResume"`
	MessagePassing   bool          `json:"supportsMessagePassing"` // those whose Program.Messages is set
	Acknowledgment   bool          `json:"supportsAcknowledgment"` // and they may answer
	PauseProtocol    PauseProtocol `json:"pause_resume_protocol"`
}

// Sandboxed is what every program can do in a sandbox, which shows it the person's folder and stops its processes; the rest is as
// its Program says.
var Sandboxed = Capabilities{
	InteractiveMode: true, WorkingDirectory: true, PauseResume: true, MessagePassing: true, Acknowledgment: true,
	PauseProtocol: PauseSignal,
}

// PauseProtocol is how a program is made to stand still (SV-082).
type PauseProtocol string

const (
	PauseSignal  PauseProtocol = "signal"  // every process is stopped
	PauseMessage PauseProtocol = "message" // it is asked first, and stopped whatever it answers (SV-046)
	PauseNone    PauseProtocol = "none"
)

// Package agent is the port to what edits code: a driver turns a task into a program for a sandbox.
package agent

import "sallyport/internal/sandbox"

// Task is what an agent is given.
type Task struct {
	Change   string   // id
	Text     string   // the person's request
	Argv     []string // of the command driver
	Script   []byte   // of the replay driver
	Messages bool     // the person says that the program reads messages on its stdin
	Path     string   // the person's PATH
	Home     string   // the person's home folder; never mounted
	Top      string   // the person's repository, to see what lies inside it
	Workdir  string   // folder relative to the top that the person stood in; "" = top
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
}

// Driver is the port.
type Driver interface {
	// Name is the driver's name: command, replay.
	Name() string
	// Capabilities says what the driver's programs can do at the most.
	Capabilities() Capabilities
	// Program resolves a task. Errors: problem.Usage for a task that is not this
	// driver's, problem.NotFound if the program is not on this machine.
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

// PauseProtocol is how a program is made to stand still (SV-082).
type PauseProtocol string

const (
	PauseSignal  PauseProtocol = "signal"  // every process is stopped
	PauseMessage PauseProtocol = "message" // it is asked first, and stopped whatever it answers (SV-046)
	PauseNone    PauseProtocol = "none"
)

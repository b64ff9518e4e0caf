package agent

import "time"

// Script is what the replay driver plays, as it goes to `runner replay` on stdin:
// one line of JSON, then the host's messages, if there are any.
type Script struct {
	Steps []Step `json:"steps"`
}

// Step is one thing a script does; exactly one of the verbs is set.
type Step struct {
	Say     string   `json:"say,omitempty"`
	Run     string   `json:"run,omitempty"` // by sh -c in the workspace
	Write   *Write   `json:"write,omitempty"`
	Replace *Replace `json:"replace,omitempty"`
	Delete  string   `json:"delete,omitempty"` // a file or a folder with all in it
	Rename  *Rename  `json:"rename,omitempty"`
	Await   string   `json:"await,omitempty"`  // a message of this type: it is waited for and acknowledged
	When    string   `json:"when,omitempty"`   // failed or passed: only if the last run did
	Expect  string   `json:"expect,omitempty"` // of a run: pass or fail; else the agent gives up
	// Timeout is of an await: without a message for so long the agent gives up; default AwaitMax.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// AwaitMax is how long a script waits for a message unless it says otherwise.
const AwaitMax = time.Minute

// Messages that a script can await (SV-083, SV-086).
const (
	AwaitViolation = "checkpoint_violation"
	AwaitTell      = "tell"
)

// Awaits reports whether a step waits for a message.
func (s Script) Awaits() bool {
	for _, step := range s.Steps {
		if step.Await != "" {
			return true
		}
	}
	return false
}

// Write makes or replaces a file with the folders it needs.
type Write struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    string `json:"mode,omitempty"` // octal; default 0644, or what the file has
}

// Replace changes the one occurrence of a text in a file.
type Replace struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Rename moves a file or folder.
type Rename struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Words of When and Expect.
const (
	Passed = "passed"
	Failed = "failed"
	Pass   = "pass"
	Fail   = "fail"
)

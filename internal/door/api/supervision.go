package api

// Tell hands words to a working agent (SV-086).
type Tell struct {
	Of   string `path:"name" json:"-"` // a change
	Text string `json:"text"`
}

// Delivery says whether a message reached an agent, and what it said to it (SV-084).
type Delivery struct {
	Delivered     bool   `json:"delivered"`
	Acknowledged  bool   `json:"acknowledged"`
	AgentResponse string `json:"agent_response,omitempty"` // as the agent wrote it, unescaped
}

// PutBack asks for files of a working change to return to its last valid checkpoint (SV-049):
// the paths that are named, or, with Violating, those that break a rule. One of both.
type PutBack struct {
	Of        string   `path:"name" json:"-"`   // a change
	Paths     []string `json:"paths,omitempty"` // from the top of the repository; a folder stands for all below
	Violating bool     `json:"violating,omitempty"`
}

// Returned is what a PutBack did.
type Returned struct {
	Checkpoint Checkpoint `json:"checkpoint"` // taken after it
	Reverted   []string   `json:"reverted"`
	Kept       int        `json:"kept"` // changed paths that stayed as they are
}

// Resume lets the agent of a session go on (RM-025).
type Resume struct {
	Of            string `path:"name" json:"-"` // a session
	ExecutionMode string `json:"execution_mode,omitempty"`
	Keys          Keys   `json:"keys,omitempty"` // of its model; never stored
}

// Redo has an unlanded change made anew on its branch as it is now.
type Redo struct {
	Of   string `path:"name" json:"-"`  // a change
	Keys Keys   `json:"keys,omitempty"` // of its model; never stored
}

// Branch asks for what a change offers as a branch of its repository.
type Branch struct {
	Of   string `path:"name" json:"-"`  // a change
	Name string `json:"name,omitempty"` // "" = sallyport/<change>
}

// Branched is the branch.
type Branched struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// Exported names the file that a checkpoint's diff was written to (SV-041).
type Exported struct {
	Path string `json:"path"` // absolute, on the daemon's machine
}

// The execution modes (SV-001). Today's agents work on the files of their copy, so they are interactive.
const (
	Deterministic = "deterministic"
	Interactive   = "interactive"
)

// Package request is what was asked, by whom, and where the answer goes.
package request

import (
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
)

// Kind tells by whom files are changed, and to what end.
type Kind string

const (
	Edit   Kind = "edit"   // an agent edits a copy
	Revert Kind = "revert" // deterministic: brings the touched paths of a landed change back
	Group  Kind = "group"  // deterministic: a new group of the home, or what a person has edited in one by hand
	Swap   Kind = "swap"   // an agent edits what a group runs, on a copy: its group asked for it in a conversation, or the host refreshes it or is upgraded
)

// Approve is what happens when the change waits for a person.
type Approve string

const (
	Ask   Approve = "ask"   // the client asks at its terminal
	Yes   Approve = "yes"   // approved beforehand by flag, and audited so
	Later Approve = "later" // it waits
)

// Request is one accepted request of a person. It never changes after it was accepted.
type Request struct {
	Kind       Kind        `json:"kind"`
	By         audit.Actor `json:"by"`
	At         time.Time   `json:"at"`
	Text       string      `json:"text"` // at most TextBytesMax
	Project    git.Project `json:"project"`
	Branch     string      `json:"branch"`         // short name; what the change lands on, and starts from unless From is said
	Onto       string      `json:"onto,omitempty"` // on the way in: the branch to land on, if it is another than Branch; then "", and it is Branch
	From       string      `json:"from,omitempty"` // short name of the branch that it starts from, if it lands on another
	CheckedOut bool        `json:"checked_out"`    // Branch was checked out in Project.Top at the start
	Head       git.OID     `json:"head"`           // of Branch at the start
	Agent      string      `json:"agent"`          // command, replay, a named agent or acp:CMD; "" on the way in = as the repository says
	Argv       []string    `json:"argv,omitempty"`
	Script     []byte      `json:"script,omitempty"`
	Strategy   string      `json:"strategy,omitempty"` // direct_worktree or shadow_workspace; "" = what the rules at the base say
	Messages   bool        `json:"messages,omitempty"` // the program reads messages on its stdin (SV-083)
	Model      string      `json:"model,omitempty"`    // of a named agent; "" = as the home says, or its own
	Egress     []string    `json:"egress,omitempty"`   // what its sandboxes may reach, beside what the home lets every one: hosts, or registries
	// Bases say where the model's endpoint is, as the person's environment had it, by the name of the variable. There is no key in a request.
	Bases          map[string]string `json:"bases,omitempty"`
	Env            map[string]string `json:"env,omitempty"`     // what the home's env: for the agent refers to, as the person's environment had it
	Keyed          bool              `json:"keyed,omitempty"`   // a key went with it: its model is not asked without one later
	Workdir        string            `json:"workdir,omitempty"` // relative to the top
	Path           string            `json:"path,omitempty"`    // the person's PATH
	Home           string            `json:"home,omitempty"`    // the person's home folder
	Allow          []string          `json:"allow,omitempty"`
	Forbid         []string          `json:"forbid,omitempty"`
	Checks         []string          `json:"checks,omitempty"`
	Setup          []string          `json:"setup,omitempty"` // run once for what the base depends on, with package registries in reach
	Shares         []string          `json:"shares,omitempty"`
	Profiles       []string          `json:"profiles,omitempty"`
	IncludeDirty   bool              `json:"include_dirty,omitempty"`
	IncludeIgnored []string          `json:"include_ignored,omitempty"`
	Approve        Approve           `json:"approve"`
	Message        string            `json:"message,omitempty"` // what the commit is to say, its first line the subject; "" = made from Text
	Timeout        time.Duration     `json:"timeout"`
	// Trial is how long a person has to confirm what landed, from trust.TrialMin to trust.TrialMax; 0 = nobody is asked,
	// nil = what the repository's target says.
	Trial   *time.Duration `json:"trial,omitempty"`
	Reverts id.Change      `json:"reverts,omitempty"` // of a revert
	Reason  string         `json:"reason,omitempty"`  // of a revert
	Group   string         `json:"group,omitempty"`   // of kind group or swap: its folder; "" = it is about the home
	Chat    id.Chat        `json:"chat,omitempty"`    // of kind swap: where it was asked for, and where its outcome is told
	Wish    id.Message     `json:"wish,omitempty"`    // of kind swap: the message whose sender wishes it; "" = nobody does
	Heard   []string       `json:"heard,omitempty"`   // of kind swap: the accounts whose words its group's agent answered when it asked
	Dev     string         `json:"dev,omitempty"`     // of kind swap: what its agent is called
	Rounds  int            `json:"rounds,omitempty"`  // of kind swap: how often its agent may propose in all; 0 = as often as any agent (CW-053)
	// Refresh is said of a swap that no agent makes: the host brings to the group what has moved in the template up to Head (SM-918).
	Refresh bool `json:"refresh,omitempty"`
	// Release is said of a swap that moves no file: the digest of the release that the host is to run by, which a person has brought.
	Release  string    `json:"release,omitempty"`
	Promotes id.Change `json:"promotes,omitempty"` // of kind group: the swap whose files the template is to have
}

// Worked reports whether an agent works for a request.
func (r Request) Worked() bool { return r.Kind == Edit || r.OfAgent() }

// OfAgent reports whether the words of a request are an agent's own: no person wrote them, and nobody checked them.
func (r Request) OfAgent() bool { return r.Kind == Swap && !r.Refresh && r.Release == "" }

// Drafted reports whether what a request brings is there since it was made: a commit of the host's, or a release.
func (r Request) Drafted() bool { return r.Kind == Group || r.Kind == Swap && !r.OfAgent() }

// Limits of what a request may carry.
const (
	TextBytesMax   = 64 << 10
	ScriptBytesMax = 1 << 20
	// MessageBytesMax bounds what a person may have a commit say.
	MessageBytesMax = 8 << 10
	ListMax         = 256
	TimeoutMax      = 24 * time.Hour
)

// ConfigHome is the home folder whose git configuration counts; "" = that of the repository's owner. Who asks for another's
// repository has not their configuration.
func (r Request) ConfigHome() string {
	if r.By.UID == int(r.Project.UID) {
		return r.Home
	}
	return ""
}

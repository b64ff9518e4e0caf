package api

import (
	"strings"
	"time"

	"sallyport/internal/rule/policy"
)

// The states of a change as they cross the socket; package change owns their meaning.
const (
	Requested        = "requested"
	Preparing        = "preparing"
	Working          = "working"
	Paused           = "paused"
	Blocked          = "blocked"
	Submitted        = "submitted"
	AwaitingApproval = "awaiting_approval"
	Landing          = "landing"
	InTrial          = "in_trial"
	Finalized        = "finalized"
	RolledBack       = "rolled_back"
	RollbackFailed   = "rollback_failed"
	Rejected         = "rejected"
	Cancelled        = "cancelled"
	Failed           = "failed"
)

// How a change ends that has nothing to land.
const (
	NothingToDo     = "nothing_to_do"
	BaseFailsChecks = "base_fails_checks"
)

// Final reports whether nothing more happens to a change in this state by itself or by approval.
func Final(state string) bool {
	switch state {
	case Finalized, RolledBack, Rejected, Cancelled, Failed:
		return true
	}
	return false
}

// Words are how a state is said to people, after "it is".
func Words(state string) string {
	switch state {
	case AwaitingApproval:
		return "waiting for approval"
	case InTrial:
		return "on trial"
	case RollbackFailed:
		return "in a rollback that failed"
	}
	return strings.ReplaceAll(state, "_", " ")
}

// Actor is who did something.
type Actor struct {
	Kind string `json:"kind"` // person, host or agent
	Name string `json:"name"`
	UID  int    `json:"uid"` // of a person; -1 otherwise
}

// Run asks for a change. Who asks is read from the socket, never from here.
type Run struct {
	Dir    string   `json:"dir"`              // absolute: where the person stands, inside the repository
	Branch string   `json:"branch,omitempty"` // "" = the one checked out
	Onto   string   `json:"onto,omitempty"`   // the branch to land on, if another
	Text   string   `json:"text"`
	Agent  string   `json:"agent,omitempty"` // command, replay, a named agent or acp:CMD; "" = as the repository says
	Model  string   `json:"model,omitempty"`
	Egress []string `json:"egress,omitempty"` // hosts, or registries
	Keys   Keys     `json:"keys,omitempty"`   // of its model; never stored
	// Bases say where the model's endpoint is, as the person's environment has it, by the name of the variable.
	Bases          map[string]string `json:"bases,omitempty"`
	Env            map[string]string `json:"env,omitempty"` // what the home's env: for the agent refers to, by the name of the variable
	Argv           []string          `json:"argv,omitempty"`
	Script         []byte            `json:"script,omitempty"`
	Path           string            `json:"path,omitempty"` // the person's PATH
	Home           string            `json:"home,omitempty"` // the person's home folder
	Allow          []string          `json:"allow,omitempty"`
	Forbid         []string          `json:"forbid,omitempty"`
	Checks         []string          `json:"checks,omitempty"`
	Setup          []string          `json:"setup,omitempty"`
	Shares         []string          `json:"shares,omitempty"` // absolute
	Profiles       []string          `json:"profiles,omitempty"`
	IncludeDirty   bool              `json:"include_dirty,omitempty"`
	IncludeIgnored []string          `json:"include_ignored,omitempty"`
	Approve        string            `json:"approve"`              // ask, yes or later
	Message        string            `json:"message,omitempty"`    // what the commit is to say, its first line the subject; "" = made from Text
	TimeoutMS      int64             `json:"timeout_ms,omitempty"` // of the agent; 0 = the default
	TrialMS        *int64            `json:"trial_ms,omitempty"`   // how long a person has to confirm; nil = what the target says, 0 = nobody is asked
	Strategy       string            `json:"strategy,omitempty"`   // direct_worktree or shadow_workspace; "" = what the rules say
	Messages       bool              `json:"messages,omitempty"`   // the program reads messages on its standard input (SV-083)
	ExecutionMode  string            `json:"execution_mode,omitempty"`
}

// Filter narrows a list of changes, which has the newest first.
type Filter struct {
	Repo   string   `json:"repo"`  // top of a work tree; "" = all
	States []string `json:"state"` // nil = all
	Limit  int      `json:"limit"` // 0 = the daemon's default
}

// OfChange narrows what is told of the host to one change.
type OfChange struct {
	Change string `json:"change" is:"change"` // "" = the host alone
}

// Transcript asks for what a session said, in JSONL.
type Transcript struct {
	Of      string `path:"name" json:"-"` // a change
	Session string `json:"session"`       // "" = its last
}

// Shell asks for a shell in a change's sandbox, on a terminal of this size.
type Shell struct {
	Of   string `path:"name" json:"-"` // a change
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
	Raw  bool   `json:"raw"` // it takes what drives a terminal; else programs are told to send text alone
}

// Between asks for what differs between two checkpoints of one change.
type Between struct {
	Of   string `path:"name" json:"-"`        // the later
	From string `json:"from" is:"checkpoint"` // "" = the change's base
}

// Change is one change as a list shows it.
type Change struct {
	ID            string    `json:"id"`
	Kind          string    `json:"kind"`                // edit, revert, group or swap
	Group         string    `json:"group,omitempty"`     // that it makes, commits or changes
	Dev           string    `json:"dev_agent,omitempty"` // who makes a swap
	Release       string    `json:"release,omitempty"`   // of an upgrade: what the host is to run by
	State         string    `json:"state"`
	Text          string    `json:"text"`
	By            Actor     `json:"by"`
	Repo          string    `json:"repo"`
	Branch        string    `json:"branch"`
	Base          string    `json:"base,omitempty"` // commit, once prepared
	Agent         string    `json:"agent,omitempty"`
	Model         string    `json:"model,omitempty"`
	Egress        []string  `json:"egress,omitempty"` // what the person lets it reach
	Argv          []string  `json:"argv,omitempty"`
	Allow         []string  `json:"allow,omitempty"`
	Forbid        []string  `json:"forbid,omitempty"`
	Checks        []string  `json:"checks,omitempty"`
	Setup         []string  `json:"setup,omitempty"`
	Strategy      string    `json:"strategy,omitempty"`
	Messages      bool      `json:"messages,omitempty"`
	Approve       string    `json:"approve"`
	TimeoutMS     int64     `json:"timeout_ms,omitempty"`
	Problem       string    `json:"problem,omitempty"`        // kind of Reason, if it did not go well
	Reason        string    `json:"reason,omitempty"`         // why it is where it is
	Next          string    `json:"next,omitempty"`           // a command to run
	WayOut        string    `json:"way_out,omitempty"`        // of a change that should move by itself and does not: what ends that
	BlockedReason string    `json:"blocked_reason,omitempty"` // interactive_mode_failure, credential_missing or budget_used_up
	NeedsPerson   bool      `json:"requires_human_intervention,omitempty"`
	Reverts       string    `json:"reverts,omitempty"`
	Outcome       string    `json:"outcome,omitempty"` // of one that ended with nothing to land: nothing_to_do or base_fails_checks
	RevertedBy    string    `json:"reverted_by,omitempty"`
	Chosen        string    `json:"last_checkpoint_id,omitempty"` // what is offered, or was restored last (SV-048)
	Rollbacks     int       `json:"rollback_count"`               // to a checkpoint of its own
	Cancelling    bool      `json:"cancel_requested,omitempty"`
	Created       time.Time `json:"created"`
	Moved         time.Time `json:"moved"`
	Trial         *Trial    `json:"trial,omitempty"`       // in a list only while it is open
	Uncommitted   []string  `json:"uncommitted,omitempty"` // only in the answer to Run: the person's paths that are not in the copy
	Included      []string  `json:"included,omitempty"`    // only there: the person's uncommitted paths that are in it
}

// Limit names a limit that was broken.
type Limit struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Observed string `json:"observed"`
	Setting  string `json:"setting,omitempty"` // what raises it
}

// Exit is how an agent ended.
type Exit struct {
	Code   int    `json:"code"` // -1 if a signal ended it
	Signal string `json:"signal,omitempty"`
	Limit  *Limit `json:"limit,omitempty"`
}

// Session is one run of an agent.
type Session struct {
	ID      string     `json:"id"`
	Attempt int        `json:"attempt"`
	Agent   string     `json:"agent"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Exit    *Exit      `json:"exit,omitempty"`
	Reason  string     `json:"reason,omitempty"` // why it has ended without an exit; with one, why its last turn failed
	// Proposed: it was ended because its agent had proposed, which is no fault.
	Proposed bool `json:"proposed,omitempty"`
}

// LeftOver counts files of one folder that stay out because the base ignores them.
type LeftOver struct {
	Folder string `json:"folder"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Checkpoint is one recorded snapshot.
type Checkpoint struct {
	ID         string             `json:"checkpoint_id"` // SV-040
	Name       string             `json:"id"`            // the same, as every row of a list has it
	Change     string             `json:"change"`
	Number     int                `json:"number"`
	Previous   string             `json:"previous_checkpoint_id,omitempty"`
	At         time.Time          `json:"timestamp"`
	Trigger    string             `json:"trigger"`
	Base       string             `json:"base"`
	Commit     string             `json:"commit"`
	Tree       string             `json:"tree"`
	Files      []string           `json:"files_changed"`            // against the base
	SinceLast  int                `json:"files_changed_since_last"` // against the previous checkpoint, or the base (SV-042)
	Total      int                `json:"files_changed_total"`      // against the base
	Status     string             `json:"validation_status"`        // valid, invalid, skipped
	Violations []policy.Violation `json:"violations"`
	Severity   string             `json:"severity,omitempty"`
	LeftOver   []LeftOver         `json:"left_over,omitempty"`
	Session    string             `json:"session,omitempty"`
}

// Landed is a landing as its journal row tells it.
type Landed struct {
	ID       string     `json:"id"`
	State    string     `json:"state"`
	Branch   string     `json:"branch"`
	WorkTree bool       `json:"work_tree"`
	Head     string     `json:"head"`
	Commit   string     `json:"commit"`
	Tree     string     `json:"tree"`
	Checked  string     `json:"checked,omitempty"` // tree that the checks passed on; absent: none ran
	Paths    int        `json:"paths"`
	Started  time.Time  `json:"started"`
	Ended    *time.Time `json:"ended,omitempty"`
	Reason   string     `json:"reason,omitempty"`
}

// Progress is what is known of a working agent.
type Progress struct {
	FilesChanged int       `json:"files_changed"`
	OutputBytes  int64     `json:"output_bytes"`
	Since        time.Time `json:"since"`
}

// Asked is what a change's programs asked of the network: requests of one kind, counted. Its texts are an agent's, unescaped.
type Asked struct {
	Host    string    `json:"host"` // "" = of kinds that are not told apart any more
	Port    uint16    `json:"port"`
	Method  string    `json:"method"`          // CONNECT, GET
	Route   string    `json:"route,omitempty"` // to a host of the agent's own: model
	Verdict string    `json:"verdict"`         // allowed, refused, failed
	Why     string    `json:"why,omitempty"`
	Count   int64     `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// The verdicts of an Asked.
const (
	AskedAllowed = "allowed"
	AskedRefused = "refused"
	AskedFailed  = "failed" // it was allowed and did not work
)

// Detail is all there is to know of one change.
type Detail struct {
	Change      Change       `json:"change"`
	Sessions    []Session    `json:"sessions"`
	Checkpoints []Checkpoint `json:"checkpoints"`
	Proposal    *Proposal    `json:"proposal,omitempty"`
	Approval    *Approval    `json:"approval,omitempty"`
	Landing     *Landed      `json:"landing,omitempty"`
	Progress    *Progress    `json:"progress,omitempty"`
	Asked       []Asked      `json:"asked,omitempty"` // of the network
	Usage       []Usage      `json:"usage,omitempty"` // of models
}

// The kinds of a notice.
const (
	NoticeState      = "state"
	NoticeProgress   = "progress"
	NoticeCheckpoint = "checkpoint"
	NoticeCheck      = "check"
	NoticeSetup      = "setup"
	NoticeOutput     = "output"
	// NoticeRound says that an agent which had ended its turn is told what is wrong with its work, or that its rounds are over.
	NoticeRound = "round"
	// NoticeTrial says that a trial moved; the last one is sent again to who comes later.
	NoticeTrial = "trial"
	// NoticeEgress says what was asked of the network since the last one of its kind.
	NoticeEgress = "egress"
	// NoticeEvent says in words what happened.
	NoticeEvent = "event"
	// NoticeEnd is the last event of a stream that ended by itself; a stream without it was cut.
	NoticeEnd = "end"
	// NoticeStopped is the last event of a stream whose daemon is being stopped; one that dies sends none.
	NoticeStopped = "stopped"
)

// Notice is one event of a change's live stream.
type Notice struct {
	Seq        int64       `json:"seq"`
	Change     string      `json:"change"`
	At         time.Time   `json:"at"`
	Kind       string      `json:"kind"`
	State      string      `json:"state,omitempty"`
	Text       string      `json:"text,omitempty"` // output: as the agent wrote it, unescaped
	Progress   *Progress   `json:"progress,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Asked      *Asked      `json:"asked,omitempty"`
}

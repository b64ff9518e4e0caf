package api

import (
	"time"

	"sallyport/internal/base/audit"
)

// Proposal is what a person is asked about.
type Proposal struct {
	Change     string    `json:"change"`
	Number     int       `json:"number"`
	Checkpoint string    `json:"checkpoint,omitempty"`
	Base       string    `json:"base"`
	Tree       string    `json:"tree"`
	Commit     string    `json:"commit"`
	Policy     string    `json:"policy"`
	Digest     string    `json:"digest"`
	Card       Card      `json:"card"`
	At         time.Time `json:"at"`
}

// Card is what a person is shown; every text in it is escaped where it is rendered.
type Card struct {
	Title      string        `json:"title"`
	Wish       string        `json:"wish,omitempty"` // what an agent asks for, in its own words; absent: a person asks, by the title
	Kind       string        `json:"kind"`
	Repo       string        `json:"repo"`
	Branch     string        `json:"branch"`
	Files      []FileLine    `json:"files"`
	FilesTotal int           `json:"files_total"`
	Added      int           `json:"added"`
	Removed    int           `json:"removed"`
	Class      string        `json:"class,omitempty"`
	Typed      string        `json:"typed,omitempty"`    // words that a yes is typed with: Approve.Typed
	ThinkMS    int64         `json:"think_ms,omitempty"` // from when it is asked until a yes to it counts
	Banner     []string      `json:"banner,omitempty"`
	Reach      []string      `json:"reach"`
	Marks      []Mark        `json:"marks"` // the first thousand
	MarksTotal int           `json:"marks_total,omitempty"`
	MarksWord  bool          `json:"marks_word,omitempty"` // a yes must say that it covers them: Approve.Marked
	MarksOn    *Ground       `json:"marks_on,omitempty"`   // what would land, whose marks are among them; absent: they are the proposed tree's
	Checks     []CheckResult `json:"checks"`
	ChecksOn   *Ground       `json:"checks_on,omitempty"` // what they ran on; absent: exactly the proposed tree
	LeftOver   []LeftOver    `json:"left_over"`
	Moved      *Moved        `json:"moved,omitempty"` // what the branch has become since the base
	Drift      []string      `json:"drift"`
	Note       string        `json:"note,omitempty"`
	Then       []string      `json:"then,omitempty"`      // what happens on the host once it has landed
	Network    []string      `json:"network,omitempty"`   // what the person let its sandbox reach, and what it was refused
	Setup      []string      `json:"setup,omitempty"`     // what its setup wrote and nobody finds
	Made       string        `json:"made,omitempty"`      // the command or the agent that made it
	Used       string        `json:"used,omitempty"`      // what models used for it
	Subject    string        `json:"subject,omitempty"`   // of the commit, unless who approves says another
	CommitBy   string        `json:"commit_by,omitempty"` // who commits, whether it is signed, and why not
	Reworks    bool          `json:"reworks,omitempty"`   // its agent goes on with what a person wants different in it
	AgentSays  string        `json:"agent_says,omitempty"`
	Host       *Rehearsed    `json:"host,omitempty"` // how a change of the host was rehearsed; absent: it is none
}

// Rehearsed is how a change of the host was tried before anybody was asked about it (SM-913).
type Rehearsed struct {
	Release     string   `json:"release,omitempty"` // digest of the release that the host would run by; absent: the one of now
	Build       string   `json:"build,omitempty"`   // as that release says of itself
	Schema      int      `json:"schema"`            // of the database that it wants
	Was         int      `json:"was"`               // schema of now
	Tried       []string `json:"rehearsed"`
	Not         []string `json:"not"` // what a rehearsal does not show
	TookMS      int64    `json:"took_ms"`
	MigrationMS int64    `json:"migration_ms"`   // of that until the candidate answered the first time
	Runs        string   `json:"runs,omitempty"` // by which programs the host would run, and how its database changes, as a clause
}

// Mark is one reason why a plain yes is not enough: a changed path that a tool runs by itself (runs), that tells an agent
// what to do (agent), that shapes how secrets are looked for (secrets), whose name can be taken for another (name), or of
// whose text a reader does not see all (hidden).
type Mark struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Says string `json:"says"` // what runs it and when, or what is wrong with it
}

// Ground is a tree that a change would result in on a head of its branch.
type Ground struct {
	Head string `json:"head"`
	Tree string `json:"tree"`
}

// Moved says by what a branch differs from a change's base.
type Moved struct {
	Head       string   `json:"head"`
	Commits    int      `json:"commits"`             // that the base has not; at most a thousand are counted
	Rewritten  bool     `json:"rewritten,omitempty"` // the base is not on the branch any more
	Subjects   []string `json:"subjects"`            // of the newest ones
	Paths      []string `json:"paths"`               // the first that differ
	PathsTotal int      `json:"paths_total"`
}

// FileLine is one changed path on a card.
type FileLine struct {
	Path    string `json:"path"`
	Status  string `json:"status"`
	From    string `json:"from,omitempty"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	// Uncounted says that its lines were not counted, because there are too many.
	Uncounted bool   `json:"uncounted,omitempty"`
	Note      string `json:"note,omitempty"`
}

// CheckResult is one check as run on the proposed tree.
type CheckResult struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	TookMS  int64  `json:"took_ms"`
	Why     string `json:"why,omitempty"`
	Tail    string `json:"tail,omitempty"`
	With    string `json:"with,omitempty"` // what it began with that commands had left on a base, and when
}

// Approval is a durable request for a person's decision.
type Approval struct {
	ID       string     `json:"id"`
	Change   string     `json:"change"`           // "" = it is about no change
	Kind     string     `json:"kind"`             // of what waits about a stranger "sender", about a place "channel"
	Wish     string     `json:"wish,omitempty"`   // of a row of a list: what was asked for, in one line; about a stranger or a place, what is asked
	Repo     string     `json:"repo,omitempty"`   // of a row of a list: the top of the change's work tree
	Branch   string     `json:"branch,omitempty"` // of a row of a list
	Proposal int        `json:"proposal"`
	Digest   string     `json:"digest"`
	Asked    time.Time  `json:"asked"`
	Decision string     `json:"decision"` // pending, approved, refused, void
	By       *Actor     `json:"by,omitempty"`
	At       *time.Time `json:"at,omitempty"`
	Via      string     `json:"via,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Message  string     `json:"message,omitempty"`  // what the commit is to say; "" = as the card shows
	Unsigned bool       `json:"unsigned,omitempty"` // it may land unsigned
}

// Pending is the decision of an approval that waits.
const Pending = "pending"

// Question is an approval with what it is about.
type Question struct {
	Approval  Approval   `json:"approval"`
	Proposal  Proposal   `json:"proposal,omitzero"`
	Admission *Admission `json:"admission,omitempty"` // of a question about a stranger or a place, which has no proposal
}

// Admission is what is asked about a stranger or a place.
type Admission struct {
	Lines   []string `json:"lines"`
	Options []Choice `json:"options"` // in the order of their numbers, from 1
}

// Choice is an answer to choose, by its number, its key or its label.
type Choice struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	No    bool   `json:"no"`    // it is chosen by "sallyport refuse"
	Named bool   `json:"named"` // it wants a name behind its key, such as "create kitchen"
}

// Admitted says what came of an answer about a stranger or a place.
type Admitted struct {
	Told string `json:"told"`
}

// Approve says yes to exactly the digest that was read.
type Approve struct {
	Of       string `path:"name" json:"-"` // an approval
	Digest   string `json:"digest"`
	Message  string `json:"message,omitempty"`  // what the commit is to say; "" = as the card shows
	Unsigned bool   `json:"unsigned,omitempty"` // it may land unsigned
	Marked   bool   `json:"marked,omitempty"`   // it covers what is marked on the card
	Typed    string `json:"typed,omitempty"`    // the words that the card wants typed
}

// Approved is what a yes is answered with.
type Approved struct {
	// Code is what a change of the host is confirmed with once it is on trial: shown once, to the person whose yes was the last that it
	// needed. "" = it needs none, or another's yes.
	Code string `json:"code,omitempty"`
}

// Confirm keeps what is on trial.
type Confirm struct {
	Of   string `path:"name" json:"-"`  // a change
	Code string `json:"code,omitempty"` // of a change of the host
}

// Reason says why something is refused, cancelled or paused.
type Reason struct {
	Of     string `path:"name" json:"-"` // what is refused, cancelled or paused
	Reason string `json:"reason"`
}

// Rollback asks for the undoing of a finalized change.
type Rollback struct {
	Of      string `path:"name" json:"-"` // a change
	Reason  string `json:"reason"`
	Approve string `json:"approve"`
}

// Waiting narrows a list of approvals to those that wait.
type Waiting struct {
	Pending bool `json:"pending"`
	Limit   int  `json:"limit"` // 0 = the daemon's default
}

// Entries asks for a part of the audit, oldest first.
type Entries struct {
	Change string `json:"change" is:"change"` // "" = all of the home
	After  int64  `json:"after"`              // a sequence number
	Limit  int    `json:"limit"`              // 0 = the daemon's default
}

// Expected asks for the whole audit log to be read.
type Expected struct {
	Expect string `json:"expect"` // NUMBER:HASH as an earlier report had it, or ""
}

// Entry is one row of the audit; its JSON is the one its hash was made of.
type Entry = audit.Entry

// AuditReport is what audit verify found.
type AuditReport = audit.Report

// Package proposal is a checkpoint offered for landing: what exactly, judged how, shown how.
//
// Everything on a card is computed by the host from immutable objects; the
// agent's own words are quoted and labelled (SM-908).
package proposal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// Digest binds an approval: SHA-256 over change, tree, base and policy.
type Digest string

// ErrSuperseded refuses a decision on something that has changed since it was read.
var ErrSuperseded = problem.New(problem.Conflict, "the card has changed since it was shown")

// Proposal is what a person is asked about.
type Proposal struct {
	Change     id.Change     `json:"change"`
	Number     int           `json:"number"` // from 1; asking again makes the next one
	Checkpoint id.Checkpoint `json:"checkpoint,omitempty"`
	Base       git.OID       `json:"base"`   // commit the edits are against
	Tree       git.OID       `json:"tree"`   // base with the edits
	Commit     git.OID       `json:"commit"` // that tree as a commit of ours, in both repositories
	Edits      []git.Edit    `json:"edits"`
	Policy     string        `json:"policy"` // digest of the rules it was judged by
	Digest     Digest        `json:"digest"`
	Card       Card          `json:"card"`
	At         time.Time     `json:"at"`
}

// Sum computes a proposal's digest.
func Sum(change id.Change, base, tree git.OID, policy string) Digest {
	sum := sha256.Sum256(fmt.Appendf(nil, "sallyport proposal 1\n%s\n%s\n%s\n%s\n", change, base, tree, policy))
	return Digest(hex.EncodeToString(sum[:]))
}

// Sum is the digest of a proposal as its card stands: marks of a tree that results elsewhere are part of what is approved, and so is the
// release that the host would run by.
func (p Proposal) Sum() Digest {
	by := p.Policy
	if p.Card.MarksOn != nil {
		by += "\nmarks on " + string(p.Card.MarksOn.Tree)
	}
	if p.Card.Host != nil && p.Card.Host.Release != "" {
		by += "\nrelease " + p.Card.Host.Release
	}
	return Sum(p.Change, p.Base, p.Tree, by)
}

// Digests name for the audit log what a proposal is bound to.
func (p Proposal) Digests() map[string]string {
	return map[string]string{"base": string(p.Base), "tree": string(p.Tree), "policy": p.Policy, "proposal": string(p.Digest)}
}

// Card is what a person is shown; plain data, escaped where it is rendered.
type Card struct {
	Title      string               `json:"title"`          // the request's first line; of what an agent asks for the host's own words
	Wish       string               `json:"wish,omitempty"` // what an agent asks for, in its own words; "" = a person asks
	Kind       string               `json:"kind"`
	Repo       string               `json:"repo"`
	Branch     string               `json:"branch"`
	Files      []FileLine           `json:"files"` // at most FilesShown; FilesTotal says how many there are
	FilesTotal int                  `json:"files_total"`
	Added      int                  `json:"added"`            // lines
	Removed    int                  `json:"removed"`          // lines
	Class      string               `json:"class,omitempty"`  // of what a group changes in itself: group, host or combined (SM-076)
	Typed      string               `json:"typed,omitempty"`  // words that a yes is typed with (SM-084); "" = none
	Think      time.Duration        `json:"think,omitempty"`  // from when it is asked until a yes counts (SM-912)
	People     int                  `json:"people,omitempty"` // how many have to approve it, where that is more than one (SM-912)
	Banner     []string             `json:"banner,omitempty"` // what has to be read before all else, in fixed words
	Reach      []string             `json:"reach"`            // authority gained or lost, computed: new executable, rules changed, agent instructions …
	Marks      []policy.Mark        `json:"marks"`            // what a tool runs by itself, tells an agent, or is not what it looks like; at most MarksShown
	MarksTotal int                  `json:"marks_total,omitempty"`
	MarksWord  bool                 `json:"marks_word,omitempty"` // a yes must say that it covers them
	MarksOn    *Ground              `json:"marks_on,omitempty"`   // what results elsewhere, whose marks are among them; nil = they are the proposed tree's alone
	Checks     []CheckResult        `json:"checks"`
	ChecksOn   *Ground              `json:"checks_on,omitempty"` // what they ran on; nil = exactly the proposed tree
	LeftOver   []workspace.LeftOver `json:"left_over"`
	Moved      *Moved               `json:"moved,omitempty"`      // what the branch has become since the base; found when the card is shown
	Drift      []string             `json:"drift"`                // why it cannot land as it stands, path by path
	Note       string               `json:"note,omitempty"`       // such as: why it is asked again
	Then       []string             `json:"then,omitempty"`       // what happens on the host once it has landed
	Network    []string             `json:"network,omitempty"`    // what the person let its sandbox reach, and what it was refused
	Setup      []string             `json:"setup,omitempty"`      // what its setup wrote and nobody finds
	Made       string               `json:"made,omitempty"`       // the command or the agent that made it
	Used       string               `json:"used,omitempty"`       // what models used for it so far
	Subject    string               `json:"subject,omitempty"`    // of the commit, unless who approves says another
	CommitBy   string               `json:"commit_by,omitempty"`  // who commits, whether it is signed, and why not
	Reworks    bool                 `json:"reworks,omitempty"`    // its agent goes on with what a person wants different in it
	AgentSays  string               `json:"agent_says,omitempty"` // the last words of the transcript: the agent's own
	Spoken     *Spoken              `json:"spoken,omitempty"`     // the diff for a conversation; nil = it is asked in none
	Host       *Host                `json:"host,omitempty"`       // how a change of the host was rehearsed; nil = it is none
}

// Redacted returns the card without secrets in what others said: a request, a repository, an agent, its tools. c stays as it is.
func (c Card) Redacted(secrets *secret.Scanner) Card {
	c.Files, c.Marks, c.Checks = slices.Clone(c.Files), slices.Clone(c.Marks), slices.Clone(c.Checks)
	for i := range c.Files {
		c.Files[i].Note = secrets.Redact(c.Files[i].Note)
	}
	for i := range c.Marks {
		c.Marks[i].Says = secrets.Redact(c.Marks[i].Says)
	}
	for i := range c.Checks {
		check := &c.Checks[i]
		for _, text := range []*string{&check.Command, &check.Why, &check.Tail, &check.With} {
			*text = secrets.Redact(*text)
		}
	}
	if c.Moved != nil {
		moved := *c.Moved
		moved.Subjects, moved.Paths = redacted(secrets, moved.Subjects), redacted(secrets, moved.Paths)
		c.Moved = &moved
	}
	for _, all := range []*[]string{&c.Reach, &c.Drift, &c.Then, &c.Network, &c.Setup} {
		*all = redacted(secrets, *all)
	}
	for _, text := range []*string{&c.Title, &c.Wish, &c.Note, &c.Made, &c.Used, &c.Subject, &c.CommitBy, &c.AgentSays} {
		*text = secrets.Redact(*text)
	}
	return c
}

func redacted(secrets *secret.Scanner, all []string) []string {
	all = slices.Clone(all)
	for i := range all {
		all[i] = secrets.Redact(all[i])
	}
	return all
}

// Ground is a tree that a change would result in on a head of its branch.
type Ground struct {
	Head git.OID `json:"head"`
	Tree git.OID `json:"tree"`
}

// Moved says by what a branch differs from a change's base.
type Moved struct {
	Head       git.OID  `json:"head"`
	Commits    int      `json:"commits"`             // that the base has not; at most a thousand are counted
	Rewritten  bool     `json:"rewritten,omitempty"` // the base is not on the branch any more
	Subjects   []string `json:"subjects"`            // of the newest ones; the repository's words
	Paths      []string `json:"paths"`               // the first that differ
	PathsTotal int      `json:"paths_total"`
}

// FileLine is one changed path on a card.
type FileLine struct {
	Path    string `json:"path"`
	Status  string `json:"status"` // added, changed, deleted, renamed, mode
	From    string `json:"from,omitempty"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	// Uncounted says that its lines were not counted, because there are too many.
	Uncounted bool   `json:"uncounted,omitempty"`
	Note      string `json:"note,omitempty"` // new executable, link to …
}

// CheckResult is one --check as run in a sandbox on the proposed tree.
type CheckResult struct {
	Command string        `json:"command"`
	OK      bool          `json:"ok"`
	Took    time.Duration `json:"took"`
	Why     string        `json:"why,omitempty"`  // exit status, or the limit by name; and what may help
	Tail    string        `json:"tail,omitempty"` // last lines of output
	With    string        `json:"with,omitempty"` // what it began with that commands had left on a base, and when; "" = nothing
}

package proposal

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/policy"
)

// What a card holds at most.
const (
	FilesShown      = 300
	MarksShown      = 1000
	TitleRunesMax   = 120
	AgentRunesMax   = 2000
	linkTargetBytes = 4096 // PATH_MAX: no link is longer
)

// CountMax is how long the lines of a card are counted, and how long a diff is read for a conversation: a few seconds for 300,000 lines
// that all differ, and minutes for more.
const CountMax = 20 * time.Second

// Objects is where a card is computed from: immutable objects, no work tree. A git.Dir is one.
type Objects interface {
	Tree(ctx context.Context, commit git.OID) (git.OID, error)
	Edits(ctx context.Context, from, to git.OID) ([]git.Edit, error)
	Stat(ctx context.Context, from, to git.OID, within time.Duration) ([]git.FileStat, error)
	Blobs(ctx context.Context, oids []git.OID, each func(oid git.OID, size int64, r io.Reader) error) error
}

// Making is what a proposal is made of.
type Making struct {
	Objects    Objects
	Change     id.Change
	Kind       string // edit or revert
	Number     int    // from 1
	Text       string // the request, or what the host calls one that an agent made
	Wish       string // what an agent asks for, in its own words; "" = a person asks
	Repo       string // top of the person's repository
	Branch     string
	Checkpoint *checkpoint.Checkpoint // nil for a revert
	Base       git.OID                // commit
	Commit     git.OID
	Tree       git.OID    // of Commit
	Edits      []git.Edit // from Base to Commit; nil = found here
	Policy     string     // digest of rules and plan
	Marks      []policy.Mark
	MarksWord  bool // a yes must say that it covers the marks
	Checks     []CheckResult
	Drift      []string
	Note       string
	AgentSays  string
	Host       *Host // how it was rehearsed; nil = it is no change of the host
	At         time.Time
}

// Make computes a proposal with its card and its digest. It reads objects and writes nothing.
func Make(ctx context.Context, m Making) (Proposal, error) {
	if m.Change == "" || m.Base == "" || m.Commit == "" || m.Policy == "" || m.Number < 1 {
		return Proposal{}, fmt.Errorf("propose %q: change, base, commit, policy and number are needed", m.Change)
	}
	tree, err := m.Objects.Tree(ctx, m.Commit)
	if err != nil {
		return Proposal{}, fmt.Errorf("read the tree of %.12s: %w", m.Commit, err)
	}
	if tree != m.Tree {
		return Proposal{}, fmt.Errorf("propose %s: commit %.12s has tree %.12s, not %.12s", m.Change, m.Commit, tree, m.Tree)
	}
	if m.Edits == nil {
		if m.Edits, err = m.Objects.Edits(ctx, m.Base, m.Commit); err != nil {
			return Proposal{}, fmt.Errorf("compare %.12s with its base: %w", m.Commit, err)
		}
	}
	p := Proposal{
		Change: m.Change, Number: m.Number, Base: m.Base, Tree: m.Tree, Commit: m.Commit,
		Edits: m.Edits, Policy: m.Policy, At: m.At,
	}
	if m.Checkpoint != nil {
		p.Checkpoint = m.Checkpoint.ID
	}
	p.Card, err = m.card(ctx)
	p.Card.Host = m.Host
	p.Digest = p.Sum()
	return p, err
}

// Verify returns nil if a stored proposal still is what its digest names.
func Verify(p Proposal) error {
	if want := p.Sum(); p.Digest != want {
		return fmt.Errorf("proposal %d of %s has digest %.12s, but what it holds has %.12s", p.Number, p.Change, string(p.Digest), string(want))
	}
	return nil
}

// card computes what a person is shown.
func (m Making) card(ctx context.Context) (Card, error) {
	stats, err := m.Objects.Stat(ctx, m.Base, m.Commit, CountMax)
	if err != nil {
		return Card{}, fmt.Errorf("count the lines of %.12s: %w", m.Commit, err)
	}
	targets, err := m.targets(ctx)
	if err != nil {
		return Card{}, err
	}
	c := Card{
		Title: title(m.Text), Wish: firstRunes(m.Wish, AgentRunesMax), Kind: m.Kind, Repo: m.Repo, Branch: m.Branch, FilesTotal: len(stats),
		Files: []FileLine{}, Reach: []string{}, MarksTotal: len(m.Marks), MarksWord: m.MarksWord && len(m.Marks) > 0,
		Marks:  append([]policy.Mark{}, m.Marks[:min(len(m.Marks), MarksShown)]...),
		Checks: append([]CheckResult{}, m.Checks...), LeftOver: []workspace.LeftOver{},
		Drift: append([]string{}, m.Drift...), Note: m.Note, AgentSays: lastRunes(m.AgentSays, AgentRunesMax),
	}
	if m.Checkpoint != nil {
		c.LeftOver = append(c.LeftOver, m.Checkpoint.LeftOver...)
	}
	for _, s := range stats {
		c.Added += s.Added
		c.Removed += s.Removed
		if len(c.Files) < FilesShown {
			c.Files = append(c.Files, line(s, targets))
		}
	}
	changes := make([]policy.Change, len(m.Edits))
	for i, e := range m.Edits {
		changes[i] = policy.Change{Edit: e, Fact: policy.Fact{LinkTarget: targets[e.New.OID]}}
	}
	c.Reach = append(c.Reach, policy.Reach(changes)...)
	return c, nil
}

// targets reads where the new links lead, by object.
func (m Making) targets(ctx context.Context) (map[git.OID]string, error) {
	found := map[git.OID]string{}
	var links []git.OID
	for _, e := range m.Edits {
		if _, seen := found[e.New.OID]; e.New.Mode == git.Symlink && !seen {
			found[e.New.OID] = ""
			links = append(links, e.New.OID)
		}
	}
	if len(links) == 0 {
		return found, nil
	}
	err := m.Objects.Blobs(ctx, links, func(oid git.OID, _ int64, r io.Reader) error {
		target, err := io.ReadAll(io.LimitReader(r, linkTargetBytes))
		found[oid] = string(target)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read where links lead: %w", err)
	}
	return found, nil
}

// statuses are git's letters in words.
var statuses = map[string]string{"A": "added", "C": "added", "D": "deleted", "M": "changed", "R": "renamed", "T": "changed"}

// line says what became of one file. Its note is inert; its path is as stored.
func line(s git.FileStat, targets map[git.OID]string) FileLine {
	l := FileLine{Path: s.Path, From: s.From, Status: statuses[s.Status], Added: s.Added, Removed: s.Removed, Binary: s.Binary, Uncounted: s.Uncounted}
	if l.Status == "" {
		l.Status = "changed"
	}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if s.Status == "M" && s.Old.OID == s.New.OID {
		l.Status = "mode"
	}
	switch {
	case s.New.Mode == git.Executable && s.Old.Mode != git.Executable:
		note("new executable")
	case s.Old.Mode == git.Executable && s.New.Mode == git.File:
		note("no longer executable")
	}
	switch {
	case s.New.Mode == git.Symlink:
		note("link to %s", inert.Path(targets[s.New.OID]))
	case s.New.Mode == git.Submodule || s.Old.Mode == git.Submodule:
		note("submodule")
	case s.Old.Mode == git.Symlink && !s.New.Absent():
		note("was a link")
	}
	if s.Binary {
		note("uninspectable: binary data")
	}
	l.Note = strings.Join(notes, ", ")
	return l
}

// title is the first line of a request that says something, at most TitleRunesMax runes.
func title(text string) string {
	for line := range strings.Lines(strings.ToValidUTF8(text, "\ufffd")) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > TitleRunesMax {
			return string(runes[:TitleRunesMax-1]) + "…"
		}
		return line
	}
	return ""
}

// Beginning is as much of an agent's words as a card has room for.
func Beginning(words string) string { return firstRunes(words, AgentRunesMax) }

// firstRunes returns at most the first n runes of s, as valid UTF-8.
func firstRunes(s string, n int) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(s), "\ufffd"))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

// lastRunes returns at most the last n runes of s, as valid UTF-8.
func lastRunes(s string, n int) string {
	if len(s) > n*utf8.UTFMax { // the rest cannot be among them
		s = s[len(s)-n*utf8.UTFMax:]
	}
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(s), "\ufffd"))
	if len(runes) <= n {
		return string(runes)
	}
	return "…" + string(runes[len(runes)-n+1:])
}

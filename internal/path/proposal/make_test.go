package proposal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/workspace"
)

var day = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

type content struct {
	mode git.Mode
	data string
}

// commit makes a commit with exactly these files on top of from.
func commit(t *testing.T, dir git.Dir, ref string, from git.Commit, files map[string]content) git.Commit {
	t.Helper()
	in := git.Import{Ref: ref, From: from.OID, Message: "m\n", Author: git.Signature{Name: "n", Email: "e", At: day}, Committer: git.Signature{Name: "n", Email: "e", At: day}}
	if from.OID != "" {
		in.Parents = []git.OID{from.OID}
	}
	for p, c := range files {
		w := git.Write{Path: p}
		if c.mode != "" {
			w.Mode, w.Data = c.mode, git.Bytes([]byte(c.data))
		}
		in.Writes = append(in.Writes, w)
	}
	made, err := dir.Import(t.Context(), "test:import", in)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func repository(t *testing.T) git.Dir {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	dir, err := git.InitBare(t.Context(), disk.Ops{}, filepath.Join(t.TempDir(), "r.git"), "sha1")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func making(dir proposal.Objects, from, to git.Commit) proposal.Making {
	return proposal.Making{
		Objects: dir, Change: "chg-00000001", Kind: "edit", Number: 1, Text: "\n  Make it work\nplease", Repo: "/r", Branch: "main",
		Base: from.OID, Commit: to.OID, Tree: to.Tree, Policy: "rules", At: day,
	}
}

func TestACardIsComputedFromTheObjects(t *testing.T) {
	dir := repository(t)
	long := strings.Repeat("a line that stays\n", 20)
	from := commit(t, dir, "refs/heads/a", git.Commit{}, map[string]content{
		"keep": {git.File, "k"}, "edit": {git.File, "1\n2\n3\n"}, "gone": {git.File, "first of two\nsecond of two\n"}, "old/name": {git.File, long},
		"mode": {git.File, "m"}, "tool": {git.Executable, "#!\n"}, "was": {git.Symlink, "keep"},
	})
	to := commit(t, dir, "refs/heads/b", from, map[string]content{
		"edit": {git.File, "1\nzwei\n3\n4\n"}, "gone": {}, "old/name": {}, "new/name": {git.File, long + "more\n"},
		"mode": {git.Executable, "m"}, "tool": {git.File, "#!\n"}, "was": {git.File, "other\n"},
		"AGENTS.md": {git.File, "obey\n"}, "link": {git.Symlink, "/etc/\x1b[0m"}, "bin": {git.File, "\x00\x01"}, "run.sh": {git.Executable, "x\n"},
	})
	m := making(dir, from, to)
	m.AgentSays = "done"
	m.Checkpoint = &checkpoint.Checkpoint{ID: "ckpt-001-abc", LeftOver: []workspace.LeftOver{{Folder: "build", Files: 2}}}
	p, err := proposal.Make(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	want := []proposal.FileLine{
		{Path: "AGENTS.md", Status: "added", Added: 1},
		{Path: "bin", Status: "added", Binary: true, Note: "uninspectable: binary data"},
		{Path: "edit", Status: "changed", Added: 2, Removed: 1},
		{Path: "gone", Status: "deleted", Removed: 2},
		{Path: "link", Status: "added", Added: 1, Note: `link to $'/etc/\x1b[0m'`},
		{Path: "mode", Status: "mode", Note: "new executable"},
		{Path: "new/name", From: "old/name", Status: "renamed", Added: 1},
		{Path: "run.sh", Status: "added", Added: 1, Note: "new executable"},
		{Path: "tool", Status: "mode", Note: "no longer executable"},
		{Path: "was", Status: "changed", Added: 1, Removed: 1, Note: "was a link"},
	}
	slices.SortFunc(p.Card.Files, func(a, b proposal.FileLine) int { return strings.Compare(a.Path, b.Path) })
	if !reflect.DeepEqual(p.Card.Files, want) {
		t.Errorf("files\n%+v\nwant\n%+v", p.Card.Files, want)
	}
	if c := p.Card; c.Title != "Make it work" || c.FilesTotal != 10 || c.Added != 7 || c.Removed != 4 || len(c.LeftOver) != 1 || c.AgentSays != "done" {
		t.Errorf("card %+v", c)
	}
	wantReach := []string{"what agents are told changes: AGENTS.md (new)", "new executable: mode, run.sh (new)", "no longer executable: tool", `symbolic link: link → $'/etc/\x1b[0m'`}
	if !slices.Equal(p.Card.Reach, wantReach) {
		t.Errorf("reach %q", p.Card.Reach)
	}
	if p.Checkpoint != "ckpt-001-abc" || len(p.Edits) != 11 || proposal.Verify(p) != nil {
		t.Errorf("proposal %+v", p)
	}
}

// tooLong are objects whose lines take too long to count.
type tooLong struct{ git.Dir }

func (d tooLong) Stat(ctx context.Context, from, to git.OID, within time.Duration) ([]git.FileStat, error) {
	if within != proposal.CountMax {
		return nil, fmt.Errorf("%s to count the lines", within)
	}
	return d.Dir.Stat(ctx, from, to, 0)
}

func TestACardWhoseLinesTakeTooLongToCountSaysSo(t *testing.T) {
	dir := repository(t)
	from := commit(t, dir, "refs/heads/a", git.Commit{}, map[string]content{"a": {git.File, "1\n"}})
	to := commit(t, dir, "refs/heads/b", from, map[string]content{"a": {git.File, "2\n"}, "b": {git.File, "3\n"}})
	p, err := proposal.Make(t.Context(), making(tooLong{dir}, from, to))
	if err != nil {
		t.Fatal(err)
	}
	p.Card.Spoken = proposal.Speak("-1\n+2\n", true)
	_, _, asks := p.Tell("echo")
	about, _, _ := p.Tell("echo")
	for _, want := range []string{"2 files, lines not counted: that takes more than 20s or 1 GiB of memory\n", "  changed a (lines not counted)\n", "  added b (lines not counted)"} {
		if !strings.Contains(about, want) {
			t.Errorf("it does not say %q:\n%s", want, about)
		}
	}
	if strings.Contains(about, "+0 -0") || !strings.Contains(asks, "its lines were not counted, as that takes more than 20s") {
		t.Errorf("%s\n%s", about, asks)
	}
}

func TestAProposalIsTheSameAfterStorage(t *testing.T) {
	dir := repository(t)
	from := commit(t, dir, "refs/heads/a", git.Commit{}, map[string]content{"a": {git.File, "1\n"}})
	to := commit(t, dir, "refs/heads/b", from, map[string]content{"a": {git.File, "2\n"}})
	p, err := proposal.Make(t.Context(), making(dir, from, to))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back proposal.Proposal
	if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(p, back) {
		t.Errorf("stored\n%+v\nback\n%+v (%v)", p, back, err)
	}
	if strings.Contains(string(raw), "null") {
		t.Errorf("a list is null: %s", raw)
	}
}

func TestTheDigestBindsChangeTreeBaseAndPolicy(t *testing.T) {
	p := proposal.Proposal{Change: "chg-1", Base: "b", Tree: "t", Policy: "p", Digest: proposal.Sum("chg-1", "b", "t", "p")}
	if err := proposal.Verify(p); err != nil {
		t.Error(err)
	}
	for name, alter := range map[string]func(*proposal.Proposal){
		"change": func(p *proposal.Proposal) { p.Change = "chg-2" },
		"base":   func(p *proposal.Proposal) { p.Base = "x" },
		"tree":   func(p *proposal.Proposal) { p.Tree = "x" },
		"policy": func(p *proposal.Proposal) { p.Policy = "x" },
		"digest": func(p *proposal.Proposal) { p.Digest = "" },
	} {
		q := p
		alter(&q)
		if proposal.Verify(q) == nil {
			t.Errorf("an altered %s is not noticed", name)
		}
	}
}

// objects is a world without git.
type objects struct {
	tree  git.OID
	stats []git.FileStat
	err   error
}

func (o objects) Tree(context.Context, git.OID) (git.OID, error) { return o.tree, nil }
func (o objects) Edits(context.Context, git.OID, git.OID) ([]git.Edit, error) {
	return []git.Edit{}, o.err
}
func (o objects) Stat(context.Context, git.OID, git.OID, time.Duration) ([]git.FileStat, error) {
	return o.stats, o.err
}
func (o objects) Blobs(_ context.Context, oids []git.OID, _ func(git.OID, int64, io.Reader) error) error {
	return o.err
}

func TestWhatCannotBeReadIsNotProposed(t *testing.T) {
	c := git.Commit{OID: "c", Tree: "t"}
	good := objects{tree: "t"}
	if _, err := proposal.Make(t.Context(), making(good, c, c)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("disk on fire")
	for name, m := range map[string]proposal.Making{
		"another tree": making(objects{tree: "x"}, c, c),
		"no objects":   making(objects{tree: "t", err: broken}, c, c),
		"no change":    func() proposal.Making { m := making(good, c, c); m.Change = id.Change(""); return m }(),
		"no policy":    func() proposal.Making { m := making(good, c, c); m.Policy = ""; return m }(),
		"links": func() proposal.Making {
			m := making(objects{tree: "t", err: broken}, c, c)
			m.Edits = []git.Edit{{Path: "l", New: git.Entry{Mode: git.Symlink, OID: "1"}}}
			return m
		}(),
	} {
		if p, err := proposal.Make(t.Context(), m); err == nil {
			t.Errorf("%s: proposed as %+v", name, p)
		}
	}
}

func TestACardIsBoundedAndCountsAll(t *testing.T) {
	o := objects{tree: "t"}
	for i := range proposal.FilesShown + 5 {
		o.stats = append(o.stats, git.FileStat{Path: fmt.Sprint(i), Status: "A", Added: 2})
	}
	m := making(o, git.Commit{OID: "b"}, git.Commit{OID: "c", Tree: "t"})
	m.Text = strings.Repeat("é", 500)
	m.AgentSays = "\xff" + strings.Repeat("é", 5000) + " end"
	p, err := proposal.Make(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Card
	if len(c.Files) != proposal.FilesShown || c.FilesTotal != proposal.FilesShown+5 || c.Added != 2*(proposal.FilesShown+5) {
		t.Errorf("%d files of %d, %d lines", len(c.Files), c.FilesTotal, c.Added)
	}
	if n := len([]rune(c.Title)); n != proposal.TitleRunesMax {
		t.Errorf("title has %d runes", n)
	}
	if n := len([]rune(c.AgentSays)); n != proposal.AgentRunesMax || !strings.HasSuffix(c.AgentSays, "é end") {
		t.Errorf("the agent says %d runes", n)
	}

	m.Text, m.AgentSays = strings.Repeat("t", proposal.TitleRunesMax), strings.Repeat("s", proposal.AgentRunesMax) // what fits stays as it is
	m.Wish = m.AgentSays
	if p, err = proposal.Make(t.Context(), m); err != nil || p.Card.Title != m.Text || p.Card.AgentSays != m.AgentSays || p.Card.Wish != m.Wish {
		t.Errorf("what fits is cut: %d, %d, %d, %v", len(p.Card.Title), len(p.Card.AgentSays), len(p.Card.Wish), err)
	}
	m.Wish += "w"
	if p, err = proposal.Make(t.Context(), m); err != nil || p.Card.Wish != strings.Repeat("s", proposal.AgentRunesMax-1)+"…" {
		t.Errorf("a wish that is longer is %q, %v", p.Card.Wish, err)
	}
}

func TestASubmoduleThatComesOrGoesIsNoted(t *testing.T) {
	sub, file := git.Entry{Mode: git.Submodule, OID: "1"}, git.Entry{Mode: git.File, OID: "2"}
	o := objects{tree: "t", stats: []git.FileStat{{Path: "came", Status: "A", New: sub}, {Path: "went", Status: "D", Old: sub}, {Path: "plain", Status: "M", Old: file, New: file}}}
	p, err := proposal.Make(t.Context(), making(o, git.Commit{OID: "b"}, git.Commit{OID: "c", Tree: "t"}))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"submodule", "submodule", ""} {
		if f := p.Card.Files[i]; f.Note != want {
			t.Errorf("%s is noted as %q, not %q", f.Path, f.Note, want)
		}
	}
}

func TestWhatAHostRunsByIsSaidAndBound(t *testing.T) {
	for want, h := range map[string]proposal.Host{
		"": {Schema: 3, Was: 3},
		"the host runs by release abc (build v2)": {Release: "abc", Build: "v2"},
		"an image":                             {StartsFrom: "an image"},
		"its database goes from schema 3 to 4": {Schema: 4, Was: 3},
		"the host runs by release abc (build v2), and its database goes from schema 3 to 4": {Release: "abc", Build: "v2", Schema: 4, Was: 3},
	} {
		if got := h.Runs(); got != want || h.Quiet() != (h.Schema != h.Was) {
			t.Errorf("%+v: %q, quiet %t; want %q", h, got, h.Quiet(), want)
		}
	}
	p := proposal.Proposal{Change: "chg-1", Base: "b", Tree: "t", Policy: "p"}
	plain := p.Sum()
	p.Card.Host = &proposal.Host{}
	if p.Sum() != plain {
		t.Error("a host that runs by the release of now is another proposal")
	}
	p.Card.Host.Release = "abc"
	if p.Sum() == plain {
		t.Error("the release that the host would run by is not bound")
	}
}

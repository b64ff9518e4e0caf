package proposal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/path/proposal"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// planted is a key in the form of one; nobody has it.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

// A card is stored, shown and sent: whatever brought a secret into it, it leaves without one.
func TestNoSecretComesOntoACardByAnyWord(t *testing.T) {
	said := "it is " + planted
	some := []string{"first", said}
	c := proposal.Card{
		Title: said, Wish: said, Note: said, Made: said, Used: said, Subject: said, CommitBy: said, AgentSays: said,
		Reach: some, Drift: some, Then: some, Network: some, Setup: some, Moved: &proposal.Moved{Subjects: some, Paths: some},
		Files:  []proposal.FileLine{{Path: "a"}, {Path: "l", Note: said}},
		Marks:  []policy.Mark{{Path: "a", Says: "plain"}, {Path: "b", Says: said}},
		Checks: []proposal.CheckResult{{Command: "true"}, {Command: said, Why: said, Tail: said, With: said}},
	}
	before := text(t, c)
	clean := text(t, c.Redacted(secret.Default()))
	if strings.Contains(clean, planted) {
		t.Errorf("the card holds it: %s", clean)
	}
	if n, want := strings.Count(clean, "it is [secret"), strings.Count(before, "it is "); n != want || want != 21 {
		t.Errorf("%d of %d words are there without it: %s", n, want, clean)
	}
	if text(t, c) != before {
		t.Error("what the card was made of was written over")
	}
	if empty := text(t, proposal.Card{Drift: []string{}}); text(t, proposal.Card{Drift: []string{}}.Redacted(secret.Default())) != empty {
		t.Error("what is empty, or absent, is it no more")
	}
}

func text(t *testing.T, c proposal.Card) string {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Marks of what results on another head are part of what a yes is bound to.
func TestTheDigestBindsTheGroundOfItsMarks(t *testing.T) {
	p := proposal.Proposal{Change: "chg-1", Base: "b", Tree: "t", Policy: "p"}
	alone := p.Sum()
	p.Card.MarksOn = &proposal.Ground{Head: "h", Tree: "on"}
	elsewhere := p.Sum()
	p.Card.MarksOn = &proposal.Ground{Head: "h", Tree: "other"}
	if other := p.Sum(); alone == elsewhere || elsewhere == other || alone == other {
		t.Errorf("digests %.8s, %.8s and %.8s are to differ", alone, elsewhere, other)
	}
	p.Digest = elsewhere
	if proposal.Verify(p) == nil {
		t.Error("a card whose marks are of another tree passes for the one that was read")
	}
}

func TestAWordIsAskedForExactlyWhereThereAreMarks(t *testing.T) {
	many := make([]policy.Mark, proposal.MarksShown+1)
	for name, c := range map[string]struct {
		marks []policy.Mark
		asked bool
		word  bool
	}{
		"marks":                 {[]policy.Mark{{Path: "a"}}, true, true},
		"more than are shown":   {many, true, true},
		"none":                  {nil, true, false},
		"marks, and no word":    {[]policy.Mark{{Path: "a"}}, false, false},
		"neither marks nor one": {nil, false, false},
	} {
		m := making(objects{tree: "t"}, git.Commit{OID: "b"}, git.Commit{OID: "c", Tree: "t"})
		m.Marks, m.MarksWord = c.marks, c.asked
		p, err := proposal.Make(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if p.Card.MarksWord != c.word || p.Card.MarksTotal != len(c.marks) || len(p.Card.Marks) != min(len(c.marks), proposal.MarksShown) {
			t.Errorf("%s: word %v, %d of %d marks", name, p.Card.MarksWord, len(p.Card.Marks), p.Card.MarksTotal)
		}
	}
}

// What a mark is looked for in: files and executables, the base's side where there is one, and a text that is too large is marked unseen.
func TestMarksAreLookedForInEveryFileThatComes(t *testing.T) {
	dir := repository(t)
	const evil = "a\u202eb\n" // text that reads otherwise than it runs
	from := commit(t, dir, "refs/heads/a", git.Commit{}, map[string]content{"was": {git.File, "plain\n"}, "had": {git.File, evil + "old\n"}})
	to := commit(t, dir, "refs/heads/b", from, map[string]content{
		"file": {git.File, evil}, "run": {git.Executable, evil + "x"}, "was": {git.File, evil + "y"}, "had": {git.File, evil + "old\nmore\n"},
		"plain": {git.File, "plain too\n"}, "package.json": {git.File, `{"scripts":{"postinstall":"x"}}`},
		"full": {git.File, strings.Repeat("plain.\n\n", 1<<19)}, "more": {git.File, strings.Repeat("plain.\n\n", 1<<19) + "\n"}, "long": {git.File, strings.Repeat("long \n", 1<<20)},
		"data": {git.File, "\x00" + string(bytes.Repeat([]byte{1, 0}, 3<<20))},
	})
	edits, err := dir.Edits(t.Context(), from.OID, to.OID)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := proposal.Marks(t.Context(), dir, to.OID, edits, nil)
	if err != nil {
		t.Fatal(err)
	}
	marked := map[string]bool{}
	for _, m := range marks {
		marked[m.Path] = true
	}
	for path, want := range map[string]bool{"file": true, "run": true, "was": true, "long": true, "package.json": true, "full": false, "more": true, "plain": false, "data": false, "had": false} {
		if marked[path] != want {
			t.Errorf("%s is marked: %v", path, marked[path])
		}
	}
	if _, err := proposal.Marks(t.Context(), dir, "0123456789012345678901234567890123456789", edits, nil); err == nil {
		t.Error("a tree that cannot be read has no marks")
	}
}

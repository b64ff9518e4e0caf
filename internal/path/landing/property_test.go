package landing_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/git"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/person/persontest"
)

// names are few, so that edits meet, and odd.
var names = []string{"a", "b", "a.txt", "A", "-rf", "nl\n", "tab\t", "q\"uote", "back\\slash", "é", "e\u0301", "\u202egpj", "\x1b[31m", "%s", "$(x)", "*", " ", "a b"}

func genPath() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(1, 3).Draw(t, "depth")
		parts := make([]string, n)
		for i := range parts {
			parts[i] = rapid.SampledFrom(names).Draw(t, "name")
		}
		return strings.Join(parts, "/")
	})
}

func genBlob() *rapid.Generator[blob] {
	return rapid.Custom(func(t *rapid.T) blob {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return link(rapid.SampledFrom([]string{"a", "../up", "/abs", "nowhere", "\xff"}).Draw(t, "target"))
		case 1:
			return blob{git.Executable, rapid.SampledFrom([]string{"", "#!/bin/sh\n", "x"}).Draw(t, "script")}
		}
		return text(string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")))
	})
}

// genTree draws files of which none is another's folder.
func genTree(t *rapid.T, label string) map[string]blob {
	tree := map[string]blob{}
	for range rapid.IntRange(0, 12).Draw(t, label) {
		p := genPath().Draw(t, "path")
		fits := true
		for q := range tree {
			if strings.HasPrefix(p, q+"/") || strings.HasPrefix(q, p+"/") {
				fits = false
			}
		}
		if fits {
			tree[p] = genBlob().Draw(t, "blob")
		}
	}
	return tree
}

// TestLandingAndRollingBackIsByteIdenticalForAnyTrees draws two trees: what lands is the second one
// (git's own write-tree says so), and what rolling back leaves is the first one, to the last bit of its modes.
func TestLandingAndRollingBackIsByteIdenticalForAnyTrees(t *testing.T) {
	rapidtest.Cases(t, 40)
	persontest.Ordinary(t, "odd modes shut files to their owner")
	dir := t.TempDir()
	n := 0
	rapidtest.Check(t, func(t *rapid.T) {
		n++
		top := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(top, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(top)
		from, to := genTree(t, "from"), genTree(t, "to")
		from["anchor"], to["anchor"] = text("stays"), text("stays")
		r := newRepo(t, top, from)
		put(t, filepath.Join(top, "untracked by anyone"), "u", 0o600)
		for p, b := range from { // permission bits that git does not know
			if b.mode == git.File && rapid.Bool().Draw(t, "odd mode") {
				if err := os.Chmod(filepath.Join(top, p), 0o640); err != nil {
					t.Fatal(err)
				}
			}
		}
		gitIn(t, top, "", "update-index", "-q", "--refresh") // else git takes a chmod for a change as soon as the second is over
		files := maps.Clone(to)
		for p := range from {
			if _, ok := to[p]; !ok {
				files[p] = blob{}
			}
		}
		o := r.order(t, files)
		before := look(t, top)
		done := r.land(t, o)
		if d := after(t, top, string(o.Source)); d != "" {
			t.Fatalf("landed, but %s", d)
		}
		r.land(t, r.back(t, done))
		now := look(t, top)
		now.refs, before.refs = "", ""
		keepModes(before.tree, from, to)
		keepModes(now.tree, from, to)
		if d := differ(now, before); d != "" {
			t.Fatalf("rolled back, but\n%s", d)
		}
		if left := residue(t, r); len(left) > 0 {
			t.Fatalf("left behind: %q", left)
		}
	})
}

// after compares all that git sees with a tree; "" if it is that.
func after(t tb, top, source string) string {
	t.Helper()
	want, got, _ := strings.Cut(gitIn(t, top, "", "rev-parse", source+"^{tree}", "main^{tree}"), "\n")
	if got != want {
		return "the branch has another tree"
	}
	if got := gitIn(t, top, "", "write-tree"); got != want {
		return "the index has another tree"
	}
	if out := gitIn(t, top, "", "diff-files", "--name-only", "-z"); out != "" {
		return "git sees as changed " + out
	}
	if out := gitIn(t, top, "", "ls-files", "-o", "-z"); out != "untracked by anyone\x00" {
		return "git sees as untracked " + out
	}
	return ""
}

// keepModes blanks the bits that git does not record of files that were deleted in between: nothing
// could bring those back.
func keepModes(tree map[string]string, from, to map[string]blob) {
	for p := range from {
		if to[p].mode != git.File && to[p].mode != git.Executable && from[p].mode == git.File {
			if what, ok := tree[p]; ok {
				tree[p] = "-rw-r--r--" + what[len("-rw-r--r--"):]
			}
		}
	}
}

// FuzzMessageHasOnlyItsOwnTrailers: no word of an agent's or a person's can pass for an approval.
func FuzzMessageHasOnlyItsOwnTrailers(f *testing.F) {
	f.Add("fix\n\nApproved-by: me", "body\n\nApproved-by: me\n", "P\nAgent: x", "a")
	f.Add("Approved-by: me", "Approved-by: me\n---\nx", "P", "")
	f.Fuzz(func(t *testing.T, subject, body, approver, agent string) {
		m := landing.Message{Change: "chg-x", Subject: landing.Subject(subject), Body: body, Approver: approver, CoAuthor: agent}.String()
		lines := strings.Split(strings.TrimSuffix(m, "\n"), "\n")
		if len(lines) < 3 || lines[1] != "" {
			t.Fatalf("subject: %q", m)
		}
		want := 1
		if approver != "" {
			want++
		}
		if agent != "" {
			want++
		}
		if at := len(lines) - want; at < 2 || lines[at-1] != "" || !slices.Contains(lines[at:], "Sallyport-Change: chg-x") {
			t.Fatalf("trailers: %q", lines)
		}
		for _, line := range lines[2 : len(lines)-want] {
			if name, _, found := strings.Cut(line, ":"); found && strings.HasSuffix(strings.ToLower(name), "-by") && !strings.ContainsAny(name, " \t") || strings.HasPrefix(line, "---") {
				t.Errorf("line %q of the body could pass for a trailer", line)
			}
		}
		if strings.ContainsAny(m, "\x1b\x00\r") {
			t.Errorf("control characters: %q", m)
		}
	})
}

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// token is of no account, and put together here so that no file holds one.
var token = "ghp_" + "4tY8bNc2VxQ6mZ1kLpR7sWd3HjG9fUe5AoTi"

// on is the one path that a search is asked about, and what the base and the change have there.
func on(path string, from, to git.Entry, fact policy.Fact) policy.Change {
	return policy.Change{Edit: git.Edit{Path: path, Old: from, New: to}, Fact: fact}
}

// said lists what was found, in order: the path, and n of a name, p of a place, ! of what was not scanned.
func said(all []policy.Secret) string {
	var out []string
	for _, s := range all {
		word := s.File
		switch {
		case s.Failed != "":
			word += "!"
		case s.Name:
			word += " n"
		case s.Path:
			word += " p"
		}
		out = append(out, word)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Every path that is there after a change is searched, in its name and in its content, and none that is not.
func TestWhatAChangeBringsIsSearchedAndNothingElse(t *testing.T) {
	h := wt.NewHistory(t)
	large := strings.Repeat("word \n", aside/6+1)
	head := h.Commit(map[string]string{
		"key": token + "\n", "clean": "nothing\n", "again": "x+" + token + "\n", "link": "->" + token, "clean link": "->clean",
		"large": large + token + "\n", "large too": large + token + "\n", "large alone": large + "a=" + token + "\n",
	})
	is := map[string]git.Entry{}
	for _, path := range []string{"key", "clean", "again", "link", "clean link", "large", "large too", "large alone"} {
		entries, err := h.Host.Lookup(gittest.Context(t), head, []string{path})
		if err != nil || entries[0].Absent() {
			t.Fatalf("%s: %v, %v", path, entries, err)
		}
		is[path] = entries[0]
	}
	none, once := git.Entry{}, policy.Fact{HardLinks: 1}
	notRead := git.Entry{Mode: git.File, OID: unread}
	for name, row := range map[string]struct {
		changes []policy.Change
		want    string
	}{
		"a new file":                       {[]policy.Change{on("a", none, is["key"], once)}, "a"},
		"an executable":                    {[]policy.Change{on("a", none, is["again"], once)}, "a"},
		"a link":                           {[]policy.Change{on("a", none, is["link"], once)}, "a"},
		"several paths of one content":     {[]policy.Change{on("a", none, is["key"], once), on("b", none, is["key"], once), on("c", none, is["key"], once)}, "a, b, c"},
		"a large one":                      {[]policy.Change{on("a", none, is["large alone"], once)}, "a"},
		"a large one at several paths":     {[]policy.Change{on("a", none, is["large"], once), on("b", none, is["large too"], once)}, "a, b"},
		"what the base has there":          {[]policy.Change{on("a", is["clean"], is["key"], once)}, "a"},
		"for a file that had it":           {[]policy.Change{on("a", is["again"], is["key"], once)}, ""},
		"for a link that had it":           {[]policy.Change{on("a", is["link"], is["key"], once)}, "a"},
		"a link for a link that had it":    {[]policy.Change{on("a", is["link"], git.Entry{Mode: git.Symlink, OID: is["key"].OID}, once)}, ""},
		"a link for a file that had it":    {[]policy.Change{on("a", is["key"], is["link"], once)}, "a"},
		"what is gone, then another":       {[]policy.Change{on("a", is["key"], none, once), on("b", none, is["key"], once)}, "b"},
		"gone, with a secret in its name":  {[]policy.Change{on(token, is["clean"], none, once)}, ""},
		"gone, from a place of secrets":    {[]policy.Change{on("a.pem", is["clean"], none, once)}, ""},
		"touched, then another":            {[]policy.Change{on("a", is["key"], is["key"], once), on("b", none, is["key"], once)}, "b"},
		"touched, with a secret in a name": {[]policy.Change{on(token, is["clean"], is["clean"], once)}, ""},
		"a secret in a name":               {[]policy.Change{on(token, none, is["clean"], once)}, token + " n"},
		"in the name of a link":            {[]policy.Change{on(token, none, is["clean link"], once)}, token + " n"},
		"in both":                          {[]policy.Change{on(token, none, is["key"], once)}, token + ", " + token + " n"},
		"in the name of what is no file":   {[]policy.Change{on(token, none, none, policy.Fact{Special: "fifo"}), on("b", none, is["key"], once)}, "b, " + token + " n"},
		"of what nobody can read":          {[]policy.Change{on(token, is["clean"], none, policy.Fact{Unreadable: "shut"}), on("b", none, is["key"], once)}, "b, " + token + " n"},
		"of what was not read":             {[]policy.Change{on(token, none, notRead, once), on("b", none, is["key"], once)}, "b, " + token + " n"},
		"of a submodule":                   {[]policy.Change{on(token, none, git.Entry{Mode: git.Submodule, OID: git.OID(strings.Repeat("1", 40))}, once), on("b", none, is["key"], once)}, "b, " + token + " n"},
		"a place of secrets":               {[]policy.Change{on("a.pem", none, is["clean"], once)}, "a.pem p"},
		"one that a submodule takes":       {[]policy.Change{on("secrets", none, git.Entry{Mode: git.Submodule, OID: git.OID(strings.Repeat("1", 40))}, once)}, "secrets p"},
		"a file that is named as one":      {[]policy.Change{on("secrets", none, is["clean"], once)}, ""},
		"a place, and a secret there":      {[]policy.Change{on("a.pem", none, is["key"], once)}, "a.pem, a.pem p"},
		"what is as clean as it was":       {[]policy.Change{on("a", is["clean"], git.Entry{Mode: git.Executable, OID: is["clean"].OID}, once)}, ""},
	} {
		got, err := searching(h.Host, nil, 0).changes(gittest.Context(t), row.changes)
		if err != nil || said(got) != row.want {
			t.Errorf("%s: %s, %v; want %s", name, said(got), err, row.want)
		}
	}

	gone, cancel := context.WithCancelCause(gittest.Context(t))
	cancel(errors.New("the daemon ends"))
	nothing := []policy.Change{on(token, none, notRead, once)} // for which nothing is read
	if got, err := searching(h.Host, nil, 0).changes(gone, nothing); err == nil || !strings.Contains(err.Error(), "the daemon ends") || got != nil {
		t.Errorf("a search that was cut short says %v, %v", got, err)
	}
	missing := []policy.Change{on("a", none, git.Entry{Mode: git.File, OID: git.OID(strings.Repeat("1", 40))}, once)}
	if got, err := searching(h.Host, nil, 0).changes(gittest.Context(t), missing); err == nil || got != nil {
		t.Errorf("of an object that is not there it says %v", got)
	}
	lost := []policy.Change{on("a", git.Entry{Mode: git.File, OID: git.OID(strings.Repeat("1", 40))}, is["key"], once)}
	if got, err := searching(h.Host, nil, 0).changes(gittest.Context(t), lost); err != nil || said(got) != "a, a!" {
		t.Errorf("where the base's cannot be read it says %s, %v", said(got), err)
	}
}

// asked is a cache that counts what it is asked.
type asked struct {
	secret.Cache
	finds int
}

func (a *asked) Find(k secret.Key) ([]secret.Finding, bool) {
	a.finds++
	return a.Cache.Find(k)
}

// What was scanned before is found again without its content, and nothing behind it is left out.
func TestWhatWasScannedBeforeIsFoundAgain(t *testing.T) {
	h := wt.NewHistory(t)
	head := h.Commit(map[string]string{"key": token + "\n", "other": "b = " + token + "\n"})
	entries, err := h.Host.Lookup(gittest.Context(t), head, []string{"key", "other"})
	if err != nil {
		t.Fatal(err)
	}
	cache := &asked{Cache: secret.NewMemory(10)}
	scanner, err := secret.New(secret.Config{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	changes := []policy.Change{on("a", git.Entry{}, entries[0], policy.Fact{}), on("b", git.Entry{}, entries[1], policy.Fact{})}
	host := h.Host
	for _, again := range []bool{false, true} {
		if again {
			host.Path += "-gone"
		}
		got, err := searching(host, scanner, 0).changes(gittest.Restart(t), changes)
		if err != nil || said(got) != "a, b" {
			t.Errorf("again %t: %s, %v", again, said(got), err)
		}
	}
	if cache.finds != 4 {
		t.Errorf("two files that were searched twice are asked for %d times", cache.finds)
	}
}

func TestAllScansTogetherHaveATime(t *testing.T) {
	if s := searching(git.Dir{}, nil, 0); s.within != 5*time.Minute || s.scanner != secret.Default() {
		t.Errorf("it has %s, with %p", s.within, s.scanner)
	}
	own, err := secret.New(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s := searching(git.Dir{}, own, time.Second); s.within != time.Second || s.scanner != own {
		t.Errorf("it has %s, with %p", s.within, s.scanner)
	}
}

// Only a file is compared with a file, and a link with a link: what the base holds excuses nothing else.
func TestWhatABlobIsComparedWith(t *testing.T) {
	s := searching(git.Dir{}, nil, 0)
	modes := []git.Mode{git.File, git.Executable, git.Symlink, git.Submodule, ""}
	got := map[string]string{}
	for _, from := range modes {
		for _, to := range modes {
			c := on("p", git.Entry{Mode: from, OID: "old"}, git.Entry{Mode: to, OID: "new"}, policy.Fact{})
			b := s.blob(c)
			if b.Path != "p" || !b.Fresh || b.Link != (to == git.Symlink) || (b.BaseID == "old") != (b.Base != nil) || (b.ID == "new") != (b.Size == -1) {
				t.Errorf("%q → %q is %+v", from, to, b)
			}
			got[fmt.Sprint(to)] += b.ID + b.BaseID + " "
			c.New.OID = unread
			if b := s.blob(c); b.ID != "" || b.Base != nil {
				t.Errorf("%q → %q that was not read is %+v", from, to, b)
			}
		}
	}
	want := map[string]string{
		string(git.File): "newold newold new new new ", string(git.Executable): "newold newold new new new ",
		string(git.Symlink): "new new newold new new ", string(git.Submodule): "     ", "": "     ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A file that is not what was announced is not clean.
func TestAFileThatIsCutShortIsNotScanned(t *testing.T) {
	s := searching(git.Dir{}, nil, 0)
	for size, want := range map[int64]bool{4: true, 3: false, 5: false} {
		l := &looked{blob: secret.Blob{Path: "p", ID: "id", Size: -1}}
		s.scan(t.Context(), l, size, bytes.NewReader([]byte("1234")))
		if (l.err == nil) != want {
			t.Errorf("of 4 bytes where %d were said: %v", size, l.err)
		}
	}
}

// What was found is told in a policy's words: where it stands, and no secret with it.
func TestWhatWasFoundIsReported(t *testing.T) {
	failed := func(file string) error { return &secret.NotScanned{File: file, Reason: "it is sealed"} }
	shown := "d/[secret: github-token]"
	for name, row := range map[string]struct {
		path     string
		findings []secret.Finding
		err      error
		want     []policy.Secret
	}{
		"nothing":                 {"p", nil, nil, nil},
		"a line":                  {"p", []secret.Finding{{Rule: "r", File: "p", Line: 3}}, nil, []policy.Secret{{File: "p", Kind: "r", Line: 3}}},
		"in an archive":           {"p", []secret.Finding{{Rule: "r", File: "p!in", Line: 3}}, nil, []policy.Secret{{File: "p", Kind: "r", Line: 3, Inside: "in"}}},
		"a name in an archive":    {"p", []secret.Finding{{Rule: "r", File: "p!in"}}, nil, []policy.Secret{{File: "p", Kind: "r", Inside: "in"}}},
		"a file as a whole":       {"p", []secret.Finding{{Rule: "r", File: "p"}}, nil, []policy.Secret{{File: "p", Kind: "r"}}},
		"a name":                  {"d/" + token, []secret.Finding{{Rule: "r", File: shown}}, nil, []policy.Secret{{File: "d/" + token, Kind: "r", Name: true}}},
		"a line below a name":     {"d/" + token, []secret.Finding{{Rule: "r", File: shown, Line: 1}}, nil, []policy.Secret{{File: "d/" + token, Kind: "r", Line: 1}}},
		"a member below a name":   {"d/" + token, []secret.Finding{{Rule: "r", File: shown + "!in"}}, nil, []policy.Secret{{File: "d/" + token, Kind: "r", Inside: "in"}}},
		"it is not scanned":       {"p", nil, failed("p"), []policy.Secret{{File: "p", Failed: "it is sealed"}}},
		"a member is not":         {"p", nil, fmt.Errorf("scan: %w", failed("p!in")), []policy.Secret{{File: "p", Failed: "it is sealed", Inside: "in"}}},
		"it is not read":          {"p", nil, errors.New(token), []policy.Secret{{File: "p", Failed: "the file could not be read"}}},
		"some, and not scanned":   {"p", []secret.Finding{{Rule: "r", File: "p", Line: 1}}, failed("p"), []policy.Secret{{File: "p", Kind: "r", Line: 1}, {File: "p", Failed: "it is sealed"}}},
		"several":                 {"p", []secret.Finding{{Rule: "r", File: "p", Line: 1}, {Rule: "q", File: "p", Line: 2}}, nil, []policy.Secret{{File: "p", Kind: "r", Line: 1}, {File: "p", Kind: "q", Line: 2}}},
		"a sealed one of a token": {"d/" + token, nil, failed(shown), []policy.Secret{{File: "d/" + token, Failed: "it is sealed"}}},
	} {
		s := searching(git.Dir{}, nil, 0)
		got := s.report(&looked{blob: secret.Blob{Path: row.path}, findings: row.findings, err: row.err})
		if !slices.Equal(got, row.want) || s.found != (row.want != nil) {
			t.Errorf("%s: %+v, found %t; want %+v", name, got, s.found, row.want)
		}
		want := row.path
		if strings.Contains(row.path, token) {
			want = shown
		}
		if s.shown(row.path) != want || len(s.names) != len(strings.SplitAfter(row.path, token))-1 {
			t.Errorf("%s: shown as %q, names %q", name, s.shown(row.path), s.names)
		}
	}
}

// Where a secret was found, no violation shows one: not its path, nor what it says. Where none was, all is shown as it is.
func TestNoViolationShowsASecret(t *testing.T) {
	of := func(file string) []policy.Violation {
		return []policy.Violation{{File: "plain", Message: "m"}, {File: file, Message: "leads to " + token, Suggestion: "not " + token}}
	}
	s := searching(git.Dir{}, nil, 0)
	if got := s.blot(of("a")); !slices.EqualFunc(got, of("a"), func(a, b policy.Violation) bool { return a.File == b.File && a.Message == b.Message }) {
		t.Errorf("with nothing found: %+v", got)
	}
	for _, path := range []string{"d/" + token, "d/" + token + "/\xff"} {
		s := searching(git.Dir{}, nil, 0)
		s.report(&looked{blob: secret.Blob{Path: path}, findings: []secret.Finding{{Rule: "r", File: s.scanner.Name(path)}}})
		got := s.blot(of(written(path)))
		if len(got) != 2 || got[0].File != "plain" || got[0].Message != "m" || got[1].File != written(s.scanner.Name(path)) {
			t.Errorf("%q: %+v", path, got)
		}
		if v := fmt.Sprint(got); strings.Contains(v, token[:12]) || !strings.Contains(got[1].Message, "leads to [secret:") || !strings.Contains(got[1].Suggestion, "not [secret:") {
			t.Errorf("%q is shown: %s", path, v)
		}
	}
}

package conversion

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

// standing is a tree with a bit of everything.
var standing = map[string]string{
	".gitattributes": "*.bin filter=lfs\n*.bat text eol=crlf\n*.txt text\n*.id ident\n*.utf working-tree-encoding=UTF-16\nauto/* text=auto\n",
	"a.bin":          "version https://git-lfs\n", "run.bat": "a\nb\n", "empty.bat": "", "one.bat": "word", "a.txt": "a\n", "crlf.txt": "a\r\n", "x.id": "no keyword\n", "y.id": "$Id$\n",
	"z.utf": "a\n", "auto/crlf": "a\r\n", "plain.go": "a\n", "sub/b.bin": "pointer\n", "sub/c.go": "a\n",
}

func TestAChangeToWhatGitConvertsIsRefusedByNameAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		config, info string
		writes       map[string]string // "-" deletes
		door         Door
		want         []string // path, then what is in the reason
	}{
		"what git leaves alone":        {writes: map[string]string{"plain.go": "b\n", "new.go": "a\r\n", "auto/crlf": "b\r\n", "auto/new": "a\r\n", "a.txt": "b\n", "x.id": "other\n", "crlf.txt": "b\n", "one.bat": "other"}},
		"a pointer":                    {writes: map[string]string{"a.bin": "other\n"}, want: []string{"a.bin", "filter=lfs in .gitattributes"}},
		"a pointer that goes":          {writes: map[string]string{"sub/b.bin": "-"}, want: []string{"sub/b.bin", "filter=lfs"}},
		"a new large file":             {writes: map[string]string{"sub/new.bin": "large"}, want: []string{"sub/new.bin", "filter=lfs"}},
		"ends of lines":                {writes: map[string]string{"run.bat": "a\n"}, want: []string{"run.bat", "eol=crlf"}},
		"a first end of line":          {writes: map[string]string{"empty.bat": "a\n"}, want: []string{"empty.bat", "eol=crlf"}},
		"CRLF where git would not":     {writes: map[string]string{"a.txt": "b\r\n"}, want: []string{"a.txt", "text in .gitattributes"}},
		"the same going back":          {writes: map[string]string{"a.txt": "b\r\n"}, door: Land},
		"a keyword":                    {writes: map[string]string{"x.id": "$Id$\n"}, want: []string{"x.id", "ident"}},
		"a keyword that was there":     {writes: map[string]string{"y.id": "none\n"}, want: []string{"y.id", "ident"}},
		"an encoding":                  {writes: map[string]string{"z.utf": "b\n"}, want: []string{"z.utf", "working-tree-encoding=UTF-16"}},
		"all texts":                    {config: "core.autocrlf=true", writes: map[string]string{"plain.go": "b\n", "auto/crlf": "c\r\n"}, want: []string{"plain.go", "core.autocrlf=true in git config"}},
		"texts as they come in":        {config: "core.autocrlf=input", writes: map[string]string{"plain.go": "b\n", "new.go": "a\r\n"}},
		"the repository's own":         {info: "*.go ident filter=mine\n", writes: map[string]string{"plain.go": "b\n"}, want: []string{"plain.go", "filter=mine in .git/info/attributes"}},
		"its own word against a tree":  {info: "*.bin -filter\n", writes: map[string]string{"a.bin": "other\n"}},
		"attributes of nothing":        {writes: map[string]string{".gitattributes": standing[".gitattributes"] + "*.none filter=x\n", "sub/.gitattributes": "*.go text eol=lf\n"}},
		"attributes of what is there":  {writes: map[string]string{".gitattributes": standing[".gitattributes"] + "*.go filter=x\n"}, want: []string{".gitattributes", "plain.go (filter=x in .gitattributes)"}},
		"attributes that go":           {writes: map[string]string{".gitattributes": "-"}, want: []string{".gitattributes", "a.bin (filter=lfs in .gitattributes)"}},
		"attributes further in":        {writes: map[string]string{"sub/.gitattributes": "*.bin -filter\n"}, want: []string{"sub/.gitattributes", "sub/b.bin"}},
		"attributes of what comes too": {writes: map[string]string{".gitattributes": standing[".gitattributes"] + "*.new eol=crlf\n", "b.new": "a\n"}, want: []string{"b.new", "eol=crlf"}},
		"the person's own":             {writes: map[string]string{".config/git/attributes": "*.go filter=x\n"}, want: []string{".config/git/attributes", "read attributes from it"}},
		"a folder of the person's own": {writes: map[string]string{".config": "x"}, want: []string{".config", "read attributes from it"}},
		"texts that have CRLF":         {writes: map[string]string{"auto/.gitattributes": "* text\n"}, want: []string{"auto/.gitattributes", "auto/crlf"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := repository(t, standing)
			top := strings.TrimSpace(run("", "rev-parse", "--show-toplevel"))
			if key, value, ok := strings.Cut(c.config, "="); ok {
				run("", "config", key, value)
			}
			disktest.Put(t, filepath.Join(top, ".git/info/attributes"), c.info, 0o644)
			base := git.OID(strings.TrimSpace(run("", "write-tree")))
			var edits []git.Edit
			for _, p := range slices.Sorted(keys(c.writes)) {
				e := git.Edit{Path: p}
				if text, ok := standing[p]; ok {
					e.Old = git.Entry{Mode: git.File, OID: git.OID(strings.TrimSpace(run(text, "hash-object", "-w", "--no-filters", "--stdin")))}
				}
				if text := c.writes[p]; text != "-" {
					e.New = git.Entry{Mode: git.File, OID: git.OID(strings.TrimSpace(run(text, "hash-object", "-w", "--no-filters", "--stdin")))}
				}
				edits = append(edits, e)
			}
			p, err := git.Open(t.Context(), top)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(t.Context(), p, top)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Judge(t.Context(), p.Common(disk.Ops{}), base, edits, c.door)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.want) == 0 && len(got) == 0 {
				return
			}
			if len(c.want) == 0 || len(got) != 1 || got[0].Path != c.want[0] || !strings.Contains(got[0].Why, c.want[1]) {
				t.Errorf("refused %+v, want %q", got, c.want)
			}
		})
	}
}

func TestAFileOfAttributesThatIsALinkIsRefused(t *testing.T) {
	run := repository(t, standing)
	top := strings.TrimSpace(run("", "rev-parse", "--show-toplevel"))
	oid := strings.TrimSpace(run("* eol=crlf", "hash-object", "-w", "--no-filters", "--stdin"))
	p, err := git.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(t.Context(), p, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := git.Entry{Mode: git.Symlink, OID: git.OID(oid)}
	file := git.Entry{Mode: git.File, OID: git.OID(oid)}
	refused := func(what string, edits ...git.Edit) {
		t.Helper()
		base := git.OID(strings.TrimSpace(run("", "write-tree")))
		if _, err := s.Judge(t.Context(), p.Common(disk.Ops{}), base, edits, Propose); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("one that comes", git.Edit{Path: "new/.gitattributes", New: link})
	run("120000 "+oid+"\tauto/.gitattributes\x00", "update-index", "-z", "--index-info")
	refused("one beside an edit", git.Edit{Path: "auto/crlf", Old: file, New: file})
	refused("one beside an edit of attributes", git.Edit{Path: "sub/.gitattributes", New: file})
}

func keys(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestWhatAPersonHasConfiguredCountsAndWhatCannotBeReadIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string // below the home folder
		says  string            // refused; "" = read
		want  []string          // Said
	}{
		"nothing":               {},
		"of the person":         {map[string]string{".gitconfig": "[core]\n\tautocrlf = true\n"}, "", []string{"core.autocrlf=true in git config"}},
		"their attributes":      {map[string]string{".config/git/attributes": "*.bin filter=lfs\n"}, "", []string{"filter=lfs in "}},
		"attributes by name":    {map[string]string{".gitconfig": "[core]\n\tattributesFile = ~/mine\n", "mine": "[attr]x ident\n"}, "", []string{"ident in "}},
		"no word of git's":      {map[string]string{".gitconfig": "[core]\n\tautocrlf = perhaps\n"}, "core.autocrlf=perhaps", nil},
		"a path from somewhere": {map[string]string{".gitconfig": "[core]\n\tattributesFile = mine\n"}, "core.attributesFile", nil},
		"a folder":              {map[string]string{".config/git/attributes/x": ""}, "no regular file", nil},
		"a NUL byte":            {map[string]string{".config/git/attributes": "*\x00"}, "NUL", nil},
	} {
		t.Run(name, func(t *testing.T) {
			run := repository(t, nil)
			home := t.TempDir()
			for f, text := range c.files {
				disktest.Put(t, filepath.Join(home, f), text, 0o644)
			}
			p, err := git.Open(t.Context(), strings.TrimSpace(run("", "rev-parse", "--show-toplevel")))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(t.Context(), p, home)
			if c.says != "" {
				if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Said(); len(got) != len(c.want) || len(got) > 0 && !strings.HasPrefix(got[0], c.want[0]) {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// FuzzNoLineHidesAFilter holds that no line of a file of attributes hides one that converts.
func FuzzNoLineHidesAFilter(f *testing.F) {
	for _, line := range []string{"*.x text", "\"a b\" filter=x", "\"a\\\" b\" ident", "# filter=x", "*.x\tfilter=x", "\"open filter=x", "[attr]m filter=x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		said, err := (&Limits{}).Said("f", text+"\n* filter=lfs\n")
		if err == nil && !slices.Contains(said, "filter=lfs in f") {
			t.Errorf("%q hides a filter: %q", text, said)
		}
	})
}

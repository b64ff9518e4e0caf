package conversion

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
)

var asked = []string{"text", "crlf", "eol", "filter", "ident", "working-tree-encoding", "binary", "big", "small"}

// repository makes one with files, all of them in its index, and returns a git for it.
func repository(t *testing.T, files map[string]string) func(stdin string, args ...string) string {
	t.Helper()
	top := t.TempDir()
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = top, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "HOME="+top)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v, %s", args, err, out)
		}
		return string(out)
	}
	run("", "init", "-q", ".")
	var index strings.Builder
	blobs := map[string]string{}
	for name, text := range files {
		if blobs[text] == "" {
			blobs[text] = strings.TrimSpace(run(text, "hash-object", "-w", "--no-filters", "--stdin"))
		}
		fmt.Fprintf(&index, "100644 %s\t%s\x00", blobs[text], name)
	}
	run(index.String(), "update-index", "-z", "--index-info")
	return run
}

// ofTexts is the set of files of attributes whose texts are known.
func ofTexts(t *testing.T, c config, fold bool, info, below string, tree map[string]string) *Set {
	t.Helper()
	s := &Set{config: c, tree: map[string]file{}, matcher: &matcher{fold: fold, steps: stepsMax}}
	read := func(name, folder, text string) file {
		f, err := parse(Source{Name: name, Folder: folder, Text: text, Macros: folder == ""})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	s.above, s.below = []file{read("info", "", info)}, []file{read("below", "", below)}
	for folder, text := range tree {
		s.tree[folder] = read(filepath.Join(folder, FileName), folder, text)
	}
	s.learn()
	return s
}

// agree compares what we read with what git reads.
func agree(t *testing.T, fold bool, info, below string, tree map[string]string, paths []string) {
	t.Helper()
	files := map[string]string{}
	for folder, text := range tree {
		files[filepath.Join(folder, FileName)] = text
	}
	git := repository(t, files)
	top := strings.TrimSpace(git("", "rev-parse", "--show-toplevel"))
	for name, text := range map[string]string{".git/info/attributes": info, "below": below} {
		disktest.Put(t, filepath.Join(top, name), text, 0o644)
	}
	out := strings.Split(git(strings.Join(paths, "\x00")+"\x00", slices.Concat([]string{"-c", "core.attributesFile=" + filepath.Join(top, "below"), "-c", fmt.Sprintf("core.ignoreCase=%v", fold),
		"check-attr", "--cached", "-z", "--stdin"}, asked)...), "\x00")
	ours := ofTexts(t, config{}, fold, info, below, tree)
	for i := 0; i+2 < len(out); i += 3 {
		got := "unspecified"
		if g, ok := ours.of(out[i])[out[i+1]]; ok {
			got = g.value
		}
		if got != out[i+2] {
			t.Errorf("%q has %s: %q, git says %q\ninfo: %q\nbelow: %q\ntree: %q", out[i], out[i+1], got, out[i+2], info, below, tree)
		}
	}
}

func TestAttributesAreReadAsGitReadsThem(t *testing.T) {
	agree(t, false,
		"*.info filter=mine\nno* !text\n",
		"*.c eol=crlf\n[attr]small big -ident\n*.below small\n",
		map[string]string{
			"": "[attr]big filter=lfs -text\n*.bin big\n*.BIN text\n# *.c filter=x\n*.c text=auto\nfoo**/bar ident\n/top text\nd/e eol=lf\nd/ filter=no\n" +
				"\"a b\\\" \\303\\244\" eol=crlf\nq?z ident\n**/deep/** ident\na/**/z text\n!neg text\nbad -=x filter=q\n*.png binary\n  lead\ttext\r\n[a-c]x ident\n[!a]y ident\n[[:digit:]]n ident\n[]-]o ident\n\\*star ident\n" +
				"*.u filter=a filter=b\n*.v -filter=c\nx/*/y text\n[[:nope:]]z ident\n[b ident\n*.mm binary=1\n\"[attr]odd\" ident\n*.odd odd\n",
			"d":   "[attr]big text\n*.bin -filter\n/e text\ne/* eol=crlf\n*.c -text\n",
			"d/e": "*.c !eol\nf ident\n",
		},
		[]string{"x.bin", "X.BIN", "x.c", "top", "d/top", "d/e", "d/e/f", "d/e/x.c", "d/x.bin", "d/x.c", "foobar", "foo/bar", "fooa/b/bar", "foo/a/bar", "a b\" \u00e4", "qaz", "q/z",
			"deep/x", "a/deep/x", "a/deep/b/c", "a/z", "a/b/z", "a/b/c/z", "neg", "!neg", "bad", "x.png", "lead", "ax", "dx", "ay", "by", "1n", "]o", "-o", "*star", "astar", "x.u", "x.v", "x.w",
			"x/1/y", "x/1/2/y", "1z", "[b", "x.info", "d/x.info", "now.c", "x.below", "d/e/x.below", "x.mm", "x.odd", "d/e/e/x"})
}

func TestRandomPatternsMatchAsGitMatchesThem(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	word := func(letters []string, most int) string {
		var b strings.Builder
		for range 1 + r.IntN(most) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	pieces := []string{"a", "b", "A", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b]", "[a-c]", "[A-B]", "[]a]", "[[:upper:]]", "[[:alpha:]-]", "[", "\\", "\\*", "-", "**/", "/**", "]", "[\\]]", "[a-]", "[[:x:]]"}
	for _, fold := range []bool{false, true} {
		var lines strings.Builder
		tree := map[string]string{}
		for range 300 {
			fmt.Fprintf(&lines, "%s %s=%d\n", word(pieces, 7), []string{"filter", "eol", "text"}[r.IntN(3)], r.IntN(1000))
		}
		tree[""] = lines.String()
		lines.Reset()
		for range 100 {
			fmt.Fprintf(&lines, "%s %s=%d\n", word(pieces, 6), []string{"filter", "ident"}[r.IntN(2)], r.IntN(1000))
		}
		tree["a"], tree["a/b"] = lines.String(), "** crlf=2\n*/a crlf=3\n"
		var paths []string
		for len(paths) < 300 {
			p := filepath.Clean(strings.Trim(word([]string{"a", "b", "c", "A", "B", "/", "-", "]", "*", "["}, 9), "/"))
			if p != "." && p != "" {
				paths = append(paths, p)
			}
		}
		agree(t, fold, word(pieces, 5)+" ident\n", "* small\n", tree, paths)
	}
}

func TestWhatVersionsOfGitReadDifferentlyIsNotRead(t *testing.T) {
	for name, text := range map[string]string{
		"a NUL byte": "*.c filter=x\x00\n", "a reserved name": "*.c builtin_x filter=d\n", "a long line": strings.Repeat("a", lineMax) + " filter=x\n",
		"a byte order mark": "\ufeff*.c ident\n", "a NUL that is written": "\"*.txt\\000zz\"filter=up\n", "a tab that is written": "\"[attr]foo\\tbar\" filter=lfs\n",
		"too many lines": strings.Repeat("a b\n", linesMax),
	} {
		if _, err := parse(Source{Name: "f", Text: text}); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if f, err := parse(Source{Name: "f", Text: "*.c ident\n#" + strings.Repeat("a", lineMax)}); err != nil || len(f.lines) != 1 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestAMacroIsNamedUpToTheFirstBlank(t *testing.T) {
	for _, text := range []string{"\"[attr]foo\tbar\" filter=lfs\n* foo\n", "\"[attr]\tfoo bar\" filter=lfs\n* foo\n"} {
		agree(t, false, "", "", map[string]string{"": text}, []string{"f.txt"})
	}
}

func TestTheFilesOfAttributesOfATreeAreBoundedTogether(t *testing.T) {
	sum := Limits{}
	one := Source{Name: "f", Text: strings.Repeat("a b\n", linesMax/2-1)}
	if _, err := sum.parse(one); err != nil {
		t.Fatal(err)
	}
	if _, err := sum.parse(one); err != nil {
		t.Fatal(err)
	}
	if _, err := sum.parse(one); problem.KindOf(err) != problem.Refused {
		t.Errorf("a third was read: %v", err)
	}
}

func TestWhatIsTakenFromLinesIsCounted(t *testing.T) {
	s := ofTexts(t, config{}, false, "", "", map[string]string{"": strings.Repeat("* a b c d e f g h\n/abcdefgh x\n", 9_000)})
	s.matcher.steps = 1_000_000
	for i := 0; s.matcher.steps >= 0; i++ {
		if i == 10 {
			t.Fatal("ten paths, 90,000 lines and 720,000 attributes were free")
		}
		s.of("f")
	}
}

func TestAPatternThatTakesForEverEndsUnmatched(t *testing.T) {
	m := &matcher{steps: 1 << 20}
	m.wild(strings.Repeat("**/a*/", 40)+"b", strings.Repeat("aaaaaa/", 80)+"c", true)
	if m.steps >= 0 {
		t.Error("its steps were not counted")
	}
}

// TestWhatGitDoesToBytesIsKnown has git check files out and look at them again.
func TestWhatGitDoesToBytesIsKnown(t *testing.T) {
	contents := map[string]string{
		"empty": "", "word": "word", "lf": "a\nb\n", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\n", "cr": "a\rb\n", "crend": "a\nb\r", "nul": "a\x00\n", "nulcrlf": "a\x00\r\n",
		"eof": strings.Repeat("a", 100) + "\n\032", "odd": "a\n\001\002", "few": strings.Repeat("a", 300) + "\n\001", "id": "x $Id$\n", "idcrlf": "$Id$\r\n", "expanded": "$Id: 1 $\n", "escape": "a\033[1m\n\x7f",
	}
	attributes := []string{"", "text", "-text", "text=auto", "text=input", "crlf", "-crlf", "crlf=input", "eol=lf", "eol=crlf", "text eol=crlf", "text=auto eol=crlf", "text=auto eol=lf", "-text eol=crlf", "ident", "ident eol=crlf",
		"working-tree-encoding=UTF-8", "-working-tree-encoding", "-filter", "filter=none"}
	files := map[string]string{}
	tree := map[string]string{}
	for i, a := range attributes {
		folder := fmt.Sprintf("d%02d", i)
		if a != "" {
			files[folder+"/"+FileName], tree[folder] = "* "+a+"\n", "* "+a+"\n"
		}
		for name, text := range contents {
			files[folder+"/"+name] = text
		}
	}
	for _, c := range []config{{}, {auto: "false", eol: "crlf"}, {auto: "true"}, {auto: "input"}, {auto: "input", eol: "crlf"}, {auto: "false", eol: "native"}} {
		git := repository(t, files)
		if c.auto != "" {
			git("", "config", "core.autocrlf", c.auto)
		}
		if c.eol != "" {
			git("", "config", "core.eol", c.eol)
		}
		git("", "checkout-index", "-a", "-f")
		top := strings.TrimSpace(git("", "rev-parse", "--show-toplevel"))
		old := time.Now().Add(-time.Hour)
		for name := range files {
			if err := os.Chtimes(filepath.Join(top, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
		differs := map[string]bool{}
		for name := range strings.SplitSeq(git("", "diff", "--name-only", "-z"), "\x00") {
			differs[name] = true
		}
		ours := ofTexts(t, c, false, "", "", tree)
		for name, text := range files {
			there, err := os.ReadFile(filepath.Join(top, name))
			if err != nil {
				t.Fatal(err)
			}
			a, because := ours.action(name)
			l := &look{}
			for i := range len(text) { // one by one, as across the edges of a buffer
				_, _ = l.Write([]byte(text[i : i+1]))
			}
			got, sure := a.on(l), a.filter == "" && !strings.HasSuffix(name, "expanded")
			out, in := string(there) != text, differs[name]
			if sure && (got.out != out || !out && got.in != in) || !sure && (out && !got.out || in && !out && !got.in) {
				t.Errorf("%+v, %s in %q (%q): %+v, git: out %v, in %v", c, name, tree[filepath.Dir(name)], because, got, out, in)
			}
		}
	}
}

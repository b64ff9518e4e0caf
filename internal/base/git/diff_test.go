package git_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

func TestADifferenceIsLookedAtUpToAMeasure(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "1")
	write(t, top+"/d/b", "1")
	from := commit(t, top)
	write(t, top+"/a", "2")
	write(t, top+"/d/b", "2")
	write(t, top+"/d/c", "2")
	to := commit(t, top)
	d, ctx := open(t, top), kept(t)
	const differ = 5 // the top, a, d, d/b and d/c
	for most, far := range map[int]bool{0: true, 1: true, differ - 1: true, differ: false, 100: false} {
		edits, err := d.EditsMax(ctx, from, to, most)
		if errors.Is(err, git.ErrFar) != far || far != (err != nil) || far != (edits == nil) {
			t.Errorf("%d at the most: %d edits, %v", most, len(edits), err)
		}
	}
	if edits, err := d.EditsMax(ctx, to, to, 0); len(edits) != 0 || err != nil {
		t.Errorf("of what is the same: %v, %v", edits, err)
	}
	missing := git.OID(strings.Repeat("1", 40))
	for _, pair := range [][2]git.OID{{missing, to}, {from, missing}} {
		if edits, err := d.Edits(ctx, pair[0], pair[1]); edits != nil || problem.KindOf(err) != problem.NotFound {
			t.Errorf("of what is missing: %v, %v", edits, err)
		}
		if whole, err := d.Whole(ctx, pair[0], pair[1]); whole || err != nil {
			t.Errorf("with what is missing it is whole: %v, %v", whole, err)
		}
	}
}

func TestFoldersWithinFoldersAreLookedIntoUpToADepth(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "1")
	base := commit(t, top)
	d := open(t, top)
	for depth, refused := range map[int]bool{4095: false, 4096: true} { // the file lies one deeper
		made, err := d.Import(t.Context(), "t:i", git.Import{
			Ref: "refs/sallyport/t", From: base, Parents: []git.OID{base}, Author: who, Committer: who,
			Writes: []git.Write{{Path: strings.Repeat("d/", depth) + "f", Mode: git.File, Data: git.Text("x")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		edits, err := d.Edits(t.Context(), base, made.OID)
		if refused != (problem.KindOf(err) == problem.Refused) || !refused && (err != nil || len(edits) != 1) {
			t.Errorf("%d folders: %d edits, %v", depth, len(edits), err)
		}
	}
}

func TestAPatchHasTheBytesWhereTheyAreAskedFor(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "\x00\x01")
	from := commit(t, top)
	write(t, top+"/a", "\x00\x02")
	to := commit(t, top)
	for binary, want := range map[bool]string{true: "GIT binary patch", false: "Binary files a/a and b/a differ"} {
		var patch bytes.Buffer
		if err := open(t, top).Patch(t.Context(), &patch, from, to, binary); err != nil || !strings.Contains(patch.String(), want) {
			t.Errorf("%q, %v", &patch, err)
		}
	}
	var patch bytes.Buffer
	if err := open(t, top).Patch(t.Context(), &patch, from, "nothing", true); err == nil {
		t.Errorf("of what is none: %q", &patch)
	}
}

// A file that has landed does not say which later changes are shown (git 2.43 to 2.45 read attributes of HEAD where there is no work tree).
func TestNoAttributeThatLandedHidesADifference(t *testing.T) {
	top := person(t)
	write(t, top+"/.gitattributes", "* -diff\n")
	write(t, top+"/a", "1\n")
	from := commit(t, top)
	write(t, top+"/a", "2\n")
	to := commit(t, top)
	bare := t.TempDir() + "/bare"
	if out, err := exec.Command("git", "clone", "-q", "--bare", top, bare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d := git.Dir{Path: bare}
	var patch bytes.Buffer
	if err := d.Patch(t.Context(), &patch, from, to, false); err != nil || !strings.Contains(patch.String(), "-1\n+2\n") {
		t.Errorf("%q, %v", &patch, err)
	}
	if stats, err := d.Stat(t.Context(), from, to, time.Minute); err != nil || len(stats) != 1 || stats[0].Binary {
		t.Errorf("%+v, %v", stats, err)
	}
}

func TestWhereLinesTakeTooLongToCountTheFilesAreNamedAllTheSame(t *testing.T) {
	top := person(t)
	write(t, top+"/gone", "1\n2\n")
	write(t, top+"/a", "1\n")
	from := commit(t, top)
	if err := os.Rename(top+"/gone", top+"/came"); err != nil {
		t.Fatal(err)
	}
	write(t, top+"/a", "2\n")
	to := commit(t, top)
	for name, test := range map[string]struct {
		within time.Duration
		want   string
	}{
		"in time":  {time.Minute, "M a<- +1 -1 false; R came<-gone +0 -0 false"},
		"too long": {0, "M a<- +0 -0 true; A came<- +0 -0 true; D gone<- +0 -0 true"},
	} {
		stats, err := open(t, top).Stat(t.Context(), from, to, test.within)
		var got []string
		for _, s := range stats {
			got = append(got, fmt.Sprintf("%s %s<-%s +%d -%d %v", s.Status, s.Path, s.From, s.Added, s.Removed, s.Uncounted))
		}
		if strings.Join(got, "; ") != test.want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if stats, err := open(t, top).Stat(ended, from, to, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("once nobody asks any more: %v, %v", stats, err)
	}
}

// How many lines there are to compare is the agent's to choose, and all agents of a machine share its memory.
func TestLinesAreComparedInBoundedMemory(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "1\n")
	from := commit(t, top)
	write(t, top+"/a", "2\n")
	to := commit(t, top)
	d := open(t, top)
	slowGit(t, "diff-tree", fmt.Sprintf(`case " $* " in *' --numstat '* | *' -p '*) ;; *) exec "$git" "$@" ;; esac
until [ "$(ulimit -d)" = %d ]; do :; done
echo 'fatal: Out of memory, malloc failed' >&2
exit 128`, git.DiffMemoryMax>>10))
	stats, err := d.Stat(t.Context(), from, to, time.Minute)
	if err != nil || len(stats) != 1 || !stats[0].Uncounted || stats[0].Path != "a" {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := d.Patch(t.Context(), io.Discard, from, to, false); !errors.Is(err, git.ErrDiffMemory) {
		t.Errorf("the patch: %v", err)
	}
}

// What git says of a difference is read as it stands, or not at all.
func TestStatIsReadToItsEndOrRefused(t *testing.T) {
	top := person(t)
	write(t, top+"/a", "1")
	head := commit(t, top)
	d := open(t, top)
	oid := strings.Repeat("a", 40)
	none := strings.Repeat("0", 40)
	changed := ":100644 100644 " + oid + " " + oid + " M"
	renamed := ":100644 100644 " + oid + " " + oid + " R100"
	for i, c := range []struct{ says, want string }{
		{"", ""},
		{changed + "|a|1\t2\ta|", "M a<- +1 -2 false 100644 100644"},
		{renamed + "|a|b|3\t0\t|a|b|", "R b<-a +3 -0 false 100644 100644"},
		{":100644 100755 " + oid + " " + oid + " C50|a|b|0\t0\t|a|b|", "C b<-a +0 -0 false 100644 100755"},
		{":000000 100644 " + none + " " + oid + " A|a|-\t-\ta|", "A a<- +0 -0 true  100644"},
		{":100644 000000 " + oid + " " + none + " D|a|0\t1\ta|", "D a<- +0 -1 false 100644 "},
		{renamed + "|a|b|" + changed + "|c|3\t4\t|a|b|1\t2\tc|", "R b<-a +3 -4 false 100644 100644;M c<- +1 -2 false 100644 100644"},
		{changed + "|", "!diff ends in the middle of a record"},
		{renamed + "|a|", "!diff ends in the middle of a record"},
		{changed[:20] + "|a|", "!unexpected diff record"},
		{changed + " x|a|", "!unexpected diff record"},
		{changed + "|a|1\ta|", "!unexpected line counts"},
		{changed + "|a|1\t2\tb|", "!line counts for"},
		{renamed + "|a|b|3\t0\t|a|", "!diff ends in the middle of line counts"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir, _ := slowGit(t, "diff-tree", "tr '|' '\\000' < says")
			write(t, dir+"/says", c.says)
			stats, err := d.Stat(t.Context(), head, head, time.Minute)
			var got []string
			for _, s := range stats {
				got = append(got, fmt.Sprintf("%s %s<-%s +%d -%d %v %s %s", s.Status, s.Path, s.From, s.Added, s.Removed, s.Binary, s.Old.Mode, s.New.Mode))
			}
			if why, refused := strings.CutPrefix(c.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), why) || stats != nil {
					t.Errorf("%q, %v; want %q", got, err, why)
				}
			} else if err != nil || strings.Join(got, ";") != c.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

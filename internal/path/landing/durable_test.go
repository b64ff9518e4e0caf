package landing_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
)

// saying is a journal whose writes are told among the calls of a traced body.
func (j *journal) saying() landing.Steps {
	s := j.steps()
	say := func(word string, do func(landing.Landing) error) func(landing.Landing) error {
		return func(l landing.Landing) error { disktest.Say(word); return do(l) }
	}
	return landing.Steps{Journal: say("journal", s.Journal), Close: say("close", s.Close), Again: say("again", s.Again)}
}

// A loss of power may take whatever was not synced, in any order. So the row comes before anything moves, what will be moved is on
// the disk before the desk counts, the index before it is swapped, and everything before the row is closed.
func TestWhatALandingMovesIsOnTheDiskBeforeItCounts(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		r := newRepo(t, dir, map[string]blob{"stays": text("1\n"), "edit": text("1\n"), "gone": text("1\n")})
		o := r.order(t, map[string]blob{"edit": text("2\n"), "gone": {}, "come": text("new\n")})
		o.Landing = "lnd-0000dead"
		l := &landing.Lander{Host: beside}
		objects, err := filepath.Glob(filepath.Join(r.GitDir, "objects", "??"))
		if err != nil {
			t.Fatal(err)
		}
		made := compute(t, l, o)
		done, err := l.Land(gittest.Context(t), made, (&journal{}).saying())
		if err != nil || done.State != landing.Landed {
			t.Fatalf("%s %q, %v", done.State, done.Reason, err)
		}
		disktest.Say("told")
		if slices.Contains(objects, filepath.Join(r.GitDir, "objects", string(done.NewCommit[:2]))) {
			disktest.Say("shared") // one commit in thirty comes to a folder that is there
		}
		modesOfADesk(t, r)
	})
	const desk = `\.git/sallyport-lnd-0000dead`
	disktest.Ordered(t, calls, `say journal`,
		`syncfs \.git`, `rename `+desk+`\.new `+desk, `fsync \.git`,
		`link `+desk+`/lock \.git/index\.lock`, `link `+desk+`/ref-new \.git/refs/heads/main\.lock`,
		`rename \.git/refs/heads/main\.lock \.git/refs/heads/main`,
		`rename gone `+desk+`/slots/\d`, `rename `+desk+`/slots/\d edit`, `rename `+desk+`/slots/\d come`,
		`fsync `+desk+`/index`, `rename `+desk+`/index \.git/index`,
		`rename `+desk+` `+desk+`\.old`, `syncfs \.git`, `say close`, `say told`)
	disktest.Ordered(t, calls, `say journal`, `rename \.git/refs/heads/main\.lock \.git/refs/heads/main`, `say close`)
	const aside = `\.git/objects/tmp_objdir-sallyport-lnd-0000dead`
	disktest.Ordered(t, calls, `syncfs `+aside, `link `+aside+`/../\w+ \.git/objects/../\w+`, `say journal`)
	if !slices.Contains(calls, "say shared") {
		disktest.Ordered(t, calls, `rename `+aside+`/../coming \.git/objects/..`, `link `+aside+`/../\w+ \.git/objects/../\w+`)
	}
}

// modesOfADesk lays a desk and looks at it where it is complete: it holds what is not the person's yet.
func modesOfADesk(t *testing.T, r repo) {
	o := r.order(t, map[string]blob{"edit": text("3\n")})
	looked := false
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "index:lock" && !looked {
			looked = true
			for name, mode := range map[string]os.FileMode{"": 0o700, "slots": 0o700, "note": 0o600} {
				at := filepath.Join(r.GitDir, "sallyport-"+string(o.Landing), name)
				if info, err := os.Stat(at); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s has the mode %v, %v; want %v", at, info.Mode(), err, mode)
				}
			}
		}
		return do()
	}}}
	if err := attempt(t, l, o, &journal{}); err != nil || !looked {
		t.Errorf("looked %v, %v", looked, err)
	}
}

// Where the git directory is on another file system, that of the work tree is brought to the disk too: what is laid out there before it
// moves, and what has moved before the row is closed.
func TestAWorkTreeApartIsOnTheDiskToo(t *testing.T) {
	in := apart(t) // each process has one
	calls := disktest.Calls(t, func(dir string) {
		gitIn(t, dir, "", "init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(in, "git"))
		r := newRepo(t, dir, map[string]blob{"edit": text("1\n")})
		o := r.order(t, map[string]blob{"edit": text("2\n")})
		o.Landing = "lnd-0000dead"
		looked := false
		l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
			if op == "index:lock" { // what comes lies there, and others may enter the work tree
				looked = true
				if info, err := os.Stat(filepath.Join(dir, ".sallyport-lnd-0000dead")); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("what comes lies in a folder of mode %v, %v", info.Mode(), err)
				}
			}
			return do()
		}}}
		made := compute(t, l, o)
		if done, err := l.Land(gittest.Context(t), made, (&journal{}).saying()); err != nil || done.State != landing.Landed || !looked {
			t.Fatalf("%s %q, %v, looked %v", done.State, done.Reason, err, looked)
		}
	})
	disktest.Ordered(t, calls, `say journal`, `syncfs \.`, `rename \.sallyport-lnd-0000dead/\d edit`, `syncfs \.`, `say close`)
}

// The way back of a branch that the landing made writes packed-refs anew: half of it would be other people's branches gone.
func TestPackedBranchesAreOnTheDiskBeforeTheyAreSwapped(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		r := newRepo(t, dir, map[string]blob{"edit": text("1\n")})
		o := r.order(t, map[string]blob{"edit": text("2\n")})
		o.Landing, o.Branch, o.WorkTree, o.New = "lnd-0000dead", "made", false, true
		pack := func() { gitIn(t, r.Top, "", "pack-refs", "--all", "--no-prune"); disktest.Say("packed") }
		j := &journal{}
		l := &landing.Lander{Host: beside, Ops: failingAfterTheBranch(&disktest.Crash{At: -1}, pack)}
		made := compute(t, l, o)
		if done, err := l.Land(gittest.Context(t), made, j.saying()); err != nil || done.State != landing.Undone {
			t.Errorf("%s %q, %v", done.State, done.Reason, err)
		}
	})
	disktest.Ordered(t, calls, `say packed`,
		`fsync \.git/sallyport-lnd-0000dead/ref-packed`, `rename \.git/packed-refs\.lock \.git/packed-refs`,
		`remove \.git/refs/heads/made`, `syncfs \.git`, `say close`)
}

// A reflog that is new gets its place once it is whole and its owner's: root's own, left by a crash, would stop each commit of theirs.
func TestANewReflogIsWholeBeforeItGetsItsPlace(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		r := newRepo(t, dir, map[string]blob{"edit": text("1\n")})
		o := r.order(t, map[string]blob{"edit": text("2\n")})
		o.Landing = "lnd-0000dead"
		if err := os.RemoveAll(filepath.Join(r.GitDir, "logs")); err != nil {
			t.Fatal(err)
		}
		r.land(t, o)
	})
	disktest.Ordered(t, calls,
		`rename \.git/sallyport-lnd-0000dead/log \.git/logs/refs/heads/main`, `rename \.git/sallyport-lnd-0000dead/log \.git/logs/HEAD`,
		`rename \.git/refs/heads/main\.lock \.git/refs/heads/main`)
}

// What lands is held against what was approved once more when the commit is made: by then an hour may have passed,
// and the row between may be another than was computed.
func TestWhatIsNotWhatWasComputedIsNotJournaled(t *testing.T) {
	for _, branch := range []string{"main", "apart"} { // apart has no file and no index that could tell
		t.Run(branch, func(t *testing.T) {
			r := testRepo(t, map[string]blob{"a": text("1\n"), "b": text("2\n")})
			gitIn(t, r.Top, "", "branch", "apart")
			o := r.order(t, map[string]blob{"a": text("3\n"), "b": text("4\n")})
			o.Branch, o.WorkTree = branch, branch == "main"
			spoilt(t, r, o)
		})
	}
}

// spoilt lands rows that are not what was computed.
func spoilt(t *testing.T, r repo, o landing.Order) {
	t.Helper()
	l := &landing.Lander{Host: beside}
	made := compute(t, l, o)
	before := look(t, r.Top)
	for name, spoil := range map[string]func(*landing.Landing){
		"checks ran on another tree":      func(l *landing.Landing) { l.Checked = l.Head },
		"a path stood otherwise before":   func(l *landing.Landing) { l.Edits[0].Old.OID = l.Edits[1].Old.OID },
		"a path was not there before":     func(l *landing.Landing) { l.Edits[0].Old = git.Entry{} },
		"a path that changes nothing":     func(l *landing.Landing) { l.Edits[0].New = l.Edits[0].Old },
		"a path that is named twice":      func(l *landing.Landing) { l.Edits = append(l.Edits, l.Edits[1]) },
		"a path out of the work tree":     func(l *landing.Landing) { l.Edits[0].Path = "../out" },
		"a path in the git directory":     func(l *landing.Landing) { l.Edits[0].Path = ".GIT/config" },
		"another head than it stands on":  func(l *landing.Landing) { l.Head = l.Edits[0].Old.OID },
		"an object that is not there":     func(l *landing.Landing) { l.Edits[0].New.OID = l.Head[:39] + "0" },
		"a mode that git does not know":   func(l *landing.Landing) { l.Edits[0].New.Mode = "100600" },
		"a submodule in a file's place":   func(l *landing.Landing) { l.Edits[0].New.Mode = git.Submodule },
		"a name with a byte that ends it": func(l *landing.Landing) { l.Edits[0].Path = "a\x00b" },
	} {
		bad := made
		bad.Edits = slices.Clone(made.Edits)
		bad.State = landing.Undone // of an earlier try
		spoil(&bad)
		j := &journal{}
		if done, err := l.Land(gittest.Context(t), bad, j.steps()); err == nil || done.State != "" || j.row != nil {
			t.Errorf("%s: %q, %v, row %+v; want an error and no row", name, done.State, err, j.row)
		}
	}
	unchanged(t, r, before)
	if refs := refsBeside(t, r); refs != "" {
		t.Errorf("the tries have left %s", refs)
	}
}

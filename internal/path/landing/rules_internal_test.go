package landing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
)

var (
	oneFile = git.Entry{Mode: git.File, OID: "1"}
	another = git.Entry{Mode: git.File, OID: "2"}
	program = git.Entry{Mode: git.Executable, OID: "1"}
	aLink   = git.Entry{Mode: git.Symlink, OID: "1"}
)

func TestAFolderIsNeededByWhatComesBelowItOnly(t *testing.T) {
	edits := []git.Edit{{Path: "come/deep/x", New: oneFile}, {Path: "gone/x", Old: oneFile}, {Path: "stays", Old: oneFile, New: another}}
	for folder, want := range map[string]bool{
		"come": true, "come/deep": true, "come/dee": false, "come/deep/x": false, "gone": false, "stays": false, "elsewhere": false,
	} {
		if needed(folder, edits) != want {
			t.Errorf("%s is needed: %t", folder, !want)
		}
	}
	for path, want := range map[string]bool{"gone/x": true, "gone": false, "stays": false, "come/deep/x": false, "zz": false} {
		if deleted(path, edits) != want {
			t.Errorf("%s is deleted: %t", path, !want)
		}
	}
}

func TestAFolderComesBeforeThoseBelowIt(t *testing.T) {
	got := folders([]string{"b/c/d/file", "a/z/file", "b/other", "top", "a-b/file"})
	if want := []string{"a", "a-b", "a/z", "b", "b/c", "b/c/d"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a landing finds counts as untouched only if it is the old file, and has its rights and its owner still.
func TestAFileIsUntouchedWithItsRightsAndItsOwnerOnly(t *testing.T) {
	was := step{Edit: git.Edit{Old: oneFile, New: another}, Perm: 0o640, UID: 1, GID: 2}
	for name, c := range map[string]struct {
		change func(*found)
		want   bool
	}{
		"as it was":      {func(*found) {}, true},
		"other bytes":    {func(f *found) { f.OID = "2" }, false},
		"gone":           {func(f *found) { *f = found{} }, false},
		"a link now":     {func(f *found) { f.Mode = git.Symlink }, false},
		"other rights":   {func(f *found) { f.Stat.Mode = unix.S_IFREG | 0o600 }, false},
		"a set-uid bit":  {func(f *found) { f.Stat.Mode |= unix.S_ISUID }, false},
		"another owner":  {func(f *found) { f.Stat.Uid = 3 }, false},
		"another group":  {func(f *found) { f.Stat.Gid = 3 }, false},
		"read meanwhile": {func(f *found) { f.Stat.Atim.Sec++ }, true},
	} {
		f := found{Entry: oneFile, Exists: true, Stat: unix.Stat_t{Mode: unix.S_IFREG | 0o640, Uid: 1, Gid: 2}}
		c.change(&f)
		if was.untouched(f, true) != c.want {
			t.Errorf("%s: untouched %t", name, !c.want)
		}
	}
}

func TestWhatIsFoundIsAnEntryByItsBytesAndByTheModeThatCounts(t *testing.T) {
	here := func(e git.Entry) found { return found{Entry: e, Exists: true} }
	folder := found{Exists: true, Stat: unix.Stat_t{Mode: unix.S_IFDIR}}
	for name, c := range map[string]struct {
		is      found
		want    git.Entry
		counted bool // executable bits mean something
		same    bool
	}{
		"the same":                        {here(oneFile), oneFile, true, true},
		"other bytes":                     {here(oneFile), another, false, false},
		"a program for a file":            {here(program), oneFile, true, false},
		"where modes mean nothing":        {here(program), oneFile, false, true},
		"the other way round":             {here(oneFile), program, false, true},
		"a link for a file":               {here(aLink), oneFile, false, false},
		"a file for a link":               {here(oneFile), aLink, false, false},
		"nothing where nothing is wanted": {found{}, git.Entry{}, true, true},
		"something there":                 {here(oneFile), git.Entry{}, true, false},
		"a folder there":                  {folder, git.Entry{}, true, false},
		"a folder for a file":             {folder, oneFile, true, false},
		"nothing for a file":              {found{}, oneFile, true, false},
	} {
		if c.is.is(c.want, c.counted) != c.same {
			t.Errorf("%s: the same %t", name, !c.same)
		}
	}
	if !folder.isFolder() || here(oneFile).isFolder() || (found{Stat: folder.Stat}).isFolder() {
		t.Error("a folder is what is there and is one")
	}
}

func TestOneBranchIsTakenOutOfThePackedOnesWithWhatItPeelsTo(t *testing.T) {
	const head, team, peeled, newer = "# pack-refs with: peeled fully-peeled sorted refs/heads/team/new\n", "11 refs/heads/team\n", "^22\n", "33 refs/heads/team/new\n"
	for name, c := range map[string]struct {
		raw, rest string
		found     bool
	}{
		"it is in the middle":       {head + team + peeled + newer + "44 refs/tags/x\n" + peeled, head + team + peeled + "44 refs/tags/x\n" + peeled, true},
		"it peels":                  {head + newer + peeled + team, head + team, true},
		"another one peels":         {head + team + peeled, head + team + peeled, false},
		"longer and shorter names":  {"1 refs/heads/team/newer\n2 refs/heads/team/ne\n", "1 refs/heads/team/newer\n2 refs/heads/team/ne\n", false},
		"the last line has no end":  {head + team + strings.TrimSuffix(newer, "\n"), head + team, true},
		"a remark of the same form": {"# refs/heads/team/new\n" + team, "# refs/heads/team/new\n" + team, false},
		"nothing":                   {"", "", false},
	} {
		if rest, found := withoutRef([]byte(c.raw), "refs/heads/team/new"); string(rest) != c.rest || found != c.found {
			t.Errorf("%s: %q, %t", name, rest, found)
		}
	}
}

func TestTheRightsOfWhatReplacesAFileAreItsOwnButForGitsBit(t *testing.T) {
	for _, c := range []struct {
		perm     uint32
		old, new git.Mode
		want     uint32
	}{
		{0o640, git.File, git.File, 0o640},
		{0o4755, git.Executable, git.Executable, 0o755},
		{0o2640, git.File, git.Executable, 0o750},
		{0o600, git.File, git.Executable, 0o700},
		{0o044, git.File, git.Executable, 0o155},
		{0o755, git.Executable, git.File, 0o644},
		{0o6711, git.Executable, git.File, 0o600},
	} {
		st := &step{Edit: git.Edit{Old: git.Entry{Mode: c.old}, New: git.Entry{Mode: c.new}}, Perm: c.perm}
		if got := permission(st); got != c.want {
			t.Errorf("%o of %s becomes %o as %s, want %o", c.perm, c.old, got, c.new, c.want)
		}
	}
}

func TestManyPathsAreNamedByTheFirstTen(t *testing.T) {
	paths := strings.Split("a b c d e f g h i j k l", " ")
	if got := listed(paths[:10]); got != "a, b, c, d, e, f, g, h, i, j" {
		t.Errorf("ten: %s", got)
	}
	if got := listed(paths); got != "a, b, c, d, e, f, g, h, i, j and 2 more" {
		t.Errorf("twelve: %s", got)
	}
}

// A path that is no file of a work tree reaches neither a tree nor a disk.
func TestOnlySoundEditsGetPastTheLastDoor(t *testing.T) {
	s := &site{}
	for path, want := range map[string]bool{
		"a": true, "a/b": true, "..a": true, ".gitignore": true, "a/.gitx": true, "é": true,
		"": false, "/a": false, "a/": false, "./a": false, "a//b": false, "..": false, "../a": false, "a/../b": false,
		".git": false, ".git/config": false, "a/.GiT/hooks": false, "a\x00b": false, "\xff": false, ".": false,
	} {
		if err := s.sound([]git.Edit{{Path: path, New: oneFile}}); (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, mode := range []git.Mode{git.File, git.Executable, git.Symlink, git.Submodule, git.Folder, "100600", ""} {
		want := mode == git.File || mode == git.Executable || mode == git.Symlink
		side := git.Entry{Mode: mode, OID: "1"}
		if err := s.sound([]git.Edit{{Path: "a", New: side}}); (err == nil) != want {
			t.Errorf("a new file of mode %q: %v", mode, err)
		}
		if err := s.sound([]git.Edit{{Path: "a", Old: side}}); (err == nil) != want {
			t.Errorf("an old file of mode %q: %v", mode, err)
		}
	}
	if err := s.sound([]git.Edit{{Path: "a", New: oneFile}, {Path: "a", New: another}}); err == nil {
		t.Error("one path twice")
	}
	if err := s.sound([]git.Edit{{Path: "a", New: oneFile}, {Path: "b", New: oneFile}}); err != nil {
		t.Errorf("two paths: %v", err)
	}
}

// TestAnAttributeThatCannotBeCopiedIsNamed: what replaces a file has what the person has marked it with, or does not come. What the kernel
// labels it with is the kernel's business.
func TestAnAttributeThatCannotBeCopiedIsNamed(t *testing.T) {
	none, err := os.Open("/proc/version") // it has no attributes, and gets none
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	for name, fails := range map[string]bool{"": false, "user.mine": true, "security.selinux": false} {
		from, err := os.Create(filepath.Join(t.TempDir(), "marked"))
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		if name != "" {
			if err := unix.Fsetxattr(int(from.Fd()), name, []byte("kept"), 0); err != nil {
				t.Logf("no %s here: %v", name, err)
				continue
			}
		}
		if err := copyAttributes(int(from.Fd()), int(none.Fd())); (err != nil) != fails || fails && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestWhoHoldsWhatALandingNeedsIsWaitedForAWhile: for a second a landing, and for two a person's git.
func TestWhoHoldsWhatALandingNeedsIsWaitedForAWhile(t *testing.T) {
	for usual, said := range map[time.Duration]time.Duration{waitForLanding: time.Second, waitForGit: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began, tries := time.Now(), 0
			done, err := poll(t.Context(), (&Lander{}).wait(usual), func() (bool, error) {
				if tries++; tries > 1000 {
					return false, errors.New("it is asked without a rest")
				}
				return false, nil
			})
			if took := time.Since(began); done || err != nil || took < said || took > said+said/10 || tries < 10 {
				t.Errorf("%v: done %t, %v, after %v and %d tries", said, done, err, took, tries)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := poll(t.Context(), (&Lander{Wait: time.Minute}).wait(waitForGit), func() (bool, error) { return false, nil }); err != nil || time.Since(began) < time.Minute {
			t.Errorf("told to wait for a minute: %v, after %v", err, time.Since(began))
		}
	})
}

// TestALockThatIsGivenBackIsWaitedForNoLonger: the landing goes on as soon as a person's git is done.
func TestALockThatIsGivenBackIsWaitedForNoLonger(t *testing.T) {
	for _, lock := range []string{"index.lock", "refs/heads/main.lock"} {
		dir := t.TempDir()
		at := filepath.Join(dir, lock)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		folder, err := openFolder(dir, "sha1", uint32(os.Geteuid()))
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		s := &site{gitDir: folder, common: folder}
		synctest.Test(t, func(t *testing.T) {
			began, rest := time.Now(), 10*waitStep
			gone := make(chan error, 1)
			time.AfterFunc(rest, func() { gone <- os.Remove(at) })
			err := s.unlocked(t.Context(), "main", true, waitForGit)
			if took := time.Since(began); errors.Join(err, <-gone) != nil || took < rest || took > rest+2*waitStep {
				t.Errorf("%s: %v, after %v", lock, err, took)
			}
		})
	}
}

// TestAPackIsNamedBeforeItsIndex: git looks for the index, and takes what it finds for whole.
func TestAPackIsNamedBeforeItsIndex(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "aside/pack"), 0o700); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, ext := range []string{".pack", ".rev", ".idx"} { // a file system in memory lists the newest first
		for n := range 8 {
			name := fmt.Sprintf("pack-%d%s", n, ext)
			want = append(want, name)
			disktest.Put(t, filepath.Join(dir, "aside/pack", name), "", 0o600)
		}
	}
	half, folder := filepath.Join(dir, "aside/pack/tmp_pack_1"), filepath.Join(dir, "aside/pack/pack-9.pack")
	if err := errors.Join(os.WriteFile(half, nil, 0o600), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	common, err := openFolder(dir, "sha1", uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer common.Close()
	got, err := objects{&site{common: common}}.packs("aside")
	if err != nil || len(got) != len(want) {
		t.Fatalf("%q, %v", got, err)
	}
	for i, name := range got {
		if strings.HasSuffix(name, ".idx") != (i >= 16) {
			t.Errorf("%s is number %d of %q", name, i, got)
		}
	}
}

// TestGitIsToldTheStampOfAFileOnlyWhereAnEditWouldChangeIt: else git would call clean what a person has written since.
func TestGitIsToldTheStampOfAFileOnlyWhereAnEditWouldChangeIt(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(dir, "sha1", uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	oid, err := git.HashBlob("sha1", 1, strings.NewReader("1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body string
		age  time.Duration
		told bool
	}{
		"an old file":            {"1", time.Hour, true},
		"one that comes now":     {"1", 0, true},
		"one of the future":      {"1", -time.Hour, false},
		"other bytes, and old":   {"2", time.Hour, false},
		"other bytes, just come": {"2", 0, false},
	} {
		at := filepath.Join(dir, name)
		disktest.Put(t, at, c.body, 0o644)
		if stamp := time.Now().Add(-c.age); c.age != 0 {
			if err := os.Chtimes(at, stamp, stamp); err != nil {
				t.Fatal(err)
			}
		}
		got := f.freshStat(name, git.Entry{Mode: git.File, OID: oid})
		back := time.Now()
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if c.told != (got != git.Stat{}) || c.told && (int64(got.MtimeSec) != info.ModTime().Unix() || got.Size != 1) {
			t.Errorf("%s: told %+v, of %v", name, got, info.ModTime())
		}
		if c.told && back.Sub(info.ModTime()) < tick {
			t.Errorf("%s: told %v after it was written", name, back.Sub(info.ModTime()))
		}
	}
}

// TestAsRootAFileIsGivenToItsOwnerAndItsGroup: one of the two may be right already.
func TestAsRootAFileIsGivenToItsOwnerAndItsGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	at := filepath.Join(t.TempDir(), "file")
	disktest.Put(t, at, "", 0o600)
	for _, was := range [][2]int{{0, 0}, {54321, 0}, {0, 54322}, {54321, 54322}} {
		var st unix.Stat_t
		err := errors.Join(os.Lchown(at, was[0], was[1]), chown(unix.AT_FDCWD, at, 54321, 54322), unix.Lstat(at, &st))
		if err != nil || st.Uid != 54321 || st.Gid != 54322 {
			t.Errorf("of %v it became %d:%d, %v", was, st.Uid, st.Gid, err)
		}
	}
}

// TestALandingIsUnfinishedUntilItsEnd, and a stranded one until a person has left it as it stands.
func TestALandingIsUnfinishedUntilItsEnd(t *testing.T) {
	for _, c := range []struct {
		state       State
		ended, want bool
	}{
		{"", false, false}, {Journaled, false, true}, {Stranded, false, true}, {Stranded, true, false},
		{Landed, true, false}, {Undone, true, false}, {Landed, false, false}, {Undone, false, false},
	} {
		l := Landing{State: c.state}
		if c.ended {
			l.Ended = new(time.Time)
		}
		if l.Unfinished() != c.want {
			t.Errorf("%q, ended %t: unfinished %t", c.state, c.ended, !c.want)
		}
	}
}

// TestPackedBranchesThatAreNoFileOrNeverEndAreNotRead: a sparse file costs nothing, and can claim as much as it likes.
func TestPackedBranchesThatAreNoFileOrNeverEndAreNotRead(t *testing.T) {
	dir := t.TempDir()
	common, err := openFolder(dir, "sha1", uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer common.Close()
	s, at := &site{common: common}, filepath.Join(dir, packedRefs)
	for _, c := range []struct {
		what string
		make func() error
		want error
	}{
		{"nothing", func() error { return nil }, nil},
		{"a folder", func() error { return os.Mkdir(at, 0o700) }, ErrOddState},
		{"a file", func() error { return errors.Join(os.Remove(at), os.WriteFile(at, []byte("refs\n"), 0o600)) }, nil},
		{"a file without end", func() error { return os.Truncate(at, packedMax+1) }, ErrOddState},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.packed(); !errors.Is(err, c.want) {
			t.Fatalf("%s: %v", c.what, err)
		}
	}
}

// TestOnlyTwoNamesOfOneFileAreTwins: what git's own folder holds under the same name is theirs.
func TestOnlyTwoNamesOfOneFileAreTwins(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	err := errors.Join(os.WriteFile(one, nil, 0o600), os.WriteFile(other, nil, 0o600), os.Link(one, filepath.Join(dir, "second name")))
	if err != nil {
		t.Fatal(err)
	}
	common, err := openFolder(dir, "sha1", uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer common.Close()
	for _, c := range []struct {
		a, b string
		want bool
	}{{"one", "second name", true}, {"one", "one", true}, {"one", "other", false}, {"one", "none", false}, {"none", "one", false}, {"none", "none", false}} {
		if (objects{&site{common: common}}).twins(c.a, c.b) != c.want {
			t.Errorf("%s and %s are twins: %t", c.a, c.b, !c.want)
		}
	}
}

// TestALockOfNobodyThatCanBeSeenIsSaidToBeOne: no process 0 is named, whom nobody could ask.
func TestALockOfNobodyThatCanBeSeenIsSaidToBeOne(t *testing.T) {
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := locked(folder); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "a process that cannot be seen from here holds a lock") {
		t.Error(err)
	}
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := locked(folder); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Error(err)
	}
}

// TestAFolderThatGoesUnderOurHandsIsMadeAgainAFewTimes: a person's git tidies up among its objects, and no other fault goes by itself.
func TestAFolderThatGoesUnderOurHandsIsMadeAgainAFewTimes(t *testing.T) {
	gone := fmt.Errorf("open: %w", unix.ENOENT)
	for name, c := range map[string]struct {
		ends  []error // of the tries; the last one stays
		want  error
		tries int
	}{
		"at once":          {[]error{nil}, nil, 1},
		"the third time":   {[]error{gone, gone, nil}, nil, 3},
		"never":            {[]error{gone}, unix.ENOENT, linkTries},
		"a full disk":      {[]error{unix.ENOSPC}, unix.ENOSPC, 1},
		"a full disk then": {[]error{gone, unix.ENOSPC}, unix.ENOSPC, 2},
	} {
		tries := 0
		err := again(func() error { tries++; return c.ends[min(tries, len(c.ends))-1] })
		if !errors.Is(err, c.want) || tries != c.tries {
			t.Errorf("%s: %v after %d tries, want %v after %d", name, err, tries, c.want, c.tries)
		}
	}
}

// TestAFileThatCannotBeReadIsNotTakenForOneThatIsWrittenTo: a person looks for a program in one case, and at their disk in the other.
func TestAFileThatCannotBeReadIsNotTakenForOneThatIsWrittenTo(t *testing.T) {
	own, err := os.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for name, want := range map[string]error{"mem": unix.EIO, "status": errChanging} { // nothing is at address 0, and a state claims no bytes
		_, err := lookAt(int(own.Fd()), name, "sha1")
		if !errors.Is(err, want) || want != errChanging && errors.Is(err, errChanging) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// TestASmallFileIsReadAndNothingElseIsTakenForOne: whoever may write to a git directory could have us wait at a pipe.
func TestASmallFileIsReadAndNothingElseIsTakenForOne(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.WriteFile(at("file"), []byte("words\n"), 0o600), os.WriteFile(at("large"), make([]byte, smallMax+1), 0o600), os.Mkdir(at("folder"), 0o700),
		os.Symlink("file", at("link")), unix.Mkfifo(at("pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	f, err := openFolder(dir, "sha1", uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, c := range map[string]struct {
		text string
		read bool
	}{
		"file": {"words\n", true}, "large": {string(make([]byte, smallMax)), true}, "none": {"", true}, "folder": {"", true}, "file/below": {"", true},
		"link": {"", false}, "pipe": {"", false},
	} {
		if text, err := f.small(name); text != c.text || (err == nil) != c.read {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

package landing_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/adler32"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/path/landing"
)

// tb is what a test or a property's check offers.
type tb interface {
	gittest.TB
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// gitIn runs the real git as a person would.
func gitIn(t tb, dir, stdin string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, stdin, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

func tryGit(dir, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "maintenance.auto=false"}, args...)...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=P", "GIT_AUTHOR_EMAIL=p@example.org", "GIT_COMMITTER_NAME=P", "GIT_COMMITTER_EMAIL=p@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// blob is a file of an approved tree; the zero blob is a deletion.
type blob struct {
	mode git.Mode
	text string
}

func text(s string) blob { return blob{git.File, s} }
func link(s string) blob { return blob{git.Symlink, s} }

// repo is a person's repository.
type repo struct {
	git.Project
	dir git.Dir
}

func openRepo(t tb, top string) repo {
	t.Helper()
	p, err := git.Open(gittest.Context(t), top)
	if err != nil {
		t.Fatal(err)
	}
	r := repo{p, p.Common(disk.Ops{})}
	r.closes(t)
	return r
}

// closes has a test fail that leaves a file of the repository open at its end.
func (r repo) closes(t tb) {
	t.Cleanup(func() {
		for at, n := range openBelow(t, r) {
			t.Errorf("%s is open still, %d times", at, n)
		}
	})
}

// openBelow counts what this process has open of a repository, by its name. A daemon lands for months: one descriptor of each way through would
// be its end.
func openBelow(t tb, r repo) map[string]int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]int{}
	for _, fd := range fds {
		at, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		for _, top := range []string{r.Top, r.CommonDir} {
			if at == top || strings.HasPrefix(at, top+"/") {
				open[at]++
				break
			}
		}
	}
	return open
}

// newRepo makes a repository whose main has a commit of files, and one upon it for each further edit.
func newRepo(t tb, top string, files map[string]blob, edits ...map[string]blob) repo {
	t.Helper()
	gitIn(t, top, "", "init", "-q", "-b", "main", "--template=")
	r := openRepo(t, top)
	config, err := os.OpenFile(filepath.Join(r.CommonDir, "config"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer config.Close()
	if _, err := config.WriteString("[user]\n\tname = P\n\temail = p@example.org\n"); err != nil {
		t.Fatal(err)
	}
	tip := r.approve(t, "", files)
	for _, edit := range edits {
		tip = r.approve(t, tip, edit)
	}
	gitIn(t, top, "", "reset", "-q", "--hard", string(tip))
	return r
}

// approve makes a commit that is base with files, without touching the work tree or the index.
func (r repo) approve(t tb, base git.OID, files map[string]blob) git.OID {
	t.Helper()
	all, parent := map[string]git.Entry{}, ""
	if base != "" {
		all, parent = r.files(t, base), "parent "+string(base)+"\n"
	}
	for p, f := range files {
		if delete(all, p); f.mode != "" {
			all[p] = git.Entry{Mode: f.mode, OID: r.object(t, "blob", f.text)}
		}
	}
	by := fmt.Sprintf("P <p@example.org> %d +0000\n", time.Now().Unix())
	return r.object(t, "commit", "tree "+string(r.tree(t, all))+"\n"+parent+"author "+by+"committer "+by+"\napproved\n")
}

// commit is what a name stands for.
func (r repo) commit(t tb, name string) git.OID {
	t.Helper()
	commit, err := r.dir.Resolve(gittest.Context(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// files are the entries of a commit that are no folders, by path.
func (r repo) files(t tb, commit git.OID) map[string]git.Entry {
	t.Helper()
	at, err := r.dir.Tree(gittest.Context(t), commit)
	if err != nil {
		t.Fatal(err)
	}
	s := r.dir.Session(gittest.Context(t))
	defer s.Close()
	var paths []string
	err = s.Files(at, "", func(p string) { paths = append(paths, p) })
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.Lookup(at, paths)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]git.Entry{}
	for i, p := range paths {
		all[p] = entries[i]
	}
	return all
}

// tree writes the tree that holds files, and those of its folders.
func (r repo) tree(t tb, files map[string]git.Entry) git.OID {
	t.Helper()
	in, below := map[string]git.Entry{}, map[string]map[string]git.Entry{}
	for p, e := range files {
		folder, rest, deep := strings.Cut(p, "/")
		if !deep {
			in[p] = e
			continue
		}
		if below[folder] == nil {
			below[folder] = map[string]git.Entry{}
		}
		below[folder][rest] = e
	}
	for folder, files := range below {
		in[folder] = git.Entry{Mode: git.Folder, OID: r.tree(t, files)}
	}

	ordered := func(name string) string { // as git orders a tree
		if in[name].Mode == git.Folder {
			return name + "/"
		}
		return name
	}
	var body strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(in), func(a, b string) int { return strings.Compare(ordered(a), ordered(b)) }) {
		sum, err := hex.DecodeString(string(in[name].OID))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&body, "%s %s\x00%s", strings.TrimPrefix(string(in[name].Mode), "0"), name, sum)
	}
	return r.object(t, "tree", body.String())
}

// object writes a loose object. To have git make the thousands that these tests need cost a quarter of their time.
func (r repo) object(t tb, kind, body string) git.OID {
	t.Helper()
	raw := fmt.Appendf(nil, "%s %d\x00%s", kind, len(body), body)
	sum := fmt.Sprintf("%x", sha1.Sum(raw))
	at := filepath.Join(r.CommonDir, "objects", sum[:2], sum[2:])
	if _, err := os.Lstat(at); err == nil {
		return git.OID(sum)
	}
	packed := bytes.NewBufferString("\x78\x01") // by RFC 1950, of blocks that are stored as they are: to begin a compression costs more than a process
	for block := range slices.Chunk(raw, 1<<16-1) {
		n := uint16(len(block))
		packed.Write([]byte{0, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)})
		packed.Write(block)
	}
	packed.WriteString("\x01\x00\x00\xff\xff") // the last one, of nothing
	packed.Write(binary.BigEndian.AppendUint32(nil, adler32.Checksum(raw)))
	put(t, at, packed.String(), 0o444)
	return git.OID(sum)
}

var landings atomic.Int64

// order is an approved change from the branch's commit to files.
func (r repo) order(t tb, files map[string]blob) landing.Order {
	t.Helper()
	base := r.commit(t, "refs/heads/main")
	return r.orderFrom(t, base, r.approve(t, base, files))
}

func (r repo) orderFrom(t tb, base, source git.OID) landing.Order {
	t.Helper()
	edits, err := r.dir.Edits(gittest.Context(t), base, source)
	if err != nil {
		t.Fatal(err)
	}
	who := git.Signature{Name: "A", Email: "a@example.org", At: time.Unix(1700000000, 0)}
	m := landing.Message{Change: "chg-test0001", Subject: "a summary", Approver: "P <p@example.org>", CoAuthor: "replay <replay@agents.invalid>"}
	return landing.Order{
		Landing: id.Landing(fmt.Sprintf("lnd-%08d", landings.Add(1))), Change: "chg-test0001", Project: r.Project, Branch: "main",
		WorkTree: true, Base: base, Edits: edits, Source: source, Message: m.String(), Author: who, Committer: who,
	}
}

// journal is the database of a test: it outlives a crash.
type journal struct{ row *landing.Landing }

func (j *journal) steps() landing.Steps {
	return landing.Steps{
		Journal: func(l landing.Landing) error { j.row = &l; return nil },
		Close:   func(l landing.Landing) error { j.row = &l; return nil },
		Again:   func(l landing.Landing) error { j.row = &l; return nil },
	}
}

func (j *journal) open() bool {
	return j.row != nil && (j.row.State == landing.Journaled || j.row.State == landing.Stranded)
}

// land computes and lands, and wants it done.
func (r repo) land(t tb, o landing.Order) landing.Landing {
	t.Helper()
	l := &landing.Lander{Host: beside}
	computed, err := l.Compute(gittest.Context(t), o)
	if err != nil {
		t.Fatalf("compute: %v", err)
	}
	j := &journal{}
	done, err := l.Land(gittest.Context(t), computed, j.steps())
	if err != nil || done.State != landing.Landed {
		t.Fatalf("land: %s %q: %v", done.State, done.Reason, err)
	}
	return done
}

// back is the order that rolls a landing back.
func (r repo) back(t tb, done landing.Landing) landing.Order {
	t.Helper()
	o := r.orderFrom(t, done.NewCommit, done.Head)
	o.Edits = landing.Inverse(done.Edits)
	return o
}

// picture is everything a person can see of their repository.
type picture struct {
	refs, index, status string
	tree                map[string]string
}

func look(t tb, top string) picture {
	t.Helper()
	head, status, _ := strings.Cut(gitIn(t, top, "", "status", "--porcelain=v1", "-z", "--branch", "--ignored"), "\x00")
	return picture{
		refs:   gitIn(t, top, "", "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags") + head,
		index:  gitIn(t, top, "", "ls-files", "-s", "-v"),
		status: status,
		tree:   walk(t, top, ".git"),
	}
}

// walk lists what lies below dir, with type, mode, owner and bytes.
func walk(t tb, dir string, skip ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if slices.Contains(skip, rel) {
			return filepath.SkipDir
		}
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%v %d", st.Mode(), st.Sys().(*syscall.Stat_t).Uid)
		switch {
		case st.Mode().IsRegular():
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			what += " " + string(raw)
		case st.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			what += " " + to
		}
		all[rel] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// differ says what differs between two pictures; "" if nothing.
func differ(a, b picture) string {
	var out []string
	for name, pair := range map[string][2]string{"refs": {a.refs, b.refs}, "index": {a.index, b.index}, "status": {a.status, b.status}} {
		if pair[0] != pair[1] {
			out = append(out, fmt.Sprintf("%s:\n%q\nnot\n%q", name, pair[0], pair[1]))
		}
	}
	return strings.Join(append(out, differTree(a.tree, b.tree)...), "\n")
}

func differTree(a, b map[string]string) (out []string) {
	for p := range a {
		if a[p] != b[p] {
			out = append(out, fmt.Sprintf("%q: %.80q not %.80q", p, a[p], b[p]))
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			out = append(out, fmt.Sprintf("%q is missing", p))
		}
	}
	slices.Sort(out)
	return out
}

// residue names what a landing must not leave behind.
func residue(t tb, r repo) []string {
	t.Helper()
	var left []string
	for _, dir := range []string{r.GitDir, r.CommonDir} {
		err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err == nil && (strings.HasSuffix(p, ".lock") || strings.HasPrefix(e.Name(), "sallyport-")) {
				left = append(left, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	found, _ := filepath.Glob(filepath.Join(r.Top, ".sallyport-*"))
	return append(left, found...)
}

// tidy fails if a landing has left anything behind.
func tidy(t tb, r repo) {
	t.Helper()
	if left := residue(t, r); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// unchanged fails unless a repository is as it was.
func unchanged(t tb, r repo, before picture) {
	t.Helper()
	if d := differ(look(t, r.Top), before); d != "" {
		t.Errorf("%s", d)
	}
}

func put(t tb, path, body string, perm os.FileMode) {
	t.Helper()
	disktest.Put(t, path, body, perm)
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
}

// rich is a repository in which a person has work of every kind lying about, and a change of every kind of edit.
func rich(t tb, top string) (repo, landing.Order) {
	t.Helper()
	r := newRepo(t, top, map[string]blob{
		"a.txt": text("a old\n"), "bin": text("\x00\xff old"), "dir/keep": text("k"), "dir/gone": text("g"),
		"only/deep/one": text("1"), "link": link("a.txt"), "run.sh": text("#!/bin/sh\n"), "f2d": text("file"),
		"d2f/x": text("x"), "d2f/y/z": text("z"), "dirty.txt": text("clean\n"), "staged.txt": text("clean\n"),
		".gitignore": text("*.log\n"), "l2f": link("nowhere"),
	})
	put(t, filepath.Join(top, "dirty.txt"), "the person's own\n", 0o644)
	put(t, filepath.Join(top, "staged.txt"), "the person's staged\n", 0o644)
	gitIn(t, top, "", "add", "staged.txt")
	put(t, filepath.Join(top, "staged.txt"), "and more\n", 0o600)
	put(t, filepath.Join(top, "untracked.txt"), "u", 0o640)
	put(t, filepath.Join(top, "dir/build.log"), "ignored", 0o644)
	if err := os.Chmod(filepath.Join(top, "a.txt"), 0o640); err != nil {
		t.Fatal(err)
	}
	o := r.order(t, map[string]blob{
		"a.txt": text("a new\n"), "bin": text("\x00\xfe new"), "dir/gone": {}, "only/deep/one": {}, "link": link("bin"),
		"run.sh": {git.Executable, "#!/bin/sh\n"}, "f2d": {}, "f2d/in/side": text("s"), "d2f/x": {}, "d2f/y/z": {}, "d2f": text("now a file"),
		"new/deep/n.txt": text("n"), "l2f": text("no link"), "dir/-rf": text("odd"), "dir/nl\n\x1b[31m": text("odder"),
	})
	return r, o
}

func testRepo(t *testing.T, files map[string]blob) repo {
	t.Helper()
	return newRepo(t, t.TempDir(), files)
}

var (
	hostMu sync.Mutex
	bare   = map[string]fstest.MapFS{} // object format → what git makes of a host's repository, made once
)

// beside is a repository of the host's, next to the person's, which is where tests write what is to land.
func beside(ctx context.Context, p git.Project, _ ...git.OID) (git.Dir, error) {
	hostMu.Lock()
	defer hostMu.Unlock()
	path := filepath.Join(filepath.Dir(p.CommonDir), "..", ".host-"+filepath.Base(filepath.Dir(p.CommonDir)))
	if _, err := os.Stat(path); err == nil {
		return git.Dir{Path: path}, nil
	}
	dir, err := git.Dir{Path: path}, error(nil)
	if made, ok := bare[p.ObjectFormat]; ok {
		err = os.CopyFS(path, made)
	} else if dir, err = git.InitBare(ctx, disk.Ops{}, path, p.ObjectFormat); err == nil {
		bare[p.ObjectFormat], err = inMemory(path)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(path, "objects/info/alternates"), []byte(p.CommonDir+"/objects\n"), 0o644)
	}
	return dir, err
}

// inMemory is what lies below a folder.
func inMemory(dir string) (fstest.MapFS, error) {
	all := fstest.MapFS{}
	return all, fs.WalkDir(os.DirFS(dir), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all[p] = &fstest.MapFile{Mode: info.Mode()}
		if !e.IsDir() {
			all[p].Data, err = os.ReadFile(filepath.Join(dir, p))
		}
		return err
	})
}

// refsBeside are the refs of ours that are left in the repository that beside made.
func refsBeside(t *testing.T, r repo) string {
	t.Helper()
	host, err := beside(gittest.Context(t), r.Project)
	if err != nil {
		t.Fatal(err)
	}
	return gitIn(t, host.Path, "", "for-each-ref", "refs/sallyport")
}

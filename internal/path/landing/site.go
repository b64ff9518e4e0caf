package landing

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Site is what a repository says of a branch that is to be worked on.
type Site struct {
	Branch     string // short name
	Head       git.OID
	CheckedOut bool // at Project.Top
}

// Inspect looks whether a branch can be landed on as the repository stands; branch "" is the one
// checked out. It reads only. Errors: ErrOddState and ErrBranch, naming the state and the way out; problem.Usage for a branch that is not there;
// problem.Refused for what is no file where git reads one.
func (l *Lander) Inspect(ctx context.Context, p git.Project, branch string) (Site, error) {
	if err := p.Plain(); err != nil { // git would wait for ever, and no end of a request ends what a site asks it
		return Site{}, err
	}
	s, err := openSite(ctx, p)
	if err != nil {
		return Site{}, err
	}
	defer s.close()
	if err := s.odd(); err != nil {
		return Site{}, err
	}
	here, err := s.checkedOut()
	if err != nil {
		return Site{}, err
	}
	if branch == "" {
		branch = here
	}
	site := Site{Branch: branch, CheckedOut: branch == here}
	site.Head, _, err = s.look(ctx, site.Branch, site.CheckedOut, l.wait(waitForGit))
	if errors.Is(err, ErrBranch) && !site.CheckedOut && s.absent(site.Branch) {
		return Site{}, problem.Errorf(problem.Usage, s.command("branch --list"), "there is no branch %q in %q", branch, s.Top)
	}
	if err != nil {
		return Site{}, err
	}
	return site, nil
}

// look is the one verdict on a repository as a place to land on: at the request, when a landing is computed, and
// when it begins. It returns the branch's commit, and the index if the branch is expected to be checked out here.
func (s *site) look(ctx context.Context, branch string, here bool, patience time.Duration) (git.OID, *git.Index, error) {
	head, err := s.ready(branch, here)
	if err != nil {
		return "", nil, err
	}
	if here {
		if err := s.plainTree(); err != nil {
			return "", nil, err
		}
	}
	if err := s.unlocked(ctx, branch, here, patience); err != nil || !here {
		return head, nil, err
	}
	x, _, err := s.index()
	return head, x, err
}

// ready refuses odd states and branches that are not free, and returns the branch's commit.
func (s *site) ready(branch string, here bool) (git.OID, error) {
	if err := s.odd(); err != nil {
		return "", err
	}
	if err := s.free(branch, here); err != nil {
		return "", err
	}
	return s.tip(branch)
}

// unlocked waits for a person's git to give back the branch, and the index if the branch is checked out here.
func (s *site) unlocked(ctx context.Context, branch string, here bool, patience time.Duration) error {
	held := ""
	free, err := poll(ctx, patience, func() (bool, error) {
		switch held = ""; {
		case here && s.gitDir.has("index.lock"):
			held = path.Join(s.GitDir, "index.lock")
		case s.common.has("refs/heads/" + branch + ".lock"):
			held = path.Join(s.CommonDir, "refs/heads", branch+".lock")
		}
		return held == "", nil
	})
	if err == nil && !free {
		err = s.lockedOut(held)
	}
	return err
}

// site is an open repository.
type site struct {
	git.Project
	ctx     context.Context // of the landing, that no end of a request cuts off
	work    *folder
	gitDir  *folder
	common  *folder
	objects *git.Session    // of the common git directory
	set     map[string]bool // of configure
	ground  git.OID         // what a branch that is not there yet will stand on; "" = it has to be there
}

// openSite opens a repository; the processes that read it end with close.
func openSite(ctx context.Context, p git.Project) (*site, error) {
	s := &site{Project: p, ctx: context.WithoutCancel(ctx)}
	for _, f := range []struct {
		path string
		to   **folder
	}{{p.Top, &s.work}, {p.GitDir, &s.gitDir}, {p.CommonDir, &s.common}} {
		var err error
		if *f.to, err = openFolder(f.path, p.ObjectFormat, p.UID); err != nil {
			s.close()
			return nil, problem.Errorf(problem.Unavailable, "git -C "+inert.Path(p.Top)+" status", "the repository %q cannot be opened: %w", p.Top, err)
		}
	}
	s.objects = p.Common(disk.Ops{}).Session(s.ctx)
	return s, nil
}

func (s *site) close() {
	if s.objects != nil {
		s.objects.Close()
	}
	for _, f := range []*folder{s.work, s.gitDir, s.common} {
		if f != nil {
			f.Close()
		}
	}
}

// command returns a git command for a person to run here.
func (s *site) command(words string) string { return "git -C " + inert.Path(s.Top) + " " + words }

func (s *site) oddState(next, format string, args ...any) error {
	return problem.Case(ErrOddState, next, format, args...)
}

// operations are what git leaves in a git directory while it waits for a person (SM-104).
var operations = []struct{ file, name, next string }{
	{"MERGE_HEAD", "a merge", "merge --continue"},
	{"rebase-merge", "a rebase", "rebase --continue"},
	{"rebase-apply/applying", "git am", "am --continue"},
	{"rebase-apply", "a rebase", "rebase --continue"},
	{"CHERRY_PICK_HEAD", "a cherry-pick", "cherry-pick --continue"},
	{"REVERT_HEAD", "a revert", "revert --continue"},
	{"BISECT_LOG", "a bisect", "bisect reset"},
	{"sequencer", "a cherry-pick or revert of several commits", "status"},
}

// odd refuses a repository in the middle of something, or of a kind that cannot be landed on, by name.
func (s *site) odd() error {
	if s.common.has("reftable") {
		return s.oddState(s.command("refs migrate --ref-format=files"),
			"%q keeps its branches in a reftable, and sallyport lands only where git keeps them in files", s.Top)
	}
	for _, o := range operations {
		if s.gitDir.has(o.file) {
			return s.oddState(s.command(o.next), "%s is under way in %q: finish it first", o.name, s.Top)
		}
	}
	return nil
}

// checkedOut returns the short name of the branch at Top; ErrOddState for a detached HEAD.
func (s *site) checkedOut() (string, error) {
	head, err := s.gitDir.small("HEAD")
	if err != nil {
		return "", err
	}
	ref, ok := strings.CutPrefix(strings.TrimSuffix(head, "\n"), "ref: ")
	if at := path.Join(s.gitDir.Name(), "HEAD"); !ok && !git.OID(strings.TrimSpace(head)).Valid() {
		return "", s.oddState("cat "+inert.Path(at), "%q names neither a branch nor a commit", at)
	}
	if !ok {
		return "", s.oddState(s.command("switch BRANCH"), "no branch is checked out in %q (detached HEAD)", s.Top)
	}
	short, ok := strings.CutPrefix(strings.TrimSpace(ref), "refs/heads/")
	if !ok || short == ".invalid" {
		return "", s.oddState(s.command("status"), "HEAD of %q names %q, which is no branch", s.Top, ref)
	}
	return short, nil
}

// free refuses a branch that another work tree holds, or that is not checked out here though it was expected to be.
func (s *site) free(branch string, here bool) error {
	now, err := s.checkedOut()
	if err != nil {
		return err
	}
	if here && now != branch {
		return problem.Case(ErrBranch, s.command("switch "+inert.Path(branch)),
			"%q has the branch %q checked out, and the change is for %q", s.Top, now, branch)
	}
	if !here && now == branch {
		return problem.Case(ErrBranch, s.command("switch BRANCH"),
			"the branch %q was checked out in %q after the change began: switch to another one, and approve again", branch, s.Top)
	}
	if at, err := s.elsewhere(branch); err != nil || at != "" {
		if err != nil {
			return err
		}
		return problem.Case(ErrBranch, s.command("worktree list"),
			"the branch %q is checked out or being rebased in another work tree (%q)", branch, at)
	}
	text, err := s.common.small("refs/heads/" + branch)
	if err != nil {
		return err
	}
	if strings.HasPrefix(text, "ref:") {
		return problem.Case(ErrBranch, s.command("branch --list"), "%q is only another name of a branch (a symbolic ref): name that branch", branch)
	}
	return nil
}

// elsewhere names the other work tree that has branch checked out or is rebasing or bisecting it; "" if none.
func (s *site) elsewhere(branch string) (string, error) {
	held := func(dir string) (bool, error) {
		for _, f := range []struct{ file, prefix string }{
			{"HEAD", "ref: refs/heads/"}, {"rebase-merge/head-name", "refs/heads/"},
			{"rebase-apply/head-name", "refs/heads/"}, {"BISECT_START", ""},
		} {
			text, err := s.common.small(dir + f.file)
			if err != nil {
				return false, err
			}
			if strings.TrimSpace(text) == f.prefix+branch {
				return true, nil
			}
		}
		return false, nil
	}
	if !same(s.gitDir, s.common) {
		if err := s.configure(); err != nil {
			return "", err
		}
		if in, err := held(""); !s.set["core.bare"] && (err != nil || in) {
			return s.CommonDir, err
		}
	}
	others, err := s.common.names("worktrees")
	if errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, o := range others {
		dir := "worktrees/" + o.Name()
		in, err := held(dir + "/")
		if err != nil {
			return "", err
		}
		if in && !s.isOwn(dir) {
			at, err := s.common.small(dir + "/gitdir")
			return strings.TrimSuffix(strings.TrimSpace(at), "/.git"), err
		}
	}
	return "", nil
}

// isOwn reports whether dir below the common directory is this work tree's git directory.
func (s *site) isOwn(dir string) bool {
	var own, st unix.Stat_t
	err := unix.Fstat(s.gitDir.fd(), &own)
	return err == nil && unix.Fstatat(s.common.fd(), dir, &st, 0) == nil && own.Ino == st.Ino && own.Dev == st.Dev
}

func same(a, b *folder) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a.fd(), &x) == nil && unix.Fstat(b.fd(), &y) == nil && x.Ino == y.Ino && x.Dev == y.Dev
}

// absent reports whether there is no such branch.
func (s *site) absent(branch string) bool {
	oid, err := s.objects.Resolve("refs/heads/" + branch)
	return err == nil && oid == ""
}

// toMake reports whether a branch is still to be made, and has it stand on a commit until then.
func (s *site) toMake(ctx context.Context, branch string, on git.OID) (bool, error) {
	there, err := s.Common(disk.Ops{}).Branch(ctx, branch)
	if err != nil {
		return false, problem.Case(ErrBranch, s.command("branch --list"), "the branch %q cannot be made in %q: %w", branch, s.Top, err)
	}
	if !there {
		s.ground = on
	}
	return !there, nil
}

// tip returns the commit that branch names, or will stand on.
func (s *site) tip(branch string) (git.OID, error) {
	oid, err := s.objects.Resolve("refs/heads/" + branch + "^{commit}")
	if err != nil {
		return "", err
	}
	if oid == "" && s.ground != "" && s.absent(branch) {
		return s.ground, nil
	}
	if oid == "" {
		return "", problem.Case(ErrBranch, s.towardsCommit(branch), "the branch %q of %q has no commit", branch, s.Top)
	}
	return oid, nil
}

// towardsCommit is what a person runs for a branch that names no commit: it has gone, was never begun, or its commit is not there.
func (s *site) towardsCommit(branch string) string {
	if !s.absent(branch) {
		return s.command("fsck")
	}
	if now, err := s.checkedOut(); err == nil && now == branch {
		return s.command("commit --allow-empty -m 'Begin'")
	}
	return s.command("branch --list")
}

package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/socket"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/target"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// targets knows what restarts and probes the code of a repository: the home's word, or else the repository's own once
// the owner has trusted exactly these words (SM-925). Both are read anew each time.
type targets struct {
	settings *config.Settings
	db       store.DB
	spaces   *workspace.Manager
	owner    person.Owner
	ops      disk.Ops
	host     target.Host
}

var (
	_ confirm.Targets = targets{}
	_ socket.Targets  = targets{}
)

// digestMin is how many digits name a digest at the least: of fewer, an author could find two targets with the same.
const digestMin = 32

// Of returns what counts for a change that is based on base.
func (t targets) Of(ctx context.Context, host git.Dir, p git.Project, base git.OID) (trust.Target, string, error) {
	words, err := t.words(ctx, host, p, base)
	var unread *unreadable
	if err != nil && !errors.As(err, &unread) {
		return trust.Target{}, "", err
	}
	counts, ok := words.Counts()
	if !ok && unread != nil {
		return trust.Target{}, "what the repository proposes cannot be read, so nothing is restarted or probed: " + inert.Line(unread.Error()), nil
	}
	if !ok && words.Proposed != nil {
		return trust.Target{}, "the repository proposes a target that nobody trusts, so nothing is restarted or probed: " + show(p), nil
	}
	return counts, "", nil
}

// show is a command that shows a repository's target.
func show(p git.Project) string { return "sallyport target show --repo " + inert.Path(p.Top) }

// unreadable says that a repository's own words do not load; the home's still count.
type unreadable struct{ error }

func (u *unreadable) Unwrap() error { return u.error }

// words reads all that is said of a repository's target, its own words as they stand at a commit. With an *unreadable it
// returns what is said elsewhere.
func (t targets) words(ctx context.Context, host git.Dir, p git.Project, commit git.OID) (trust.Words, error) {
	w := trust.Words{Repository: p.Top, Commit: string(commit)}
	for _, entry := range t.settings.Sallyport().Targets {
		if sameFolder(string(entry.Repository), p.Top) {
			said := entry.Said()
			w.Home = &said
		}
	}
	err := t.db.Read(ctx, func(tx store.Tx) error {
		given, ok, err := tx.Trust(ctx, p.CommonDir)
		if ok {
			w.Trust = &given
		}
		return err
	})
	if err != nil {
		return trust.Words{}, err
	}
	repo, err := standing{p.Top, host, commit}.repository(ctx)
	if problem.KindOf(err) == problem.Refused {
		return w, &unreadable{err}
	}
	if err != nil {
		return trust.Words{}, err
	}
	if proposed, ok := repo.Target.Proposed(); ok {
		w.Proposed = &proposed
	}
	return w, nil
}

// sameFolder reports whether a path of the home's file names a work tree, links followed.
func sameFolder(said, top string) bool {
	if said == top {
		return true
	}
	is, err := filepath.EvalSymlinks(said)
	return err == nil && is == top
}

// Restart, Probe and Ask run on this machine, outside of every sandbox.
func (t targets) Restart(ctx context.Context, tg trust.Target, p git.Project, change id.Change) error {
	return t.host.Restart(ctx, tg, target.Place{Project: p, Change: change})
}

func (t targets) Probe(ctx context.Context, tg trust.Target, p git.Project) error {
	return t.host.Wait(ctx, tg, target.Place{Project: p})
}

func (t targets) Ask(ctx context.Context, tg trust.Target, p git.Project) error {
	return t.host.Ask(ctx, tg, target.Place{Project: p})
}

// Target returns what is said of the repository that folder lies in, its own words as they stand at its HEAD.
func (t targets) Target(ctx context.Context, folder string) (trust.Words, error) {
	_, w, err := t.at(ctx, folder)
	return w, err
}

func (t targets) at(ctx context.Context, folder string) (git.Project, trust.Words, error) {
	p, err := git.Open(ctx, folder)
	if err != nil {
		return git.Project{}, trust.Words{}, err
	}
	if err := p.Plain(); err != nil {
		return git.Project{}, trust.Words{}, err
	}
	head, err := p.Worktree(t.ops).Resolve(ctx, "HEAD^{commit}")
	if err == nil && head == "" {
		err = problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" log -1", "%q has no commit yet, so it proposes nothing", p.Top)
	}
	if err != nil {
		return git.Project{}, trust.Words{}, err
	}
	host, err := t.spaces.EnsureRepository(ctx, p, head)
	if err != nil {
		return git.Project{}, trust.Words{}, err
	}
	w, err := t.words(ctx, host, p, head)
	return p, w, err
}

// Trust lets what a repository proposes at its HEAD count, if digest (or its first digits, 12 at the least) names exactly these words.
// Errors: person.ErrNotOwner; usage if digest is none; not_found if nothing is proposed; conflict if other words are, or the home has its own.
func (t targets) Trust(ctx context.Context, folder, digest string, by audit.Actor) (trust.Words, error) {
	if err := t.owner.MayDecide(by); err != nil {
		return trust.Words{}, err
	}
	if len(digest) < digestMin || len(digest) > 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return trust.Words{}, problem.Errorf(problem.Usage, "sallyport target trust --help",
			"%q is not a digest: a digest has %d to 64 digits, 0 to 9 and a to f", digest, digestMin)
	}
	p, w, err := t.at(ctx, folder)
	switch {
	case err != nil:
		return trust.Words{}, err
	case w.Home != nil:
		return trust.Words{}, problem.Errorf(problem.Conflict, show(p), "the home's own %s names a target for %q, and only that counts",
			config.SallyportFile, p.Top)
	case w.Proposed == nil:
		return trust.Words{}, problem.Errorf(problem.NotFound, show(p), "%q proposes no target at %.12s", p.Top, w.Commit)
	case !strings.HasPrefix(w.Proposed.Digest(), digest):
		return trust.Words{}, problem.Errorf(problem.Conflict, show(p),
			"%q proposes other words at %.12s than those of %.12s: nothing is trusted", p.Top, w.Commit, digest)
	case w.Trusted():
		return w, nil
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	given := trust.Trust{Repository: p.CommonDir, Digest: w.Proposed.Digest(), Words: *w.Proposed, By: by.Name, UID: by.UID, At: now}
	err = t.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.PutTrust(ctx, given); err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: now, Actor: by, Subject: "target:" + p.Top, Verb: "trusted target",
			Digests: map[string]string{"target": given.Digest, "commit": w.Commit}})
	})
	if err != nil {
		return trust.Words{}, err
	}
	w.Trust = &given
	return w, nil
}

// Distrust takes the trust in a repository's words back. What is on trial already keeps the target it began with.
// Errors: person.ErrNotOwner; not_found if nothing is trusted.
func (t targets) Distrust(ctx context.Context, folder string, by audit.Actor) error {
	if err := t.owner.MayDecide(by); err != nil {
		return err
	}
	p, err := git.Open(ctx, folder)
	if err != nil {
		return err
	}
	return t.db.InTx(ctx, func(tx store.Tx) error {
		was, _, err := tx.Trust(ctx, p.CommonDir)
		if err != nil {
			return err
		}
		dropped, err := tx.DropTrust(ctx, p.CommonDir)
		if err == nil && !dropped {
			err = problem.Errorf(problem.NotFound, show(p), "nothing that %q proposes is trusted", p.Top)
		}
		if err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: time.Now(), Actor: by, Subject: "target:" + p.Top, Verb: "distrusted target",
			Digests: map[string]string{"target": was.Digest}})
	})
}

// trimTargets empties what services that a restart left running went on writing.
func (d *Daemon) trimTargets() {
	if err := d.targets.host.Trim(); err != nil {
		d.log.Warn("the output of a restart was not trimmed", "error", err)
	}
}

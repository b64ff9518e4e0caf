package login

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

const (
	early    = 5 * time.Minute  // before its end a token is renewed
	pause    = 30 * time.Second // between renewals that failed
	heldMost = 12               // tokens that are looked for in what is kept and shown: those of some renewals
)

// Options are what logins stand on.
type Options struct {
	Client *http.Client // that renews; it follows no redirect
	Held   *secret.Held // takes what is read, so that it is taken out of what is kept and shown
	Getenv func(string) string
	UID    int // whose logins they are
	Ops    disk.Ops
	Log    *slog.Logger
}

// Logins are those of the agents' programs on this machine.
type Logins struct {
	of Options

	mu  sync.Mutex
	all map[string]*Login // by path
}

// New returns the logins of one user.
func New(o Options) *Logins {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Logins{of: o, all: map[string]*Login{}}
}

// Of returns the login of a kind, whether it is there or not. A program keeps it where the variable of its kind says, which is the daemon's.
//
// Errors: usage, for a kind that there is not; unavailable, if no home folder is known.
func (ls *Logins) Of(name string) (*Login, error) {
	at := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if at < 0 {
		return nil, problem.Errorf(problem.Usage, "sallyport agent list", "sallyport knows no login of %q", name)
	}
	k := Kinds[at]
	folder := ls.of.Getenv(k.Variable)
	if folder == "" {
		home := ls.of.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return nil, problem.Errorf(problem.Unavailable, "sallyport daemon stop",
				"the login of %s cannot be found: HOME was not set where the daemon was started", k.Name)
		}
		folder = filepath.Join(home, k.Folder)
	}
	path := filepath.Join(folder, k.File)
	if real, err := filepath.EvalSymlinks(path); err == nil { // it is written where it is
		path = real
	}

	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l, ok := ls.all[path]; ok {
		return l, nil
	}
	l := &Login{kind: k, path: path, of: ls.of}
	ls.all[path] = l
	return l, nil
}

// Login is one of them. All methods may be called at once.
type Login struct {
	kind Kind
	path string
	of   Options
	one  lock.Keyed[string] // renewal at a time

	mu      sync.Mutex
	held    []secret.Value
	unkept  *unkept      // what could not be written
	refused secret.Value // token for renewals that is not taken any more
	why     error        // what was said of it
	failed  time.Time    // when the last renewal failed for another reason
	made    secret.Value // token that came of the last renewal
	since   time.Time    // since when
}

// unkept is the answer to a renewal that could not be written yet.
type unkept struct {
	used tokens
	a    answer
}

// Pass is what goes with one request.
type Pass struct {
	Token   secret.Value
	Account string // for which it is used; "" = none is said
}

// Path is where the login is kept.
func (l *Login) Path() string { return l.path }

// Kind is whose it is.
func (l *Login) Kind() Kind { return l.kind }

// Check reports whether the login is there, and changes nothing. Errors: credential.ErrMissing, with the command that logs in; refused,
// if it is not its user's alone.
func (l *Login) Check() error {
	t, err := l.read()
	if err != nil {
		return err
	}
	if t.renewal.Empty() && !t.lasts(time.Now(), 0) {
		return l.ended()
	}
	return l.over(t)
}

func (l *Login) ended() error {
	return problem.Case(credential.ErrMissing, l.kind.Again,
		"the login of %s has ended, and it holds nothing to renew it with; log in again with %s", l.kind.Name, l.kind.Again)
}

// Present returns a token that is good for a while; one that is near its end is renewed first.
//
// Errors: credential.ErrMissing (unavailable) if there is none or it is not renewed any more, with the command that logs in;
// unavailable, if it cannot be renewed now; refused, if its file is not its user's alone.
func (l *Login) Present(ctx context.Context) (Pass, error) {
	release, err := l.one.Take(ctx, "")
	if err != nil {
		return Pass{}, err
	}
	defer release()
	t, err := l.current(ctx)
	if err != nil {
		return Pass{}, err
	}
	if t.lasts(time.Now(), early) {
		return t.pass(), nil
	}
	fresh, err := l.renew(ctx, t)
	if err != nil && t.lasts(time.Now(), 0) && l.over(t) == nil { // it is good for some minutes more
		return t.pass(), nil
	}
	return fresh.pass(), err
}

// Refused says that an endpoint took a token no more, and renews it; nil: there is another now. Errors: as of Present.
func (l *Login) Refused(ctx context.Context, was secret.Value) error {
	release, err := l.one.Take(ctx, "")
	if err != nil {
		return err
	}
	defer release()
	t, err := l.current(ctx)
	if err != nil || !t.access.Equal(was) {
		return err
	}
	if l.made.Equal(was) && time.Since(l.since) < early {
		return problem.Errorf(problem.Unavailable, l.kind.Again, "the model's endpoint refuses the login of %s although it was renewed just now", l.kind.Name)
	}
	_, err = l.renew(ctx, t)
	return err
}

func (t tokens) pass() Pass { return Pass{Token: t.access, Account: t.account} }

// current is the login as it is, or as it would be if it could have been written.
func (l *Login) current(ctx context.Context) (tokens, error) {
	t, err := l.look()
	if err != nil || l.unkept == nil {
		return t, err
	}
	if !t.renewal.Equal(l.unkept.used.renewal) { // another has taken its place
		l.unkept = nil
		return t, nil
	}
	left := *l.unkept
	if t, err = l.write(ctx, left.used, left.a); err == nil || errors.Is(err, credential.ErrMissing) {
		l.unkept = nil
		return t, err
	}
	return left.a.tokens(left.used), nil
}

// keep writes what a renewal came back with. If that fails it is remembered, used all the same, and written the next time.
func (l *Login) keep(ctx context.Context, used tokens, a answer) (tokens, error) {
	if l.unkept != nil { // what the file holds is older than what was used
		a.Renewal, used = cmp.Or(a.Renewal, used.renewal.Reveal()), l.unkept.used
	}
	t, err := l.write(ctx, used, a)
	if err == nil || errors.Is(err, credential.ErrMissing) {
		l.unkept = nil
		return t, err
	}
	if l.unkept == nil {
		l.of.Log.Warn("a renewed login is not on the disk yet; it is written at its next use", "login", l.kind.Name, "error", err)
	}
	l.unkept = &unkept{used: used, a: a}
	return a.tokens(used), nil
}

// hold has tokens taken out of what is kept and shown. Old ones go, but not at once: they may still be somewhere.
func (l *Login) hold(all ...secret.Value) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range all {
		if v.Empty() || slices.ContainsFunc(l.held, v.Equal) {
			continue
		}
		l.of.Held.Hold(v)
		l.held = append(l.held, v)
	}
	for len(l.held) > heldMost {
		l.of.Held.Drop(l.held[0])
		l.held = l.held[1:]
	}
}

// over is why a login is not renewed any more; nil if it may be.
func (l *Login) over(t tokens) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil && l.refused.Equal(t.renewal) {
		return l.why
	}
	return nil
}

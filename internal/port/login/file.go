package login

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

const (
	fileBytesMax = 64 << 10
	lockEvery    = 50 * time.Millisecond // how often a lock is tried that another holds
	lockTime     = 10 * time.Second
	freshName    = ".sallyport-login-" // before a digest, the name of an answer that is not in its place yet
)

// look reads the login as it is now, after what a crash has left is in its place.
func (l *Login) look() (tokens, error) {
	t, err := l.read()
	if err != nil || !whole.Exists(l.fresh(t.renewal)) {
		return t, err
	}
	folder, err := l.lock(context.Background())
	if err != nil {
		return t, err
	}
	defer folder.Close() // the kernel takes it back in any case
	if t, err = l.read(); err != nil {
		return t, err
	}
	left := l.fresh(t.renewal)
	if _, err := l.open(left); err != nil { // it was not written to its end
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, l.unwritable(err)
		}
		return t, nil
	}
	if err := l.place(left); err != nil {
		return t, err
	}
	return l.read()
}

// read reads the login's file.
func (l *Login) read() (tokens, error) {
	t, err := l.open(l.path)
	if err == nil {
		l.hold(t.access, t.renewal, t.identity)
	}
	return t, err
}

// open reads a file that belongs to our user and is nobody else's to read.
func (l *Login) open(path string) (t tokens, err error) {
	next := "ls -l " + inert.Path(path)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return t, problem.Case(credential.ErrMissing, l.kind.Again, "%s is not logged in: the file %q does not exist", l.kind.Name, path)
	}
	if err != nil {
		return t, problem.Errorf(problem.Unavailable, next, "the login of %s cannot be read: %w", l.kind.Name, err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return t, problem.Errorf(problem.Unavailable, next, "the login of %s cannot be read: %w", l.kind.Name, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return t, problem.Errorf(problem.Refused, next, "the login of %s, %q, is no ordinary file", l.kind.Name, path)
	case !ok || int(stat.Uid) != l.of.UID:
		return t, problem.Errorf(problem.Refused, next, "the login of %s, %q, belongs to another user: it must be yours", l.kind.Name, path)
	case info.Mode().Perm()&0o077 != 0:
		return t, problem.Errorf(problem.Refused, "chmod 600 "+inert.Path(path), "other users can read the login of %s, %q (mode %04o)",
			l.kind.Name, path, info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return t, problem.Errorf(problem.Unavailable, next, "the login of %s cannot be read: %w", l.kind.Name, err)
	}
	if len(raw) > fileBytesMax {
		return t, problem.Errorf(problem.Refused, next, "the login of %s, %q, has more than %d bytes", l.kind.Name, path, fileBytesMax)
	}
	if t, err = l.kind.read(raw); err != nil {
		return t, problem.Case(credential.ErrMissing, l.kind.Again, "%s has no login that can be used: of the file %q, %w", l.kind.Name, path, err)
	}
	for _, v := range []secret.Value{t.access, t.renewal} {
		if err := credential.Sound(v); err != nil && !v.Empty() {
			return t, problem.Case(credential.ErrMissing, l.kind.Again, "%s has no login that can be used: a token in %q is none: %w", l.kind.Name, path, err)
		}
	}
	return t, nil
}

// fresh is the name of the file in which what replaces a token stands until it is in its place.
func (l *Login) fresh(renewal secret.Value) string {
	sum := sha256.Sum256([]byte(renewal.Reveal()))
	return filepath.Join(filepath.Dir(l.path), freshName+hex.EncodeToString(sum[:8]))
}

// write puts what a renewal came back with into the place of the login that it was made with, and returns the login that counts then:
// the program's own, if it has written one meanwhile.
func (l *Login) write(ctx context.Context, used tokens, a answer) (tokens, error) {
	raw, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) { // it was logged out meanwhile
		return l.read()
	}
	if err != nil {
		return used, l.unwritable(err)
	}
	doc := object{}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return used, l.unwritable(errors.New("the file is no JSON any more"))
	}
	if err := l.kind.with(doc, a, time.Now()); err != nil {
		return used, l.unwritable(err)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return used, l.unwritable(err)
	}
	fresh := l.fresh(used.renewal)
	if err := l.of.Ops.Do("login:write", func() error { return whole.WriteAlone(fresh, text.Bytes()) }); err != nil {
		return used, l.unwritable(err)
	}

	release, err := l.shutOut(ctx)
	if err != nil {
		return used, err
	}
	defer release()
	now, err := l.read()
	if err != nil || !now.renewal.Equal(used.renewal) { // it was logged out, or another login has taken its place: that is what the person wants
		return now, errors.Join(err, os.Remove(fresh))
	}
	if err := l.place(fresh); err != nil {
		return now, err
	}
	return l.read()
}

// place puts a whole file into the place of the login, with the rights of the one that was there.
func (l *Login) place(fresh string) error {
	err := l.of.Ops.Do("login:place", func() error {
		info, err := os.Stat(l.path)
		if err != nil {
			return err
		}
		if err := os.Chmod(fresh, info.Mode().Perm()); err != nil {
			return err
		}
		if err := os.Rename(fresh, l.path); err != nil {
			return err
		}
		return whole.Sync(filepath.Dir(l.path))
	})
	if err != nil {
		return l.unwritable(err)
	}
	return nil
}

func (l *Login) unwritable(err error) error {
	return problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(filepath.Dir(l.path)),
		"the renewed login of %s cannot be kept in %q: %w", l.kind.Name, l.path, err)
}

// lock keeps the daemons of other homes out of the login's folder.
func (l *Login) lock(ctx context.Context) (*lock.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		held, err := lock.Folder(filepath.Dir(l.path))
		if !errors.Is(err, lock.ErrHeld) {
			return held, err
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// shutOut keeps the program itself from writing meanwhile, where it is known how.
func (l *Login) shutOut(ctx context.Context) (release func(), err error) {
	if l.kind.Lock == "" {
		return func() {}, nil
	}
	path := filepath.Join(filepath.Dir(l.path), l.kind.Lock)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, l.unwritable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(l.unwritable(err), f.Close())
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, errors.Join(l.unwritable(fmt.Errorf("%s itself holds %q", l.kind.Name, path)), f.Close())
		}
	}
}

package credential

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"sallyport/internal/base/problem"
	"sallyport/internal/rule/secret"
)

// Limits of what a ring takes.
const (
	KeysMax     = 16      // of one change
	KeyBytesMax = 8 << 10 // of one key
)

// Keys are keys by the names of the variables that they came from.
type Keys map[string]secret.Value

// Ring holds the keys of open changes, in memory only.
type Ring struct {
	held   *secret.Held
	getenv func(string) string
	uid    int

	mu sync.Mutex
	of map[string]Keys // by change; those that were read elsewhere stand under their reference
}

// NewRing returns an empty ring. What it holds is held too by held, so that it is taken out of what is kept and shown; getenv is the
// daemon's own environment.
func NewRing(held *secret.Held, getenv func(string) string) *Ring {
	return &Ring{held: held, getenv: getenv, uid: os.Geteuid(), of: map[string]Keys{}}
}

// Wanted says which key is wanted.
type Wanted struct {
	Agent     string    // for messages
	Reference Reference // of the home: then nothing else counts
	Names     []string  // of variables in which people keep it, in this order
	Keyless   bool      // it may do without
}

// Variables are the names of the variables that may hold what is wanted.
func (w Wanted) Variables() []string {
	if w.Reference != "" {
		if name := w.Reference.Variable(); name != "" {
			return []string{name}
		}
		return nil
	}
	return w.Names
}

// ErrMissing says that a key is nowhere to be found.
var ErrMissing = problem.New(problem.Unavailable, "the key is missing")

// missing is ErrMissing in words that say which, and where it was looked for.
type missing string

func (m missing) Error() string { return string(m) }
func (missing) Unwrap() error   { return ErrMissing }

// missing names where it was looked for.
func (w Wanted) missing() error {
	names := slices.Clone(w.Variables())
	for i, n := range names {
		names[i] = "$" + n
	}
	if len(names) == 0 {
		return missing(w.Agent + " has no key, and neither a variable nor a file is named for it")
	}
	return missing(fmt.Sprintf("%s has no key: %s is set neither in your shell nor where the daemon was started", w.Agent, strings.Join(names, " or ")))
}

// Check refuses keys that cannot be any, by name; it never tells one. Errors: problem.Usage.
func (k Keys) Check() error {
	const next = "sallyport agent list"
	if len(k) > KeysMax {
		return problem.Errorf(problem.Usage, next, "you gave %d keys; the limit is %d", len(k), KeysMax)
	}
	for name, v := range k {
		if err := CheckVariable(name); err != nil {
			return problem.Errorf(problem.Usage, next, "the name of a key is not valid: %w", err)
		}
		if err := sound(v.Reveal()); err != nil {
			return problem.Errorf(problem.Usage, next, "what $%s holds is no key: %w", name, err)
		}
	}
	return nil
}

// sound refuses what could not be sent in a header; the error is one clause and does not hold it.
func sound(key string) error {
	switch {
	case key == "":
		return errors.New("it is empty")
	case len(key) > KeyBytesMax:
		return fmt.Errorf("it has more than %d bytes", KeyBytesMax)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("it holds a space, a line break or another character that no key has")
	}
	return nil
}

// Give takes what a person handed over for a change; a name that is there already gets the new value.
func (r *Ring) Give(change string, keys Keys) error {
	if err := keys.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, v := range keys {
		r.put(change, "$"+name, v)
	}
	return nil
}

// put holds one key; r.mu is held.
func (r *Ring) put(change, from string, v secret.Value) {
	of := r.of[change]
	if of == nil {
		of = Keys{}
		r.of[change] = of
	}
	r.held.Hold(v)
	if old, ok := of[from]; ok {
		r.held.Drop(old)
	}
	of[from] = v
}

// Forget drops all that is held for a change.
func (r *Ring) Forget(change string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.of[change] {
		r.held.Drop(v)
	}
	delete(r.of, change)
}

// Find returns the key that is wanted for a change, and where it is from ($NAME or file:/path); both are empty if it does
// without. Until Forget it is taken out of what is shown. Errors: ErrMissing; refused, if a file is not its owner's alone; the
// caller knows the next step.
func (r *Ring) Find(change string, w Wanted) (secret.Value, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, from, err := r.look(change, w)
	if from != "" {
		r.put(change, from, v)
	}
	return v, from, err
}

// Has reports where the key that is wanted would be found, without holding it: by what is held for change, by the daemon's
// environment, or in a file.
func (r *Ring) Has(change string, w Wanted) (from string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, from, err = r.look(change, w)
	return from, err
}

func (r *Ring) look(change string, w Wanted) (secret.Value, string, error) {
	if file := w.Reference.File(); file != "" {
		v, err := r.read(file)
		if err != nil {
			return secret.Value{}, "", err
		}
		return v, string(w.Reference), nil
	}
	for _, name := range w.Variables() {
		if v, ok := r.of[change]["$"+name]; ok {
			return v, "$" + name, nil
		}
	}
	for _, name := range w.Variables() {
		if plain := r.getenv(name); plain != "" {
			if err := sound(plain); err != nil {
				return secret.Value{}, "", problem.Errorf(problem.Refused, "sallyport daemon stop",
					"what $%s held when the daemon was started is no key: %w", name, err)
			}
			return secret.Hold(plain), "$" + name, nil
		}
	}
	if w.Keyless {
		return secret.Value{}, "", nil
	}
	return secret.Value{}, "", w.missing()
}

// read returns the one line of a key's file, which belongs to us or root and is nobody else's to read.
func (r *Ring) read(path string) (secret.Value, error) {
	raw, err := ReadFile(path, r.uid, KeyBytesMax+2)
	if errors.Is(err, fs.ErrNotExist) {
		return secret.Value{}, missing(fmt.Sprintf("the key's file %q does not exist", path))
	}
	if err != nil {
		return secret.Value{}, err
	}
	key := string(bytes.TrimRight(raw, "\r\n"))
	if err := sound(key); err != nil {
		return secret.Value{}, problem.Errorf(problem.Refused, fmt.Sprintf("ls -l %q", path), "what the file %q holds is no key: %w", path, err)
	}
	return secret.Hold(key), nil
}

// ReadFile returns the first most bytes of a file that holds a secret: it belongs to a user or to root, and is nobody else's to read. Errors:
// problem.Unavailable, which is fs.ErrNotExist where there is none; problem.Refused for one that is no ordinary file, another's or open to others.
func ReadFile(path string, uid int, most int64) ([]byte, error) {
	next := fmt.Sprintf("ls -l %q", path)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, next, "the key's file cannot be read: %w", err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, next, "the key's file cannot be read: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, problem.Errorf(problem.Refused, next, "the key's file %q is no ordinary file", path)
	case !ok || int(stat.Uid) != uid && stat.Uid != 0:
		return nil, problem.Errorf(problem.Refused, next, "the key's file %q belongs to another user: it must be yours or root's", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, problem.Errorf(problem.Refused, fmt.Sprintf("chmod 600 %q", path),
			"other users can read the key's file %q (mode %04o)", path, info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, next, "the key's file cannot be read: %w", err)
	}
	return raw, nil
}

// Sound refuses what could not be sent in a header; the error is one clause and does not hold it.
func Sound(v secret.Value) error { return sound(v.Reveal()) }

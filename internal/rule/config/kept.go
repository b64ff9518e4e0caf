package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/stamp"
	"sallyport/internal/base/whole"
)

// keptFolder has what loaded last of each file, in a home. It lies in .state, where no sandbox looks and no change reaches.
const keptFolder = ".state/config"

// file is one of the two, and what of it counts.
type file[T any] struct {
	name, path string
	kept       string // where what loaded last is
	parse      func(name string, data []byte) (T, error)
	ops        disk.Ops
	keeps      bool // false: it only looks

	mu     sync.Mutex
	value  T
	loaded bool // value is what some file said
	text   []byte
	stored bool // text is what is kept
	failed error

	recalled bool        // what is kept was looked for
	stamp    stamp.Stamp // of the file that why is about; none: it is read again
	judged   bool        // sum is of that file
	sum      [sha256.Size]byte
	why      error   // it does not load
	again    bool    // it did not when news were last asked for, either
	record   *record // nil: it loads
}

// record is there while a file does not load, and until the owner knows that it loads again.
type record struct {
	Since time.Time `json:"since"`
	Told  bool      `json:"told,omitempty"`
}

func newFile[T any](home, name string, parse func(string, []byte) (T, error)) *file[T] {
	f := &file[T]{name: name, path: filepath.Join(home, name), kept: filepath.Join(home, keptFolder, name), parse: parse}
	if raw, err := readOwn(f.records()); err == nil {
		var r record
		if json.Unmarshal(raw, &r) == nil && !r.Since.IsZero() {
			f.record = &r
		}
	}
	return f
}

func (f *file[T]) records() string { return f.kept + ".unloaded" }

// open keeps from here on, and refuses a file that does not load and never has.
func (f *file[T]) open(ops disk.Ops) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops, f.keeps = ops, true
	f.look()
	if f.loaded {
		return nil
	}
	return f.why
}

// now is what counts.
func (f *file[T]) now() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return f.value
}

// unloaded is nil of a file that loads.
func (f *file[T]) unloaded() *Unloaded {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	if f.why == nil {
		return nil
	}
	u := f.tell()
	return &u
}

func (f *file[T]) tell() Unloaded {
	u := Unloaded{File: f.name, Why: f.why}
	if f.record != nil {
		u.Since = f.record.Since
	}
	var found *faults
	if errors.As(f.why, &found) {
		u.Line = found.line
	}
	if f.loaded {
		u.Kept = f.kept
	}
	return u
}

// unkept is why what loads is not kept.
func (f *file[T]) unkept() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// news is what the owner has not been told; nil if that is nothing.
func (f *file[T]) news() *News {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	if f.failed != nil {
		f.keep()
	}
	again := f.again
	f.again = f.why != nil
	if f.record == nil || f.record.Told == (f.why != nil) || f.why != nil && !again {
		return nil
	}
	return &News{Unloaded: f.tell(), Loads: f.why == nil}
}

// told writes down what the owner has been told.
func (f *file[T]) told(n News) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.record == nil || !f.record.Since.Equal(n.Since):
		return nil
	case n.Loads:
		return f.forget()
	}
	return f.note(record{Since: n.Since, Told: true})
}

// look judges the file if it may be another than the one that was judged last.
func (f *file[T]) look() {
	if !f.stamp.None() && stamp.Of(f.path) == f.stamp {
		return
	}
	data, at, err := readOwners(f.path)
	f.stamp = at
	if data != nil && len(data) == 0 {
		err = f.emptied()
	}
	if err != nil {
		f.judged, f.why = false, err
	} else {
		f.judge(data)
	}
	if f.why != nil && !f.loaded && !f.recalled {
		f.recall()
	}
	if !f.keeps || !f.loaded {
		return
	}
	// What cannot be noted is told again after a restart.
	if f.why != nil && f.record == nil {
		_ = f.note(record{Since: time.Now().UTC().Truncate(time.Millisecond)})
	}
	if f.why == nil && f.record != nil && !f.record.Told {
		_ = f.forget()
	}
}

// emptied refuses a file without a byte where it has said something before: a write that broke off, or is under way, leaves one, and no
// rule goes by that. Nil if it never said anything.
func (f *file[T]) emptied() error {
	was := f.why
	f.why = problem.Errorf(problem.Refused, edit(f.path), "%q is empty, as after a write that broke off; one that is to say nothing says {}", f.path)
	if !f.loaded && !f.recalled {
		f.recall()
	}
	why := f.why
	f.why = was
	if f.loaded && len(f.text) > 0 {
		return why
	}
	return nil
}

// judge has what a file says count, if it loads.
func (f *file[T]) judge(data []byte) {
	sum := sha256.Sum256(data)
	if f.judged && sum == f.sum {
		return
	}
	v, err := f.parse(f.path, data)
	f.judged, f.sum, f.why = true, sum, err
	if err != nil {
		return
	}
	first := !f.loaded
	f.stored = f.stored && bytes.Equal(data, f.text)
	f.value, f.loaded, f.text = v, true, data
	if first {
		was, err := f.take()
		f.stored = err == nil && bytes.Equal(was, data)
	}
	f.keep()
}

// keep brings what loaded last to where the next daemon finds it.
func (f *file[T]) keep() {
	if !f.keeps || f.stored {
		return
	}
	f.failed = whole.Keep(f.ops, "settings", f.kept, append(f.head(f.text), f.text...))
	f.stored = f.failed == nil
}

// recall has what loaded last count, in the place of a file that does not load.
func (f *file[T]) recall() {
	f.recalled = true
	text, err := f.take()
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var v T
	if err == nil {
		v, err = f.parse(f.kept, text)
	}
	if err != nil {
		p := problem.Of(f.why)
		f.why = problem.Errorf(p.Kind, p.Next, "%w; and what is kept of when it loaded last cannot be used: %s", f.why, problem.Of(err).Text)
		return
	}
	f.value, f.loaded, f.text, f.stored = v, true, text, true
}

// head is the first line of what is kept, which is a comment. It holds for exactly what follows.
func (f *file[T]) head(text []byte) []byte {
	return fmt.Appendf(nil, "# What %s said when it loaded last. sallyport keeps it; sha256 of the rest: %x\n", f.name, sha256.Sum256(text))
}

// take returns what is kept, if it is all of what was.
func (f *file[T]) take() ([]byte, error) {
	raw, err := readOwn(f.kept)
	if err != nil {
		return nil, err
	}
	end := bytes.IndexByte(raw, '\n') + 1
	if head, text := raw[:end], raw[end:]; end == 0 || !bytes.Equal(head, f.head(text)) {
		return nil, fmt.Errorf("%s is not as it was written", inert.Path(f.kept))
	}
	return raw[end:], nil
}

// note keeps since when the file does not load, and whether the owner knows.
func (f *file[T]) note(r record) error {
	f.record = &r
	raw, err := json.Marshal(r)
	if err == nil {
		err = whole.Keep(f.ops, "settings", f.records(), raw)
	}
	return err
}

func (f *file[T]) forget() error {
	f.record = nil
	return f.ops.Do("settings:forget", func() error {
		if err := os.Remove(f.records()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return whole.Sync(filepath.Dir(f.kept))
	})
}

// ownBytesMax bounds what is read of what is kept: a file, and its head.
const ownBytesMax = FileBytesMax + 1<<10

// readOwn reads a file of this user's that nobody else reads or writes.
func readOwn(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s is not a file of this user's alone", inert.Path(path))
	}
	return io.ReadAll(io.LimitReader(f, ownBytesMax))
}

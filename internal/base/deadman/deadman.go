// Package deadman has what was begun brought to an end, whatever becomes of the one who began it.
//
// Before a landing starts, the daemon writes an armed record to disk and starts a small
// process of its own standing, the keeper, that watches the record. Removing the record
// disarms it. If the daemon is gone, or the deadline passes, the keeper runs the recorded
// command, which starts a daemon, and every daemon begins by finishing or undoing what it finds open.
// A daemon that lives and yet lets its deadline pass is hung: the keeper ends it first.
//
// The record has one writer, the daemon; the log beside it has one writer, the keeper. So
// neither can bring back what the other has taken away. The package stands on the
// standard library alone: the judge shall not share the faults of the judged.
package deadman

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/disk"
)

// LifeMax is how long a deadline may lie ahead, and how long any keeper lives.
const LifeMax = time.Hour

// Armed is the record: all that firing takes, for the daemon that wrote it may be dead by then.
type Armed struct {
	Landing string    `json:"landing"`          // id of what is under way; names the file
	Argv    []string  `json:"argv"`             // what to run; Argv[0] is an absolute path
	Env     []string  `json:"env"`              // its whole environment
	Daemon  Process   `json:"daemon"`           // who armed it, or its parent
	Parted  bool      `json:"parted,omitempty"` // the daemon ends because it was asked to: only the deadline counts
	Kept    bool      `json:"kept,omitempty"`   // Daemon is the daemon's parent, which sees to deadlines itself while it runs
	Due     Deadline  `json:"due"`              // by then it is disarmed or armed again, or it fires
	At      time.Time `json:"at"`               // when it was armed, UTC
}

// Path returns where the record of a landing lies in dir.
func Path(dir, landing string) string { return filepath.Join(dir, landing+".json") }

// Arm writes a record durably. Arming again replaces the record, and the keeper that
// watches it goes by the new one. dir is made if it is absent.
func Arm(ops disk.Ops, dir string, a Armed) error {
	now, err := Now()
	if err != nil {
		return fmt.Errorf("arm the deadman: %w", err)
	}
	if err := a.check(now); err != nil {
		return fmt.Errorf("arm the deadman: %w", err)
	}
	a.At = a.At.UTC()
	raw, err := json.MarshalIndent(a, "", "\t")
	if err != nil {
		return fmt.Errorf("arm the deadman: %w", err)
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		err := ops.Do("deadman:folder", func() error {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			return persist(filepath.Dir(dir))
		})
		if err != nil {
			return fmt.Errorf("arm the deadman: %w", err)
		}
	}
	coming := filepath.Join(dir, "."+a.Landing+".new")
	if err := ops.Do("deadman:write", func() error { return write(coming, append(raw, '\n')) }); err != nil {
		return fmt.Errorf("arm the deadman: %w", err)
	}
	err = ops.Do("deadman:arm", func() error {
		return errors.Join(os.Rename(coming, Path(dir, a.Landing)), persist(dir))
	})
	if err != nil {
		return fmt.Errorf("arm the deadman: %w", err)
	}
	return nil
}

func (a Armed) check(now Moment) error {
	switch left := a.Due.Left(now); {
	case a.Landing == "" || len(a.Landing) > 64 || strings.Trim(a.Landing, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || a.Landing[0] == '-':
		return fmt.Errorf("%q cannot be the name of a record", a.Landing)
	case len(a.Argv) == 0 || !filepath.IsAbs(a.Argv[0]):
		return fmt.Errorf("%q does not begin with the absolute path of a program", a.Argv)
	case left <= 0 || left > LifeMax:
		return fmt.Errorf("the deadline %s is not within the next %s", a.Due.At(), LifeMax)
	case a.Daemon.PID <= 0:
		return fmt.Errorf("%d is not the number of a process", a.Daemon.PID)
	}
	return nil
}

// same reports whether both were armed at the same time, by the same process.
func (a Armed) same(b Armed) bool { return a.At.Equal(b.At) && a.Due == b.Due && a.Daemon == b.Daemon }

// Disarm removes a landing's record: its keeper ends. Disarming what is not armed does nothing.
func Disarm(ops disk.Ops, dir, landing string) error {
	if _, err := os.Lstat(Path(dir, landing)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := ops.Do("deadman:disarm", func() error {
		if err := os.Remove(Path(dir, landing)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return persist(dir)
	})
	if err != nil {
		return fmt.Errorf("disarm the deadman of %s: %w", landing, err)
	}
	return nil
}

// Read returns the record at path; an error wrapping fs.ErrNotExist if it is disarmed.
func Read(path string) (Armed, error) {
	var a Armed
	raw, err := os.ReadFile(path)
	if err != nil {
		return a, fmt.Errorf("read armed record: %w", err)
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("read armed record %q: %w", path, err)
	}
	return a, nil
}

// HalfMade are the names under which a crash in the middle of Arm leaves a record.
const HalfMade = ".*.new"

// Settle is what a daemon that holds the home calls once it has finished or undone what it
// found: it disarms every record, also one that cannot be read, whose landing is not open
// any more.
func Settle(ops disk.Ops, dir string, open func(landing string) bool) error {
	var errs []error
	records, err := filepath.Glob(filepath.Join(Literal(dir), "[^.]*.json"))
	if err != nil {
		return err
	}
	for _, path := range records {
		if landing := strings.TrimSuffix(filepath.Base(path), ".json"); !open(landing) {
			errs = append(errs, Disarm(ops, dir, landing))
		}
	}
	return errors.Join(errs...)
}

// Literal keeps a folder's name from being read as a pattern.
func Literal(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// write writes a file through to the disk.
func write(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// persist writes a folder's entries through to the disk.
func persist(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/base/code"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/release"
)

// Step is how far a change of the host has come. The record on the disk says it; what each step leads to stands in trial.go.
type Step string

// The steps in their order; Back may follow each but Confirmed.
const (
	Armed     Step = "armed"     // before files move: the way back stands
	Handed    Step = "handed"    // the old daemon gave the home away
	ReadyOnce Step = "ready 1"   // the new daemon answered
	Ready     Step = "ready 2"   // and once more, after a second start (SM-917)
	Asked     Step = "asked"     // a person was asked to confirm
	Confirmed Step = "confirmed" // with the code
	Back      Step = "back"      // until the old version runs again
)

// Record is a change of the host that is under way. It lies in `.state/keeper/record.json`, outside of the database (SM-902).
//
// It has one writer at a time: the old daemon writes and removes it at step Armed, from Handed on the keeper alone does. Each write
// is whole and durable, or it is none.
type Record struct {
	Change  string           `json:"change"` // id of the change
	Step    Step             `json:"step"`
	Old     string           `json:"old"` // digest of the release that runs before, and after going back
	New     string           `json:"new"` // of the one on trial; Old where only settings or the template change
	Armed   deadman.Moment   `json:"armed"`
	Handed  deadman.Moment   `json:"handed,omitzero"`  // start of the trial
	Due     deadman.Deadline `json:"due"`              // by then the next step is written, or it goes back
	Slack   time.Duration    `json:"slack,omitempty"`  // more time until ready: twice what the rehearsal's migration took
	Code    code.Hash        `json:"code"`             // confirms
	Tries   int              `json:"tries,omitempty"`  // wrong codes
	By      json.RawMessage  `json:"by,omitempty"`     // who confirmed or rolled back, as the daemon said it
	Why     string           `json:"why,omitempty"`    // of going back
	FreeMin int64            `json:"freeMin,omitzero"` // bytes: less free space than that ends the trial; 0 = no matter
}

// Files of a host change in Folder.
const (
	recordName  = "record.json"
	reserveName = "reserve" // space for the way back
	oldName     = "old"     // a folder of releases with one in it: the way back runs from it
	watchName   = "watch"   // of deadman's record, where no service manager starts a keeper again that dies
	recordMax   = 1 << 20   // bytes
)

// What may stand in the way of arming.
var (
	ErrArmed = errors.New("another host change is under way")
	ErrFull  = errors.New("there is no space to keep for the way back")
)

// RecordPath is where the record of a home lies.
func RecordPath(home string) string { return filepath.Join(Folder(home), recordName) }

// RecordOf reads the record of a home; false if no host change is under way.
func RecordOf(home string) (r Record, is bool, err error) {
	file, err := os.OpenFile(RecordPath(home), syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("read the record of the host change: %w", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, recordMax))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read the record of the host change %q: %w", file.Name(), err)
	}
	return r, true, nil
}

func (r Record) check() error {
	switch {
	case r.Change == "" || len(r.Change) > 64 || strings.Trim(r.Change, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return fmt.Errorf("%q cannot be the id of a change", r.Change)
	case !release.IsDigest(r.Old) || !release.IsDigest(r.New):
		return fmt.Errorf("%q and %q are not both digests of releases", r.Old, r.New)
	case moves[r.Step] == nil:
		return fmt.Errorf("%q is not a step", r.Step)
	case r.Slack < 0 || r.FreeMin < 0:
		return errors.New("a measure is below nothing")
	}
	return r.Code.Check()
}

// Arm writes the record of a host change at step Armed, once the way back stands: reserveBytes of space and a copy of the old
// release. The caller sets Change, Old, New, Due, Slack, Code and FreeMin. Arming the same change again replaces its record.
//
// What fails leaves no record, and Disarm frees what was made until then. Errors: ErrArmed; ErrFull; *release.Fault if the old or the
// new release is not whole.
func Arm(ops disk.Ops, home string, r Record, reserveBytes int64) error {
	err := arm(ops, home, r, reserveBytes)
	if err != nil {
		return fmt.Errorf("arm the way back of host change %s: %w", r.Change, err)
	}
	return nil
}

func arm(ops disk.Ops, home string, r Record, reserveBytes int64) (err error) {
	there, is, err := RecordOf(home)
	if err == nil && is && (there.Change != r.Change || there.Step != Armed) {
		err = fmt.Errorf("%s is at step %q: %w", there.Change, there.Step, ErrArmed)
	}
	if err != nil {
		return err
	}
	r.Step, r.Handed, r.Tries, r.By, r.Why = Armed, deadman.Moment{}, 0, nil, ""
	if r.Armed, err = deadman.Now(); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	if left := r.Due.Left(r.Armed); left <= 0 || left > deadman.LifeMax {
		return fmt.Errorf("the deadline %s is not within the next %s", r.Due.At(), deadman.LifeMax)
	}

	program, _, err := release.In(home, ops).Open(r.New)
	if err != nil {
		return err
	}
	program.Close()
	if err := makeFolder(ops, home); err != nil {
		return err
	}
	if err := keepOld(ops, home, r.Old); err != nil {
		return err
	}
	if err := reserve(ops, home, reserveBytes); err != nil {
		return err
	}
	if short := room(home, r.FreeMin); short != "" {
		return fmt.Errorf("%s beside the reserve: %w", short, ErrFull)
	}
	return r.write(ops, home)
}

// Disarm takes back what Arm did for a change, if its record is at step Armed; a later step is the keeper's. Also what an Arm has left
// that failed or died.
func Disarm(ops disk.Ops, home, change string) error {
	r, is, err := RecordOf(home)
	if err == nil && is && (r.Change != change || r.Step != Armed) {
		err = fmt.Errorf("%s is at step %q: %w", r.Change, r.Step, ErrArmed)
	}
	if err == nil {
		err = remove(ops, home)
	}
	if err != nil {
		return fmt.Errorf("disarm the way back of host change %s: %w", change, err)
	}
	return nil
}

// write brings the record to the disk.
func (r Record) write(ops disk.Ops, home string) error {
	raw, err := json.Marshal(r) // in one line: what a daemon said would grow with each level that is indented
	if err != nil {
		return err
	}
	dir := Folder(home)
	coming := coming(home)
	err = ops.Do("keeper:write", func() error {
		file, err := os.OpenFile(coming, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		_, err = file.Write(append(raw, '\n'))
		return errors.Join(err, file.Sync(), file.Close())
	})
	if err == nil {
		err = ops.Do("keeper:step", func() error {
			return errors.Join(os.Rename(coming, filepath.Join(dir, recordName)), persist(dir))
		})
	}
	if err != nil {
		return fmt.Errorf("write step %q of host change %s: %w", r.Step, r.Change, err)
	}
	return nil
}

// coming is where a step is written before it counts.
func coming(home string) string { return filepath.Join(Folder(home), "."+recordName+".new") }

// remove ends a host change: the record goes last, so a crash before leaves all of it to be done again.
func remove(ops disk.Ops, home string) error {
	if err := free(ops, home); err != nil {
		return err
	}
	dir := Folder(home)
	if err := discard(ops, "keeper:forget", filepath.Join(dir, oldName)); err != nil {
		return err
	}
	if err := deadman.Disarm(ops, dir, watchName); err != nil {
		return err
	}
	if err := discard(ops, "keeper:forget", coming(home)); err != nil { // of a step that could not be written
		return err
	}
	return discard(ops, "keeper:remove", filepath.Join(dir, recordName))
}

// discard removes something durably; absence is success.
func discard(ops disk.Ops, op, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ops.Do(op, func() error { return errors.Join(os.RemoveAll(path), persist(filepath.Dir(path))) })
}

// makeFolder makes Folder durably.
func makeFolder(ops disk.Ops, home string) error {
	dir := Folder(home)
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	return ops.Do("keeper:folder", func() error {
		return errors.Join(os.MkdirAll(dir, 0o700), persist(filepath.Dir(dir)), persist(home))
	})
}

// old is where the copy of the old release lies: no change and no pruning of releases reaches it.
func old(home string, ops disk.Ops) release.Folder {
	return release.Folder{Dir: filepath.Join(Folder(home), oldName), Ops: ops}
}

// keepOld copies the old release, and only that one, beside the record.
func keepOld(ops disk.Ops, home, digest string) error {
	from := release.In(home, ops)
	program, r, err := from.Open(digest)
	if err != nil {
		return err
	}
	program.Close()
	copies := old(home, ops)
	if r, err = copies.Put(filepath.Join(from.Dir, digest), r); err != nil {
		return full(err)
	}
	if r.Digest != digest {
		return fmt.Errorf("the copy of release %.12s is %.12s: it changed meanwhile", digest, r.Digest)
	}
	_, err = copies.Prune(0, digest)
	return err
}

// reserve takes space that going back will need, so that nothing which runs meanwhile can.
func reserve(ops disk.Ops, home string, bytes int64) error {
	path := filepath.Join(Folder(home), reserveName)
	return ops.Do("keeper:reserve", func() error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return full(err)
		}
		err = fill(file, bytes, func() error { return syscall.Fallocate(int(file.Fd()), 0, 0, bytes) })
		if err == nil {
			err = errors.Join(file.Sync(), persist(filepath.Dir(path)))
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return errors.Join(full(fmt.Errorf("reserve %d bytes: %w", bytes, err)), os.Remove(path))
		}
		return nil
	})
}

// fill gives a file its space. A file system that cannot be asked to allocate it is written to.
func fill(file io.Writer, bytes int64, allocate func() error) error {
	err := allocate()
	for errors.Is(err, syscall.EINTR) {
		err = allocate()
	}
	if !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	err = nil
	for block := make([]byte, 1<<20); bytes > 0 && err == nil; bytes -= int64(len(block)) {
		_, err = file.Write(block[:min(int64(len(block)), bytes)])
	}
	return err
}

// full names an error that says that there is no space.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// free gives the reserve back.
func free(ops disk.Ops, home string) error {
	return discard(ops, "keeper:free", filepath.Join(Folder(home), reserveName))
}

// room says how little free space a home has left if that is less than least bytes; "" = enough.
func room(home string, least int64) (short string) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(home, &fs); err != nil && least > 0 {
		return fmt.Sprintf("the free space of %q cannot be seen: %v", home, err)
	}
	if left := int64(fs.Bavail) * fs.Bsize; left < least {
		return fmt.Sprintf("%d MiB of disk are free, and %d MiB have to be", left>>20, least>>20)
	}
	return ""
}

// persist writes a folder's entries through to the disk.
func persist(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

package keeper

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/code"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
)

// plain is the code of the tests, and hash what is known of it; TestMain makes them, once for all processes.
var (
	plain string
	hash  code.Hash
)

// armable is a home with two releases, of which the old one is the current, and a record that can be armed in it.
func armable(t *testing.T) (home string, r Record) {
	t.Helper()
	now, err := deadman.Now()
	if err != nil {
		t.Fatal(err)
	}
	return furnish(t, false), Record{
		Change: "chg-1", Old: furnished.old, New: furnished.new, Code: hash, Slack: time.Second, Due: deadman.Deadline{Set: now, In: 5 * time.Minute},
	}
}

// lies returns what lies in the keeper's folder of a home.
func lies(t *testing.T, home string) string {
	t.Helper()
	entries, err := os.ReadDir(Folder(home))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestAHostChangeIsArmedWholeOrNotAtAll(t *testing.T) {
	const reserved = 1 << 20
	ops := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		home, r := armable(t)
		crashed, err := disktest.Run(func() error { return Arm(c.Ops(), home, r, reserved) })
		if err != nil || crashed != c.Crashed() {
			t.Fatalf("crashed = %v, err = %v", crashed, err)
		}
		got, is, err := RecordOf(home)
		if err != nil || !crashed && !is {
			t.Fatalf("armed %t, %v", is, err)
		}
		if is {
			if got.Step != Armed || got.Armed.Wall.IsZero() || got.Change != r.Change || got.Due != r.Due || !reflect.DeepEqual(got.Code, r.Code) {
				t.Errorf("%+v", got)
			}
			program, err := open(r.Old, old(home, disk.Ops{}))
			if err != nil {
				t.Fatalf("it is armed without the way back: %v", err)
			}
			program.Close()
			info, err := os.Stat(filepath.Join(Folder(home), reserveName))
			if err != nil || info.Size() != reserved {
				t.Errorf("it is armed without its reserve: %v, %v", info, err)
			}
		}
		// The old daemon comes back: it arms again, or it disarms, and nothing stays.
		if err := Arm(disk.Ops{}, home, r, reserved); err != nil {
			t.Errorf("armed again: %v", err)
		}
		if err := Disarm(disk.Ops{}, home, r.Change); err != nil {
			t.Errorf("disarmed: %v", err)
		}
		if left := lies(t, home); left != "" {
			t.Errorf("left over: %q", left)
		}
	})
	if want := []string{"keeper:reserve", "keeper:write", "keeper:step"}; !reflect.DeepEqual(ops[len(ops)-3:], want) {
		t.Errorf("operations %q do not end with %q", ops, want)
	}
}

func TestWhatIsDisarmedIsArmedUntilAllOfItIsGone(t *testing.T) {
	disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		home, r := armable(t)
		if err := Arm(disk.Ops{}, home, r, 1<<20); err != nil {
			t.Fatal(err)
		}
		if _, err := disktest.Run(func() error { return Disarm(c.Ops(), home, r.Change) }); err != nil {
			t.Fatal(err)
		}
		_, is, err := RecordOf(home)
		if left := lies(t, home); err != nil || !is && left != "" {
			t.Errorf("armed %t, %v, and there lies %q", is, err, left)
		}
		if err := Disarm(disk.Ops{}, home, r.Change); err != nil {
			t.Error(err)
		}
		if left := lies(t, home); left != "" {
			t.Errorf("left over: %q", left)
		}
	})
}

// Whoever comes back after a loss of power finds the step before or the one after.
func TestEachStepIsWrittenWholeOrNotAtAll(t *testing.T) {
	for _, row := range []struct {
		from Step
		e    event
		to   Step
	}{
		{Armed, handedOver, Handed}, {Handed, answered, ReadyOnce}, {ReadyOnce, answered, Ready}, {Ready, delivered, Asked}, {Asked, confirmed, Confirmed},
		{Armed, failed, Back}, {Asked, exited, Back}, {Confirmed, finalized, ""}, {Back, answered, ""},
	} {
		t.Run(string(row.from)+" "+string(row.e), func(t *testing.T) {
			disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
				home := t.TempDir()
				r := Record{Change: "chg-1", Old: strings.Repeat("0", 64), New: strings.Repeat("1", 64), Code: hash, Step: row.from}
				err := errors.Join(os.MkdirAll(filepath.Join(Folder(home), oldName), 0o700), r.write(disk.Ops{}, home), reserve(disk.Ops{}, home, 1))
				if err != nil {
					t.Fatal(err)
				}
				h := &host{home: home, ops: c.Ops(), r: r, tell: func(string, ...any) {}}
				crashed, err := disktest.Run(func() error { _, err := h.happen(row.e, "why", nil); return err })
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := RecordOf(home)
				if err != nil || got.Step != row.to && (got.Step != row.from || !crashed) || got.Step == Back && row.from != Back && got.Why != "why" {
					t.Errorf("step %q because of %q, %v", got.Step, got.Why, err)
				}
				if got.Step == "" && lies(t, home) != "" {
					t.Errorf("left over: %q", lies(t, home))
				}
			})
		})
	}
}

func TestWhatCannotBeArmedSaysWhy(t *testing.T) {
	for name, row := range map[string]struct {
		spoil   func(home string, r *Record)
		reserve int64
		want    error
		says    string
	}{
		"no space for the reserve":      {func(string, *Record) {}, 1 << 60, ErrFull, "reserve"},
		"less space than there must be": {func(_ string, r *Record) { r.FreeMin = 1 << 60 }, 1, ErrFull, "MiB of disk are free"},
		"another is under way": {func(home string, r *Record) {
			other := *r
			other.Change = "chg-0"
			if err := Arm(disk.Ops{}, home, other, 1); err != nil {
				panic(err)
			}
		}, 1, ErrArmed, `chg-0 is at step "armed"`},
		"it is on trial": {func(home string, r *Record) {
			other := *r
			other.Step = Handed
			if err := errors.Join(os.MkdirAll(Folder(home), 0o700), other.write(disk.Ops{}, home)); err != nil {
				panic(err)
			}
		}, 1, ErrArmed, `chg-1 is at step "handed"`},
		"the new release is gone": {func(_ string, r *Record) { r.New = strings.Repeat("0", 64) }, 1, release.ErrAbsent, "no such release"},
		"the old release is gone": {func(_ string, r *Record) { r.Old = strings.Repeat("0", 64) }, 1, release.ErrAbsent, "no such release"},
		"no release":              {func(_ string, r *Record) { r.Old = "../x" }, 1, nil, "not both digests"},
		"no code":                 {func(_ string, r *Record) { r.Code = code.Hash{} }, 1, nil, "hash of the code"},
		"no id":                   {func(_ string, r *Record) { r.Change = "../x" }, 1, nil, "cannot be the id"},
		"a deadline that is over": {func(_ string, r *Record) { r.Due.In = 0 }, 1, nil, "is not within"},
		"a deadline far away":     {func(_ string, r *Record) { r.Due.In = 2 * time.Hour }, 1, nil, "is not within"},
	} {
		t.Run(name, func(t *testing.T) {
			home, r := armable(t)
			row.spoil(home, &r)
			before, was, _ := RecordOf(home)
			err := Arm(disk.Ops{}, home, r, row.reserve)
			if err == nil || row.want != nil && !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v, want %v with %q", err, row.want, row.says)
			}
			if after, is, err := RecordOf(home); err != nil || is != was || !reflect.DeepEqual(after, before) {
				t.Errorf("the record is %+v, %t, %v", after, is, err)
			}
			if !was {
				if err := Disarm(disk.Ops{}, home, r.Change); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(Folder(home)); err == nil && lies(t, home) != "" {
					t.Errorf("left over: %q", lies(t, home))
				}
			}
		})
	}
}

// The way back takes one release, whole. Which those before were is no matter to it.
func TestTheOldReleaseIsKeptAlone(t *testing.T) {
	home, r := armable(t)
	if err := makeFolder(disk.Ops{}, home); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{r.New, r.Old} {
		if err := keepOld(disk.Ops{}, home, digest); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(old(home, disk.Ops{}).Dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != digest {
			t.Errorf("%v, %v", entries, err)
		}
	}
	full := disk.Ops{Around: func(string, func() error) error { return syscall.ENOSPC }}
	if err := keepOld(full, home, r.New); !errors.Is(err, ErrFull) {
		t.Errorf("on a full disk: %v", err)
	}
}

func TestAReserveIsAllocatedOrWritten(t *testing.T) {
	const block = 1 << 20
	for _, row := range []struct {
		says    []error // each time
		bytes   int64
		written int64
		want    error
	}{
		{[]error{nil}, block, 0, nil},
		{[]error{syscall.EINTR, syscall.EINTR, nil}, block, 0, nil},
		{[]error{syscall.ENOSPC}, block, 0, syscall.ENOSPC},
		{[]error{syscall.EOPNOTSUPP}, 1, 1, nil},
		{[]error{syscall.EOPNOTSUPP}, block, block, nil},
		{[]error{syscall.EINTR, syscall.ENOSYS}, 2*block + 1, 2*block + 1, nil},
		{[]error{syscall.EOPNOTSUPP, nil}, 0, 0, nil},
	} {
		var file bytes.Buffer
		tries := row.says
		err := fill(&file, row.bytes, func() error { says := tries[0]; tries = tries[1:]; return says })
		if int64(file.Len()) != row.written || err != row.want {
			t.Errorf("%d bytes where it says %v: %d are written, %v", row.bytes, row.says, file.Len(), err)
		}
	}
	writes := 0
	if err := fill(failing{&writes}, 3*block, func() error { return syscall.ENOSYS }); err != syscall.ENOSPC || writes != 1 {
		t.Errorf("%d writes to a full disk, %v", writes, err)
	}
}

// failing is a file on a full disk.
type failing struct{ writes *int }

func (f failing) Write([]byte) (int, error) { *f.writes++; return 0, syscall.ENOSPC }

func TestThatThereIsNoSpaceIsToldFromOtherFaults(t *testing.T) {
	for err, want := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EFBIG: true, syscall.EIO: false} {
		if got := full(&os.PathError{Err: err}); errors.Is(got, ErrFull) != want || !errors.Is(got, err) {
			t.Errorf("%v is %v", err, got)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if short := room(missing, 1); !strings.Contains(short, "cannot be seen") {
		t.Errorf("of a home that is not there: %q", short)
	}
	if short := room(missing, 0); short != "" {
		t.Errorf("where none has to be free: %q", short)
	}
}

func TestOnlyWhatIsArmedIsDisarmed(t *testing.T) {
	home, r := armable(t)
	if err := Disarm(disk.Ops{}, home, "chg-1"); err != nil {
		t.Errorf("nothing is armed: %v", err)
	}
	if err := Arm(disk.Ops{}, home, r, 1); err != nil {
		t.Fatal(err)
	}
	if err := Disarm(disk.Ops{}, home, "chg-2"); !errors.Is(err, ErrArmed) {
		t.Errorf("another's: %v", err)
	}
	for step := range moves {
		if r.Step = step; step == Armed {
			continue
		}
		if err := r.write(disk.Ops{}, home); err != nil {
			t.Fatal(err)
		}
		if err := Disarm(disk.Ops{}, home, "chg-1"); !errors.Is(err, ErrArmed) {
			t.Errorf("at step %q: %v", step, err)
		}
	}
}

// Whatever part of a record no daemon writes, nothing is started by it.
func TestARecordWithAPartThatIsNoneIsRefused(t *testing.T) {
	_, whole := armable(t)
	whole.Step = Armed
	for name, row := range map[string]struct {
		spoil func(r *Record)
		says  string // "" = it is taken
	}{
		"as it is":          {func(*Record) {}, ""},
		"the longest id":    {func(r *Record) { r.Change = strings.Repeat("a", 64) }, ""},
		"a longer id":       {func(r *Record) { r.Change = strings.Repeat("a", 65) }, "cannot be the id"},
		"no id":             {func(r *Record) { r.Change = "" }, "cannot be the id"},
		"a path for an id":  {func(r *Record) { r.Change = "chg/1" }, "cannot be the id"},
		"no old release":    {func(r *Record) { r.Old = "" }, "not both digests"},
		"no new release":    {func(r *Record) { r.New = "" }, "not both digests"},
		"another step":      {func(r *Record) { r.Step = "sideways" }, "is not a step"},
		"no slack":          {func(r *Record) { r.Slack, r.FreeMin = 0, 0 }, ""},
		"less than none":    {func(r *Record) { r.Slack = -1 }, "below nothing"},
		"less than no room": {func(r *Record) { r.FreeMin = -1 }, "below nothing"},
		"no code":           {func(r *Record) { r.Code = code.Hash{} }, "hash of the code"},
		"a short salt":      {func(r *Record) { r.Code.Salt = r.Code.Salt[1:] }, "hash of the code"},
		"a cheap hash":      {func(r *Record) { r.Code.Rounds = hash.Rounds - 1 }, "hash of the code"},
		"the dearest hash":  {func(r *Record) { r.Code.Rounds = 100 * hash.Rounds }, ""},
		"a dearer hash":     {func(r *Record) { r.Code.Rounds = 100*hash.Rounds + 1 }, "hash of the code"},
		"half a sum":        {func(r *Record) { r.Code.Sum = r.Code.Sum[1:] }, "hash of the code"},
	} {
		r := whole
		row.spoil(&r)
		if err := r.check(); (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, not %q", name, err, row.says)
		}
	}
}

// A record that cannot be understood is no reason to think that there is none.
func TestARecordThatCannotBeReadIsAnError(t *testing.T) {
	home := t.TempDir()
	if _, is, err := RecordOf(home); is || err != nil {
		t.Errorf("%t, %v", is, err)
	}
	if err := os.MkdirAll(Folder(home), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{"", "{", "{}", `{"change":"chg-1","step":"sideways"}`} {
		disktest.Put(t, filepath.Join(Folder(home), recordName), raw, 0o600)
		if _, is, err := RecordOf(home); is || err == nil {
			t.Errorf("%q: %t, %v", raw, is, err)
		}
		if err := Disarm(disk.Ops{}, home, "chg-1"); err == nil {
			t.Errorf("%q was disarmed", raw)
		}
	}
}

// Whoever says a word to the keeper may say much with it. What is written of that can be read again, or nothing could ever go back.
func TestARecordIsReadAgainWhateverADaemonSays(t *testing.T) {
	const most = wordMax - 200
	for name, a := range map[string]ask{
		"many folders": {By: json.RawMessage(strings.Repeat("[", 9000) + strings.Repeat("0,", (most-18000)/2) + "0" + strings.Repeat("]", 9000))},
		"long words":   {Why: strings.Repeat("<", most), By: json.RawMessage(`{"name":"<"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			home, r := armable(t)
			r.Step = Asked
			h := &host{home: home, now: deadman.Now, tell: t.Logf, r: r}
			if err := makeFolder(disk.Ops{}, home); err != nil {
				t.Fatal(err)
			}
			a.Change = r.Change
			if does, said := h.answer(wordRollBack, a, true); does != goBack || said.Refused != "" {
				t.Fatalf("%v, %+v", does, said)
			}
			if is, ok, err := RecordOf(home); err != nil || !ok || is.Step != Back {
				t.Errorf("step %q, %t, %.200v", is.Step, ok, err)
			}
		})
	}
}

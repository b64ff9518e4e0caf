package deadman

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
)

// mine is a record whose daemon is this process.
func mine(t *testing.T) Armed {
	t.Helper()
	self, err := Self()
	now, err2 := Now()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return Armed{Landing: "lnd-1", Argv: []string{"/bin/true"}, Daemon: self, Due: Deadline{Set: now, In: time.Minute}, At: time.Now()}
}

func TestARecordsBoundsAreItsOwn(t *testing.T) {
	now := moment(time.Now())
	for name, c := range map[string]struct {
		change func(*Armed)
		fits   bool
	}{
		"a name of 64 characters": {func(a *Armed) { a.Landing = strings.Repeat("a", 64) }, true},
		"a name of 65 characters": {func(a *Armed) { a.Landing = strings.Repeat("a", 65) }, false},
		"as far ahead as may be":  {func(a *Armed) { a.Due = Deadline{Set: now, In: LifeMax} }, true},
		"a moment further":        {func(a *Armed) { a.Due = Deadline{Set: now, In: LifeMax + 1} }, false},
		"now":                     {func(a *Armed) { a.Due = Deadline{Set: now} }, false},
	} {
		a := Armed{Landing: "lnd-1", Argv: []string{"/bin/true"}, Daemon: Process{PID: 1}, Due: Deadline{Set: now, In: time.Minute}}
		c.change(&a)
		if err := a.check(now); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNoCallOfTheKeeperIsAnsweredWithItsUsage(t *testing.T) {
	was := syscall.Umask(0o022)
	defer syscall.Umask(was)
	for _, args := range [][]string{nil, {"start"}, {"watch"}, {"start", "relative.json"}, {"watch", "relative.json"}, {"stop", "/absent.json"}, {"watch", "/absent.json", "more"}, {"start", "/absent.json", "more"}} {
		var out, errs bytes.Buffer
		if code := Main(args, &out, &errs); code != 2 || out.Len() > 0 || !strings.HasPrefix(errs.String(), "usage: sallyport-keeper ") {
			t.Errorf("%q: code %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}

func TestAKeeperThatGivesUpLeavesItsLogAndTheRecord(t *testing.T) {
	dir, a := t.TempDir(), mine(t)
	if err := Arm(disk.Ops{}, dir, a); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("told to end")
	cancel(gone)
	record := Path(dir, a.Landing)
	if err := keep(ctx, disk.Ops{}, record, func() {}); !errors.Is(err, gone) {
		t.Error(err)
	}
	story, err := Story(record)
	if err != nil || len(story) != 2 || story[0].State != "watching" || story[1].State != "gave_up" || story[1].Why != "told to end" {
		t.Errorf("the log tells %+v, %v", story, err)
	}
	disktest.Private(t, logPath(record), ".") // whatever the umask of its program is
	if _, err := Read(record); err != nil {
		t.Error(err)
	}
}

func TestTheCommandRunsInASessionOfItsOwnAndLeavesNothingOpen(t *testing.T) {
	dir, a := t.TempDir(), mine(t)
	record := Path(dir, a.Landing)
	a.Argv = []string{"/bin/sh", "-c", `set -- $(cat /proc/$$/stat); echo "session $6 of $$"; pwd`}
	a.Env = []string{"PATH=/usr/bin:/bin"}
	before, _ := os.ReadDir("/proc/self/fd")
	if err := fire(t.Context(), disk.Ops{}, record, a); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before) {
		t.Errorf("%d descriptors were open, and %d are", len(before), len(after))
	}
	raw, err := os.ReadFile(outputPath(record))
	f := strings.Fields(string(raw))
	if err != nil || len(f) != 5 || f[1] != f[3] || f[4] != "/" {
		t.Errorf("the command says %q, %v", raw, err)
	}
	disktest.Private(t, outputPath(record), ".")
}

// TestTheCommandKnowsWhetherItIsStillWanted holds that what it starts it starts only while its record is armed.
func TestTheCommandKnowsWhetherItIsStillWanted(t *testing.T) {
	dir, a := t.TempDir(), mine(t)
	record := Path(dir, a.Landing)
	a.Argv, a.Env = []string{"/bin/sh", "-c", "echo $" + RecordVariable}, []string{"PATH=/usr/bin:/bin"}
	if err := errors.Join(Arm(disk.Ops{}, dir, a), fire(t.Context(), disk.Ops{}, record, a)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(outputPath(record))
	told := func(string) string { return strings.TrimSpace(string(raw)) }
	if err != nil || Disarmed(told) || Disarmed(func(string) string { return "" }) {
		t.Errorf("the command is told of %q, %v", raw, err)
	}
	if err := Disarm(disk.Ops{}, dir, a.Landing); err != nil || !Disarmed(told) {
		t.Errorf("it is wanted for %q, %v", raw, err)
	}
}

func TestTheEndOfLongOutputIsShown(t *testing.T) {
	text := strings.Repeat("a", 3000) + strings.Repeat("z", 48)
	for _, want := range []string{"", "short", text[len(text)-tailMax:]} {
		file, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		whole := want
		if len(want) == tailMax {
			whole = text
		}
		if _, err := file.WriteString(whole); err != nil {
			t.Fatal(err)
		}
		if got := tail(file); string(got) != want {
			t.Errorf("of %d bytes it shows %d: %q", len(whole), len(got), got)
		}
	}
}

func TestWhatIsWrittenSaysTheTimeOfAllAndSettlingNothingDoesNothing(t *testing.T) {
	dir, a := t.TempDir(), mine(t)
	a.At = time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	if err := Arm(disk.Ops{}, dir, a); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(Path(dir, a.Landing)); err != nil || !strings.Contains(string(raw), `"at": "2026-01-02T02:04:05Z"`) {
		t.Errorf("%s, %v", raw, err)
	}
	var did []string
	ops := disk.Ops{Around: func(op string, do func() error) error { did = append(did, op); return do() }}
	if err := Settle(ops, dir, func(string) bool { return true }); err != nil || len(did) > 0 {
		t.Errorf("did %q, %v", did, err)
	}
}

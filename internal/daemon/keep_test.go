package daemon

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
)

// SV-041: wherever it stops, the exported diff is the whole old one, the whole new one, or none.
func TestAnExportedDiffIsWholeOrNotThere(t *testing.T) {
	for at := 0; ; at++ {
		home := t.TempDir()
		d := &Daemon{Options: Options{Home: home}}
		file, err := d.Keep(t.Context(), "chg-00000001", "ckpt-001-0123abcd", func(w io.Writer) error { _, err := io.WriteString(w, "old\n"); return err })
		if want := filepath.Join(home, ".state", "changes", "chg-00000001", "checkpoints", "ckpt-001-0123abcd.diff"); err != nil || file != want {
			t.Fatalf("%q, %v", file, err)
		}
		crash := &disktest.Crash{At: at / 2, After: at%2 == 1}
		d.Ops = crash.Ops()
		crashed, err := disktest.Run(func() error {
			_, err := d.Keep(t.Context(), "chg-00000001", "ckpt-001-0123abcd", func(w io.Writer) error { _, err := io.WriteString(w, "new\n"); return err })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != "old\n" && string(got) != "new\n" {
			t.Errorf("stopped at %d: %q, %v", at, got, err)
		}
		if !crashed {
			if string(got) != "new\n" {
				t.Errorf("not replaced: %q", got)
			}
			if at < 6 {
				t.Errorf("only %d places to stop at", at)
			}
			return
		}
	}
}

func TestADiffThatBreaksLeavesNoFile(t *testing.T) {
	home := t.TempDir()
	d := &Daemon{Options: Options{Home: home, Ops: disk.Ops{}}}
	broken := errors.New("git went away")
	_, err := d.Keep(t.Context(), "chg-00000001", "ckpt-001-0123abcd", func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(filepath.Join(home, ".state", "changes", "chg-00000001", "checkpoints"))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	whole := func(w io.Writer) error { _, err := io.WriteString(w, "whole\n"); return err }
	file, err := d.Keep(t.Context(), "chg-00000001", "ckpt-001-0123abcd", whole)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Keep(t.Context(), "chg-00000001", "ckpt-001-0123abcd", func(w io.Writer) error { return errors.Join(whole(w), broken) })
	if got, read := os.ReadFile(file); !errors.Is(err, broken) || read != nil || string(got) != "whole\n" {
		t.Errorf("what was there is %q, %v after %v", got, read, err)
	}
	l := limited{io.Discard, 3}
	if _, err := l.Write([]byte("four")); problem.KindOf(err) != problem.Refused {
		t.Errorf("more than the limit: %v", err)
	}
}

// What a person exports or reads of a change would else be empty after a loss of power, under its own name.
func TestWhatIsKeptForAPersonIsOnTheDiskBeforeItHasItsNameAndTheirsAlone(t *testing.T) {
	const of, diff = ".state/changes/chg-00000001/", "checkpoints/ckpt-001-0123abcd.diff"
	calls := disktest.Calls(t, func(dir string) {
		d := &Daemon{Options: Options{Home: dir}}
		_, err := d.Keep(t.Context(), "chg-00000001", "ckpt-001-0123abcd", func(w io.Writer) error { _, err := io.WriteString(w, "old\n"); return err })
		noted := notebook{folder: filepath.Join(dir, ".state", "changes")}.Write(t.Context(), "chg-00000001", points(1))
		noted = errors.Join(noted, notebook{folder: filepath.Join(dir, ".state", "notes")}.Write(t.Context(), "chg-00000002", points(1)))
		if err := errors.Join(err, noted); err != nil {
			t.Fatal(err)
		}
		disktest.Private(t, filepath.Join(dir, ".state"), "changes/chg-00000001/state.md", "changes/chg-00000001/"+diff, "notes/chg-00000002/state.md")
	})
	for _, name := range []string{diff, "state.md"} {
		at := regexp.QuoteMeta(of + name)
		disktest.Ordered(t, calls, `fsync `+at+`\.new`, `rename `+at+`\.new `+at)
	}
}

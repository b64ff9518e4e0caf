package problem_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"sallyport/internal/base/problem"
)

var errMoved = problem.New(problem.Conflict, "it has moved on")

func TestWhatAPersonIsTold(t *testing.T) {
	absent := problem.Errorf(problem.NotFound, "sallyport change list", "there is no change %q: %w", "chg-1", fs.ErrNotExist)
	for _, c := range []struct {
		name string
		err  error
		want problem.Problem // without what it wraps
	}{
		{"a sentinel", errMoved, problem.Problem{Kind: problem.Conflict, Text: "it has moved on"}},
		{"wrapped: the words around it stay", fmt.Errorf("land chg-1: %w", errMoved),
			problem.Problem{Kind: problem.Conflict, Text: "land chg-1: it has moved on"}},
		{"with a way out", fmt.Errorf("show: %w", absent),
			problem.Problem{Kind: problem.NotFound, Text: `show: there is no change "chg-1": file does not exist`, Next: "sallyport change list"}},
		{"the outer kind counts, the inner way out is kept",
			problem.Errorf(problem.Refused, "", "cannot land: %w", absent),
			problem.Problem{Kind: problem.Refused, Text: `cannot land: there is no change "chg-1": file does not exist`, Next: "sallyport change list"}},
		{"the outer way out counts",
			problem.Errorf(problem.Refused, "sallyport status", "no: %w", absent),
			problem.Problem{Kind: problem.Refused, Text: `no: there is no change "chg-1": file does not exist`, Next: "sallyport status"}},
		{"joined", errors.Join(io.EOF, errMoved), problem.Problem{Kind: problem.Conflict, Text: "EOF\nit has moved on"}},
		{"a stranger is a fault of ours", io.EOF, problem.Problem{Kind: problem.Internal, Text: "EOF"}},
	} {
		got := problem.Of(c.err)
		if got.Kind != c.want.Kind || got.Text != c.want.Text || got.Next != c.want.Next {
			t.Errorf("%s: %q %q %q", c.name, got.Kind, got.Text, got.Next)
		}
		if problem.KindOf(c.err) != c.want.Kind {
			t.Errorf("%s: kind %q", c.name, problem.KindOf(c.err))
		}
	}
	if got := problem.KindOf(nil); got != "" {
		t.Errorf("no error has kind %q", got)
	}
}

func TestNothingThatIsWrappedIsLost(t *testing.T) {
	both := problem.Errorf(problem.Unavailable, "", "a %w and a %w", errMoved, fs.ErrPermission)
	for _, err := range []error{both, fmt.Errorf("more: %w", both)} {
		if !errors.Is(err, errMoved) || !errors.Is(err, fs.ErrPermission) || errors.Is(err, io.EOF) {
			t.Errorf("%v lost what it wraps", err)
		}
	}
	if p := problem.Of(both); !errors.Is(&p, fs.ErrPermission) {
		t.Error("Of lost what was wrapped")
	}
	plain := problem.Errorf(problem.Usage, "x", "no %s", "verb")
	if p := problem.Of(plain); p.Text != "no verb" || p.Next != "x" {
		t.Errorf("%+v", p)
	}
}

func TestADiskThatTakesNothingIsNamedWhoeverSaysIt(t *testing.T) {
	write := func(no syscall.Errno) error {
		return fmt.Errorf("keep it: %w", &fs.PathError{Op: "write", Path: "/srv/it's/new", Err: no})
	}
	for _, c := range []struct {
		err  error
		text string
		next string
	}{
		{write(syscall.ENOSPC), "the disk is full: keep it: write /srv/it's/new: no space left on device", `df -h '/srv/it'\''s'`},
		{write(syscall.EDQUOT), "the disk quota is used up: keep it: write /srv/it's/new: disk quota exceeded", `df -h '/srv/it'\''s'`},
		{write(syscall.EROFS), "the disk is read-only: keep it: write /srv/it's/new: read-only file system", `findmnt -T '/srv/it'\''s'`},
		{fmt.Errorf("swap: %w", syscall.EROFS), "the disk is read-only: swap: read-only file system", "findmnt -O ro"},
		{problem.Disk("/r", errors.New("git x: fatal: No space left on device")), "the disk is full: git x: fatal: No space left on device", "df -h '/r'"},
	} {
		if p := problem.Of(c.err); p.Kind != problem.Unavailable || p.Text != c.text || p.Next != c.next {
			t.Errorf("%v: %s %q, next %q", c.err, p.Kind, p.Text, p.Next)
		}
	}
	for _, err := range []error{
		nil, errors.New("an agent says: No space left on device"), problem.Errorf(problem.Refused, "x", "no watches: %w", syscall.ENOSPC),
	} {
		if p := problem.KindOf(err); p == problem.Unavailable {
			t.Errorf("%v is taken for a disk", err)
		}
	}
}

// A class says of every case something that is true of few: an empty repository is no branch that cannot be moved.
func TestACaseOfAClassIsToldInItsOwnWords(t *testing.T) {
	err := problem.Case(errMoved, "git status", "%q has a new commit: %w", "main", io.EOF)
	if p := problem.Of(err); p.Kind != problem.Conflict || p.Text != `"main" has a new commit: EOF` || p.Next != "git status" {
		t.Errorf("%s %q, next %q", p.Kind, p.Text, p.Next)
	}
	if wrapped := fmt.Errorf("land: %w", err); !errors.Is(wrapped, errMoved) || !errors.Is(wrapped, io.EOF) {
		t.Errorf("%v lost its class, or what it wraps", wrapped)
	}
	bare := problem.Case(fmt.Errorf("%w", errMoved), "", "it has gone")
	if p := problem.Of(bare); p.Kind != problem.Conflict || p.Text != "it has gone" || p.Next != "" {
		t.Errorf("%s %q, next %q", p.Kind, p.Text, p.Next)
	}
}

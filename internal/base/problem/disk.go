package problem

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// disks is what a disk that takes nothing any more says, by number or in a program's words.
var disks = []struct {
	number syscall.Errno
	words  string
	name   string
	look   string // a command that shows it
}{
	{syscall.ENOSPC, "No space left on device", "the disk is full", "df -h"},
	{syscall.EDQUOT, "Disk quota exceeded", "the disk quota is used up", "df -h"},
	{syscall.EROFS, "Read-only file system", "the disk is read-only", "findmnt -T"},
}

// diskIn is Disk by number alone: words may be anybody's.
func diskIn(err error) *Problem {
	for _, d := range disks {
		if errors.Is(err, d.number) {
			var p *Problem
			errors.As(Disk("", err), &p)
			return p
		}
	}
	return nil
}

// Disk returns err as a problem that names the disk if a disk that is full or read-only is what it is about;
// else err as it is. path lies on that disk; "" if the error has to say it.
func Disk(path string, err error) error {
	if err == nil {
		return nil
	}
	for _, d := range disks {
		if !errors.Is(err, d.number) && !strings.Contains(err.Error(), d.words) {
			continue
		}
		var at *fs.PathError
		if path == "" && errors.As(err, &at) {
			path = filepath.Dir(at.Path) // which is there, and a file that could not be made is not
		}
		next := d.look
		if path != "" {
			next += " '" + strings.ReplaceAll(path, "'", `'\''`) + "'"
		} else if d.number == syscall.EROFS {
			next = "findmnt -O ro"
		}
		return Errorf(Unavailable, next, "%s: %w", d.name, err)
	}
	return err
}

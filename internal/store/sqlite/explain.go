package sqlite

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// explain turns what the driver or the system says into what is wrong and what to look at.
// An error that is none of theirs comes back as it is.
func explain(path string, err error) error {
	folder := filepath.Dir(path)
	switch code := primary(err); {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), code == lib.SQLITE_FULL,
		code == lib.SQLITE_IOERR && full(folder):
		return problem.Errorf(problem.Unavailable, "df -h "+inert.Path(folder),
			"the disk is full: the database %q could not be written (%w)", path, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission), code == lib.SQLITE_READONLY, code == lib.SQLITE_PERM:
		return problem.Errorf(problem.Unavailable, "findmnt -T "+inert.Path(folder)+"; ls -ld "+inert.Path(folder),
			"the home's folder %q cannot be written (%w)", folder, err)
	case code == lib.SQLITE_CANTOPEN:
		return problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(folder), "the database %q cannot be opened (%w)", path, err)
	case code == lib.SQLITE_BUSY, code == lib.SQLITE_LOCKED:
		return problem.Errorf(problem.Unavailable, "sallyport daemon status",
			"another process holds the database %q (%w)", path, err)
	case code == lib.SQLITE_NOTADB, code == lib.SQLITE_CORRUPT:
		return problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(folder),
			"%q is damaged, or no database of sallyport's: put a copy of it in its place (%w)", path, err)
	case code == lib.SQLITE_IOERR:
		return problem.Errorf(problem.Unavailable, "dmesg | tail",
			"the disk under the database %q could not be read or written (%w)", path, err)
	}
	return err
}

// primary returns SQLite's result code without its extension, 0 if err is not SQLite's.
func primary(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// lost reports whether an error may have ended the whole transaction, not only its statement.
func lost(err error) bool {
	switch primary(err) {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_INTERRUPT, lib.SQLITE_BUSY,
		lib.SQLITE_CORRUPT, lib.SQLITE_READONLY, lib.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// duplicate reports whether err says that a row of this name is there already.
func duplicate(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// orphan reports whether err says that the row it belongs to does not exist.
func orphan(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == lib.SQLITE_CONSTRAINT_FOREIGNKEY
}

// full reports whether an ordinary user has no room left on folder's file system: a full
// disk shows as an input/output error where SQLite extends its shared memory.
func full(folder string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(folder, &s) == nil && s.Blocks > 0 && s.Bavail == 0
}

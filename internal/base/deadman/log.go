package deadman

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// Event is one line of a keeper's log.
type Event struct {
	At      time.Time `json:"at"`    // UTC
	State   string    `json:"state"` // watching, fired, failed, ended, disarmed, gave_up
	Attempt int       `json:"attempt,omitempty"`
	Why     string    `json:"why,omitempty"`
}

func logPath(record string) string    { return strings.TrimSuffix(record, ".json") + ".log" }
func outputPath(record string) string { return strings.TrimSuffix(record, ".json") + ".out" }

// errWatched says that another keeper watches the record.
var errWatched = errors.New("another keeper watches")

// log is a keeper's log file; the lock on it makes that keeper the only one.
type log struct {
	path  string
	file  *os.File
	fired bool
}

func openLog(record string) (*log, error) {
	l := &log{path: logPath(record)}
	for {
		file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return nil, errors.Join(errWatched, err, file.Close())
		}
		l.file = file
		mine, _ := file.Stat()
		now, _ := os.Stat(l.path)
		if os.SameFile(mine, now) { // never of what cannot be looked at
			return l, nil
		}
		_ = file.Close() // a keeper that ended has just removed it
	}
}

// tell appends one line. A log that cannot be written stops nothing.
func (l *log) tell(state string, attempt int, why string) {
	l.fired = l.fired || state == "fired"
	raw, err := json.Marshal(Event{At: time.Now().UTC().Truncate(time.Millisecond), State: state, Attempt: attempt, Why: why})
	if err == nil {
		_, _ = fmt.Fprintf(l.file, "%s\n", raw)
	}
}

// end removes the log if there is nothing to tell, and gives the lock back.
func (l *log) end(record string) error {
	var errs []error
	if !l.fired {
		errs = append(errs, os.Remove(l.path))
		if err := os.Remove(outputPath(record)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, l.file.Close())...)
}

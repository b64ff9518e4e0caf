package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/rule/secret"
)

const logBytesMax = 64 << 20

// FileChange is one line of file-changes.jsonl (SV-062). Its event type is add, change or
// unlink; in the last line of a log that has reached its limit it is full.
type FileChange struct {
	Timestamp    time.Time      `json:"timestamp"` // when it was seen
	EventType    string         `json:"event_type"`
	FilePath     string         `json:"file_path"`     // below the workspace; bytes that are no UTF-8 as \xNN
	FileSize     int64          `json:"file_size"`     // in bytes, as seen; 0 of what is gone
	CheckpointID *id.Checkpoint `json:"checkpoint_id"` // the last one before it; null before the first
}

// watchLog appends lines, those of one reading at once.
type watchLog struct {
	ops        disk.Ops
	secrets    *secret.Scanner
	file       *os.File
	size, max  int64 // size counts what is buffered too
	full       bool
	buffer     bytes.Buffer
	checkpoint *id.Checkpoint
	err        error // of the last writing; nil once one succeeds
}

func openWatchLog(watched Watched) (watchLog, error) {
	l := watchLog{ops: watched.Ops, max: watched.LogBytesMax, secrets: watched.Secrets}
	if l.secrets == nil {
		l.secrets = secret.Default()
	}
	if l.max <= 0 {
		l.max = logBytesMax
	}
	err := l.ops.Do("watchlog:open", func() (err error) {
		if err := os.MkdirAll(filepath.Dir(watched.Log), 0o700); err != nil {
			return err
		}
		l.file, err = os.OpenFile(watched.Log, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
		return err
	})
	if err != nil {
		return l, err
	}
	if err := l.tail(); err != nil {
		return l, fmt.Errorf("read the end of %s: %w", watched.Log, err)
	}
	return l, nil
}

// tail finds out whether the log is full, and ends a line that a crash left half.
func (l *watchLog) tail() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	l.size = info.Size()
	end := make([]byte, min(l.size, 512))
	if _, err := l.file.ReadAt(end, l.size-int64(len(end))); err != nil && err != io.EOF {
		return err
	}
	if len(end) > 0 && end[len(end)-1] != '\n' {
		l.put([]byte("\n"))
	}
	last := end[bytes.LastIndexByte(bytes.TrimSuffix(end, []byte("\n")), '\n')+1:]
	var line FileChange
	l.full = l.size >= l.max || json.Unmarshal(last, &line) == nil && line.EventType == "full"
	return nil
}

func (l *watchLog) put(line []byte) {
	l.buffer.Write(line)
	l.size += int64(len(line))
}

// add appends one line. The last one that fits says that the log is full.
func (l *watchLog) add(path, kind string, size int64) {
	if l.full {
		return
	}
	if path = l.secrets.Name(path); !utf8.ValidString(path) {
		path = inert.Line(path)
	}
	line := l.line(FileChange{EventType: kind, FilePath: path, FileSize: size})
	last := l.line(FileChange{EventType: "full"})
	if l.size+int64(len(line)+len(last)) > l.max {
		line, l.full = last, true
	}
	if l.put(line); l.buffer.Len() >= flushBytes {
		l.flush()
	}
}

func (l *watchLog) line(c FileChange) []byte {
	c.Timestamp, c.CheckpointID = time.Now().UTC(), l.checkpoint
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // of plain strings and numbers
	}
	return append(data, '\n')
}

// flush writes what is buffered. Lines that cannot be written are dropped: the log is
// for people, and the tree decides.
func (l *watchLog) flush() {
	if l.buffer.Len() == 0 || l.file == nil {
		return
	}
	wrote := 0
	l.err = l.ops.Do("watchlog:append", func() (err error) {
		wrote, err = l.file.Write(l.buffer.Bytes())
		return err
	})
	rest := l.buffer.Bytes()[wrote:]
	l.size -= int64(len(rest))
	l.buffer.Reset()
	if wrote > 0 && len(rest) > 0 {
		l.put([]byte("\n")) // ends the line that was cut
	}
}

func (l *watchLog) close() {
	if l.file == nil {
		return
	}
	l.flush()
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	l.file = nil
}

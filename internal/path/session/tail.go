package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/base/disk"
)

// Tail returns the end of what was said in the session whose folder is dir, at most limit bytes of whole lines: what the
// program wrote, and between it, in brackets, what happened to it. "" if it never ran.
func Tail(dir string, limit int) (string, error) {
	var lines []string
	size := 0
	err := lastOf(dir, 8*int64(limit), func(l Line) { // an entry is longer than its text, seldom by more
		if l.ForHost() {
			return
		}
		if l.Stream == "event" {
			l.Text = "[" + l.Text + "]"
		}
		lines, size = append(lines, l.Text), size+len(l.Text)+1
		for size > limit {
			size -= len(lines[0]) + 1
			lines = lines[1:]
		}
	})
	if err != nil {
		return "", err
	}
	return strings.Join(lines, "\n"), nil
}

// lastOf calls each with the entries in the last bytes of the transcript of the session whose folder is dir; with none if it never ran.
func lastOf(dir string, bytes int64, each func(Line)) error {
	f, err := os.Open(filepath.Join(dir, transcriptName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	skip := max(0, info.Size()-bytes)
	if _, err := f.Seek(skip, io.SeekStart); err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 8*LineBytesMax) // a byte becomes at most six when it is escaped
	for first := true; s.Scan(); first = false {
		var l Line
		if first && skip > 0 || json.Unmarshal(s.Bytes(), &l) != nil {
			continue // most likely half a line, as a daemon that died may have left one too
		}
		each(l)
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	return nil
}

// transcriptOld is where a transcript goes that grew long.
const transcriptOld = "transcript.old.jsonl"

// TurnOver puts the transcript of the session whose folder is dir aside once it is longer than limit bytes, in the place of the one that was
// put aside before, so that a session which goes on for years has two of them at the most. No sandbox may be alive on it.
func TurnOver(ops disk.Ops, dir string, limit int64) error {
	path := filepath.Join(dir, transcriptName)
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() <= limit {
		return nil
	}
	if err == nil {
		err = ops.Do("session:turn-over", func() error { return os.Rename(path, filepath.Join(dir, transcriptOld)) })
	}
	if err != nil {
		return fmt.Errorf("put a long transcript aside: %w", err)
	}
	return nil
}

package pi

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sallyport/internal/base/pattern"
)

// sessionForm is a session's name: that of its file, which is pi's to write.
var sessionForm = pattern.Of(`^pi-[0-9a-f]{16}$`)

func newSession() string {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // it never fails
	return "pi-" + hex.EncodeToString(raw)
}

func (s setup) sessions() string { return filepath.Join(s.dir(), "sessions") }

// file is where a session is kept.
func (s setup) file(session string) string { return filepath.Join(s.sessions(), session+".jsonl") }

// mend makes a session's file ready to go on with: a line that was half written when pi died is cut off, because pi would
// append to it and so lose the next one too. Errors: os.ErrNotExist if nothing was kept.
func mend(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	end, err := lastLine(f, info.Size())
	if err == nil && end < info.Size() {
		err = f.Truncate(end)
	}
	if other := f.Close(); err == nil {
		err = other
	}
	if err != nil {
		return fmt.Errorf("cut what was half written: %w", err)
	}
	if end == 0 {
		return os.ErrNotExist
	}
	return nil
}

// lastLine is where the last whole line ends; 0 = there is none.
func lastLine(f io.ReaderAt, size int64) (int64, error) {
	const step = 64 << 10
	buf := make([]byte, step)
	for end := size; end > 0; end -= step {
		from := max(end-step, 0)
		piece := buf[:end-from]
		if _, err := f.ReadAt(piece, from); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if at := bytes.LastIndexByte(piece, '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
	}
	return 0, nil
}

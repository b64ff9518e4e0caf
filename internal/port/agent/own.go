package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ReadOwn reads a file of an agent's home folder, of at most so many bytes. The agent can write there: what is no ordinary file is
// refused, and a pipe is not waited for. Errors: os.ErrNotExist if there is none.
func ReadOwn(path string, bytesMax int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no ordinary file", filepath.Base(path)))
	}
	raw, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err == nil && int64(len(raw)) > bytesMax {
		err = fmt.Errorf("%s has more than %d bytes", filepath.Base(path), bytesMax)
	}
	return raw, err
}

// WriteOwn replaces a file of an agent's home folder, and makes the folders that it lies in: it is the old one or the new one, whatever
// happens. What lies in the way is the agent's, or of a program that was killed: nothing is written into it, and no pipe is waited for.
func WriteOwn(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	fresh := path + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // a rename is no promise about what was written
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return os.Rename(fresh, path)
}

package codex

import (
	"os"
	"path/filepath"
	"strings"
)

// A thread is a session of codex. It gets its name only once its first turn has begun, so the engine notes it itself then:
// a host that dies in that turn is to find it again.
const (
	noteDir        = ".sallyport"
	noteName       = "codex-thread"
	threadBytesMax = 64
)

// proper reports whether a text can be a thread's name: it becomes an argument and part of a path.
func proper(thread string) bool {
	return thread != "" && len(thread) <= threadBytesMax && thread[0] != '-' &&
		strings.Trim(thread, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

// noted is the thread that was begun last in a home folder; "" if none was.
func noted(home string) string {
	f, err := os.Open(filepath.Join(home, noteDir, noteName))
	if err != nil {
		return ""
	}
	defer f.Close()
	raw := make([]byte, threadBytesMax+1)
	n, _ := f.Read(raw) // of nothing, nothing
	if thread := strings.TrimSpace(string(raw[:n])); proper(thread) {
		return thread
	}
	return ""
}

// note keeps a thread's name for when this process is killed.
func note(home, thread string) error {
	dir := filepath.Join(home, noteDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, noteName)
	if err := os.WriteFile(path+".new", []byte(thread+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// recorded reports whether codex has kept anything of a thread: one that was killed as it began has an empty record, with which
// codex does not go on.
func recorded(codexHome, thread string) bool {
	if !proper(thread) {
		return false
	}
	all, _ := filepath.Glob(filepath.Join(codexHome, "sessions", "*", "*", "*", "rollout-*-"+thread+".jsonl*"))
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return true
		}
	}
	return false
}

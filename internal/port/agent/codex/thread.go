package codex

import (
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/port/agent"
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
	raw, _ := agent.ReadOwn(filepath.Join(home, noteDir, noteName), threadBytesMax+1) // of what cannot be read, nothing
	if thread := strings.TrimSpace(string(raw)); proper(thread) {
		return thread
	}
	return ""
}

// note keeps a thread's name for when this process is killed.
func note(home, thread string) error {
	return agent.WriteOwn(filepath.Join(home, noteDir, noteName), []byte(thread+"\n"))
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

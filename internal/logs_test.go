package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A process id in a log is another process's by the time that somebody reads it (CH-110). Who wants one asks for it.
func TestNoLogLineCarriesAProcessID(t *testing.T) {
	line := regexp.MustCompile(`(?i)\blog(ger)?\.(Debug|Info|Warn|Error|Log)(Context|Attrs)?\(.*("pid"|"process"|Getpid|\.PID\b)`)
	event := regexp.MustCompile("(?s)type Event struct {[^}]*`json:\"pid\"`")
	lines := 0
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for n, l := range strings.Split(string(text), "\n") {
			if strings.Contains(l, "log.Info(") || strings.Contains(l, "Log.Warn(") {
				lines++
			}
			if strings.Contains(strings.ToLower(l), "log") && line.MatchString(l) { // few lines are looked at by the expression
				t.Errorf("%s:%d logs a process id: %s", path, n+1, strings.TrimSpace(l))
			}
		}
		if event.Match(text) {
			t.Errorf("%s: an event of a log has a process id", path)
		}
		return nil
	})
	if err != nil || lines < 20 {
		t.Errorf("%d lines of a log were looked at: %v", lines, err)
	}
}

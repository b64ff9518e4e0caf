package session_test

import (
	"testing"

	"sallyport/internal/path/session"
)

// TestWhatTheHostSaysOfAProgramIsNoOutputOfIt holds what a person is told of how much a program has printed.
func TestWhatTheHostSaysOfAProgramIsNoOutputOfIt(t *testing.T) {
	for stream, want := range map[string]int64{"stdout": 6, "stderr": 6, "event": 0} {
		if got := (session.Line{Stream: stream, Text: "hello"}).PrintedBytes(); got != want {
			t.Errorf("%s: %d bytes, not %d", stream, got, want)
		}
	}
}

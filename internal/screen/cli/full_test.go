package cli

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, unix.ENOSPC }

func TestResultsThatCouldNotBeWrittenAreNoSuccess(t *testing.T) {
	for _, words := range [][]string{{"version"}, {"version", "--json"}, {"--help"}} {
		var said bytes.Buffer
		code := Main(Program{In: strings.NewReader(""), Out: full{}, Err: &said, Getenv: func(string) string { return "" }}, words)
		if code != exitError {
			t.Errorf("%q ends with %d: %s", words, code, said.String())
		}
	}
}

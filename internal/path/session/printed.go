package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
)

// SetupDir is where a change keeps what its setup printed when it failed; changes is the home's folder of what is kept for people.
func SetupDir(changes string, change id.Change) string {
	return filepath.Join(changes, string(change), "setup")
}

// KeepTranscript writes the transcript of a program that has ended and had no session, in the place of an earlier one: what it
// printed, then an event. The secrets are out already.
func KeepTranscript(ops disk.Ops, dir, printed, event string) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	at := time.Now().UTC()
	add := func(stream, text string) error { return lines.Encode(Line{At: at, Stream: stream, Text: text}) }

	var err error
	for text := range strings.Lines(printed) {
		for text = strings.TrimRight(text, "\r\n"); len(text) > LineBytesMax; text = text[LineBytesMax:] {
			err = errors.Join(err, add("stdout", text[:LineBytesMax]))
		}
		err = errors.Join(err, add("stdout", text))
	}
	if err = errors.Join(err, add("event", event)); err != nil {
		return err
	}

	return ops.Do("transcript:keep", func() error {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, transcriptName), b.Bytes(), 0o600)
	})
}

// HasTranscript reports whether a folder has a transcript.
func HasTranscript(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, transcriptName))
	return err == nil
}

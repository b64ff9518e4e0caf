package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/rule/config"
)

const (
	notesBytesMax = 48 << 10 // of the records; older ones are left out and counted, so that the file can always be read
	notesFilesMax = 20       // paths named per record
)

// notebook keeps each change's state.md: front matter that is a copy of its checkpoints' rows, and
// the same as a list for people (SV-041).
type notebook struct {
	folder string // .state/changes
	ops    disk.Ops
}

func (n notebook) file(change id.Change) string {
	return filepath.Join(n.folder, string(change), "state.md")
}

// Write replaces a change's state.md: written aside, made durable, renamed. The execution mode that
// stands there stays, for a person may have set it; one that cannot be read is replaced.
func (n notebook) Write(_ context.Context, change id.Change, checkpoints []checkpoint.Checkpoint) error {
	file := n.file(change)
	mode, err := config.LoadState(file)
	if err != nil || mode == "" {
		mode = config.Interactive
	}
	if err := n.ops.Do("notes:folder", func() error { return os.MkdirAll(filepath.Dir(file), 0o700) }); err != nil {
		return err
	}
	aside := file + ".new"
	err = n.ops.Do("notes:write", func() error {
		out, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		_, err = out.WriteString(notes(change, mode, checkpoints))
		if err == nil {
			err = out.Sync()
		}
		return errors.Join(err, out.Close())
	})
	if err == nil {
		err = n.ops.Do("notes:commit", func() error { return os.Rename(aside, file) })
	}
	if err != nil { // on a full disk it would hold what room there is
		return errors.Join(err, n.ops.Do("notes:clear", func() error { return os.RemoveAll(aside) }))
	}
	return nil
}

// Deterministic reports whether a change's state.md asks for that mode.
func (n notebook) Deterministic(_ context.Context, change id.Change) (bool, error) {
	mode, err := config.LoadState(n.file(change))
	return mode == config.Deterministic, err
}

// notes is the text of a state.md. Every word in it that is not the host's is quoted in ASCII, which
// is the same text in YAML.
func notes(change id.Change, mode config.ExecutionMode, checkpoints []checkpoint.Checkpoint) string {
	first, size := len(checkpoints), 0
	records := make([]string, len(checkpoints))
	for first > 0 {
		records[first-1] = record(checkpoints[first-1])
		if size += len(records[first-1]); size > notesBytesMax {
			break
		}
		first--
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\nexecution_mode: %s\nchange: %s\ncheckpoints_left_out: %d\ncheckpoints:", mode, change, first)
	if first == len(checkpoints) {
		b.WriteString(" []")
	}
	b.WriteString("\n" + strings.Join(records[first:], ""))
	fmt.Fprintf(&b, "---\n\n# %s\n\nA copy for people, written after each checkpoint; of it only `execution_mode` is read, when the change is resumed.\n\n", change)
	for _, c := range checkpoints[first:] {
		fmt.Fprintf(&b, "- %s %s: %s, %d files since the last, %d in all, %d violations\n", c.At.UTC().Format(time.RFC3339), c.ID,
			c.Status, c.SinceLast, c.Total(), len(c.Violations))
	}
	return b.String()
}

// record is one checkpoint as an entry of a YAML list.
func record(c checkpoint.Checkpoint) string {
	files := c.FilesChanged[:min(len(c.FilesChanged), notesFilesMax)]
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = strconv.QuoteToASCII(f)
	}
	return fmt.Sprintf("  - checkpoint_id: %q\n    timestamp: %q\n    validation_status: %q\n    severity: %q\n    violations: %d\n    trigger: %q\n    previous_checkpoint_id: %q\n"+
		"    files_changed_since_last: %d\n    files_changed_total: %d\n    files_changed: [%s]\n",
		c.ID, c.At.UTC().Format(time.RFC3339Nano), c.Status, c.Severity, len(c.Violations), c.Trigger, c.Previous, c.SinceLast, c.Total(),
		strings.Join(quoted, ", "))
}

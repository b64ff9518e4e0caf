package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newAuditVerifyCommand(a *app) *cobra.Command {
	var expect string
	cmd := a.remote("verify", "check that no entry of the audit was altered or removed",
		`Reads the whole audit and names every entry that was altered, replaced, moved or removed, also at
the end. A record beside the database says how far the log had come. Nothing is changed.

Whoever can write to both can deceive it. So keep NUMBER:HASH, the last line that it prints, in
another place, and give it to --expect later. Then nothing up to that entry can have been replaced
unseen. docs/audit.md says what this proves.

Exit status: 0 if nothing is wrong, 1 if anything is.`,
		`  sallyport audit verify
  sallyport audit verify | tail -n 1 > /mnt/elsewhere/audit.last
  sallyport audit verify --expect "$(cat /mnt/elsewhere/audit.last)"`, exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			return reportVerification(ctx, a, c, expect)
		})
	cmd.Flags().StringVar(&expect, "expect", "", "the audit must have this entry: `NUMBER:HASH`, as an earlier verify printed it")
	return cmd
}

// faultsShown bounds the faults that are printed; --json has them all.
const faultsShown = 20

// reportVerification prints what the daemon found in its log; an error if anything is wrong with it.
func reportVerification(ctx context.Context, a *app, c *client.Client, expect string) error {
	r, err := client.Call(ctx, c, api.AuditVerify, api.Expected{Expect: expect})
	if err != nil {
		return err
	}
	if a.document(r) {
		if len(r.Faults) > 0 {
			return ended(exitError)
		}
		return nil
	}
	s := a.sheet(a.Out)
	for i, f := range r.Faults {
		if i == faultsShown {
			s.line("and %d more; see %s", len(r.Faults)-i, a.command("sallyport audit verify --json"))
			break
		}
		s.line("%s", s.red(inert.Line(f.Text)))
	}
	if n := len(r.Faults); n > 0 {
		return problem.Errorf(problem.Internal, fmt.Sprintf("sallyport audit list --after %d --limit 3", max(r.Faults[0].Entry-2, 0)),
			"the audit is not as it was written, from entry %d on", r.Faults[0].Entry)
	}
	if r.Since > 1 {
		s.line("the head record begins with entry %d: whether an entry before that was cut off cannot be known", r.Since)
	}
	if r.Newer > 0 {
		s.line("the last %d entries are newer than the head record", r.Newer)
	}
	if r.Entries == 0 {
		s.line("nothing happened")
		return nil
	}
	s.line("%d entries, every hash holds; the last is", r.Entries)
	s.line("%s", r.Last)
	return nil
}

func newAuditExportCommand(a *app) *cobra.Command {
	var after int64
	var out string
	cmd := a.remote("export", "write the audit as lines that anyone can check without sallyport",
		`Writes the audit to standard output, one entry a line as JSON. The last field of a line is the
SHA-256 of the rest of the line. docs/audit.md has a program of ten lines that checks such a file
without sallyport.

--out writes to a new file instead, which only you can read. A file that is there already is not
overwritten.`,
		"  sallyport audit export > audit.jsonl\n  sallyport audit export --after 1000 --out audit-1001.jsonl",
		exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			if out == "" {
				return writeEscaped(a.Out, func(w io.Writer) error {
					_, err := export(ctx, c, after, w)
					return err
				})
			}
			return exportTo(ctx, a, c, after, out)
		})
	cmd.Flags().Int64Var(&after, "after", 0, "only entries after number `N`")
	cmd.Flags().StringVar(&out, "out", "", "write to a new `FILE`")
	return cmd
}

// writeEscaped writes to standard output; at a terminal what could command it is escaped.
func writeEscaped(w io.Writer, write func(io.Writer) error) error {
	if _, ok := terminal(w); !ok {
		return write(w)
	}
	shown := inert.NewWriter(w, false)
	return errors.Join(write(shown), shown.Close())
}

// exportTo writes a new file, whole or not at all.
func exportTo(ctx context.Context, a *app, c *client.Client, after int64, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return problem.Errorf(problem.Refused, "ls -l "+inert.Path(path), "%q is there already, and an audit is never overwritten", path)
	}
	if err != nil {
		return problem.Errorf(problem.Unavailable, "sallyport audit export", "write the audit: %w", err)
	}
	n, err := export(ctx, c, after, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the audit to %q: %w", path, err), os.Remove(path))
	}
	if !a.document(map[string]any{"entries": n, "file": path}) {
		fmt.Fprintf(a.Out, "%s: %d entries\n", inert.Path(path), n)
	}
	return nil
}

// export writes all entries after one, a line each, and returns how many.
func export(ctx context.Context, c *client.Client, after int64, w io.Writer) (n int64, err error) {
	buffered := bufio.NewWriter(w)
	for {
		rows, err := client.Call(ctx, c, api.AuditList, api.Entries{After: after, Limit: exportPage})
		if err != nil {
			return n, err
		}
		for _, e := range rows {
			line, err := exported(e)
			if err != nil {
				return n, err
			}
			if _, err := buffered.Write(line); err != nil {
				return n, err
			}
			after = e.Seq
			n++
		}
		if len(rows) == 0 {
			return n, buffered.Flush()
		}
	}
}

// exportPage is how many entries are asked for at a time.
const exportPage = 1000

// exported is an entry as a line: the text that its hash was made of, with the hash in its place at the end.
func exported(e api.Entry) ([]byte, error) {
	e.At = e.At.UTC()
	line, err := json.Marshal(e)
	return append(line, '\n'), err
}

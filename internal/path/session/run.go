package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

// Running is one session to run.
type Running struct {
	Session Session // ID, Agent, Started and Dir (absolute) are set; its folder is made if it is not there
	Driver  sandbox.Driver
	Spec    sandbox.Spec          // of Environment, with a tree
	Way     Way                   // that Spec has; whoever opened it closes it
	Program agent.Program         // what an agent driver made of the task
	Talk    *Talk                 // of this session alone, for a Program with Messages; else, and when nil, nothing is said
	Cwd     string                // the person's folder, for the metadata
	Output  func(Line)            // called with every line once it is complete, one at a time; must not block; may be nil
	Said    func(agent.Text)      // of a Program with Chat: each piece of what its agent says, by turns with Tool; must not block; may be nil
	Tool    func(agent.ToolCall)  // and with every tool that begins or is over
	Live    func(sandbox.Process) // called once when the program runs; may be nil
	Secrets *secret.Scanner       // takes secrets out of all that is written down or given to Output; nil = by the built-in rules
	Ops     disk.Ops
}

const metadataName = "metadata.json"

// Metadata is metadata.json of a session (RM-023).
type Metadata struct {
	AgentName string    `json:"agent_name"`
	Cwd       string    `json:"cwd"`      // the person's folder on the host
	CopyCwd   string    `json:"copy_cwd"` // the same folder in the copy, as seen inside
	StartedAt time.Time `json:"started_at"`
}

// Run starts the program and returns how it ended, once every process of it is
// gone and the transcript is complete on disk. Cancelling ctx kills it.
//
// An error says that it did not run, or that not everything could be recorded;
// a program that failed, hung or broke a limit is an Exit. Errors of the start
// keep their kind: problem.NotFound, problem.Unavailable.
func Run(ctx context.Context, r Running) (sandbox.Exit, error) {
	spec := WithProgram(r.Spec, r.Program)
	spec.ID = string(r.Session.ID)
	if spec.Dir == "" {
		spec.Dir = sandbox.Mountpoint
	}
	if err := r.makeFolder(spec.Dir); err != nil {
		return sandbox.Exit{}, fmt.Errorf("prepare session %s: %w", r.Session.ID, err)
	}
	if r.Program.Keeps {
		if err := makeHome(r.Ops, r.Session.Dir, spec.Owner); err != nil {
			return sandbox.Exit{}, fmt.Errorf("prepare session %s: %w", r.Session.ID, err)
		}
		spec.Home = HomeDir(r.Session.Dir)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t, err := newTranscript(r, func(err error) { cancel(err) })
	if err != nil {
		return sandbox.Exit{}, fmt.Errorf("prepare session %s: %w", r.Session.ID, err)
	}
	exit, err := r.play(ctx, spec, t)
	if err != nil {
		t.event("did not run: " + err.Error())
	} else {
		t.event(Describe(exit))
	}
	if cerr := t.close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("write the transcript: %w", cerr))
	}
	if err != nil {
		return exit, fmt.Errorf("session %s: %w", r.Session.ID, err)
	}
	return exit, nil
}

func (r Running) play(ctx context.Context, spec sandbox.Spec, t *transcript) (sandbox.Exit, error) {
	stdout, stderr := t.streams[0], t.streams[1]
	spec.Stdout, spec.Stderr = stdout, stderr
	defer r.Talk.close()
	h := &hearing{secrets: t.secrets, said: r.Said, tool: r.Tool}
	if r.Program.Messages && r.Talk != nil {
		r.Talk.open(r.Program.Stdin, t.event)
		spec.Stdin, stdout.hear = r.Talk, func(line []byte) { r.heed(line, h) }
	} else {
		r.Talk.close() // an open stdin would hang a program that reads to its end
		if len(r.Program.Stdin) > 0 {
			spec.Stdin = bytes.NewReader(r.Program.Stdin)
		}
	}
	t.event(fmt.Sprintf("started %q in %s", spec.Argv, spec.Dir))
	process, err := r.Driver.Start(ctx, spec)
	if err != nil {
		return sandbox.Exit{}, err
	}
	if r.Live != nil {
		r.Live(process)
	}
	exit, err := process.Wait()
	stdout.end()
	stderr.end()
	h.over() // of a turn that has no end
	return exit, err
}

// heed hears what a whole line of the program's stdout says to the host.
func (r Running) heed(line []byte, h *hearing) {
	if _, ok := parseAnswer(line); ok { // an answer's words are shown
		r.Talk.hear(h.secrets.RedactJSON(line))
	}
	if !r.Program.Turns {
		return
	}
	if r.Program.Chat {
		h.hear(line)
	}
	if end, ok := parseTurnEnd(line); ok {
		h.ended(end.Turn)
		if e, ok := parseTurnEnd(h.secrets.RedactJSON(line)); ok {
			r.Talk.turnOver(e)
		}
	}
}

// makeFolder makes the session's folder with its metadata; doing it twice is as good as once.
func (r Running) makeFolder(dir string) error {
	meta, err := json.MarshalIndent(Metadata{
		AgentName: r.Session.Agent, Cwd: r.Cwd, CopyCwd: dir, StartedAt: r.Session.Started.UTC(),
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := r.Ops.Do("session:make", func() error { return os.MkdirAll(r.Session.Dir, 0o700) }); err != nil {
		return err
	}
	path := filepath.Join(r.Session.Dir, metadataName)
	if err := r.Ops.Do("session:describe", func() error { return os.WriteFile(path+".new", append(meta, '\n'), 0o600) }); err != nil {
		return err
	}
	return r.Ops.Do("session:commit", func() error { return os.Rename(path+".new", path) })
}

// OpenTranscript opens the transcript of the session whose folder is dir; the
// caller closes it. Without one it is empty: the session never came to run.
func OpenTranscript(dir string) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(dir, transcriptName))
	if errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("open transcript: %w", err)
	}
	return f, nil
}

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	programs "sallyport/internal/base/release"
	"sallyport/internal/base/whole"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// Where things lie in the place of a rehearsal.
const (
	stateFolder = ".state" // also in a home
	markFile    = "mark"
)

// takePlace makes an empty folder for a change; clear removes it. What a crash has left goes.
func (rs *Rehearsals) takePlace(row change.Row, name string) (place string, clear func(), err error) {
	of := filepath.Join(rs.Folder, string(row.ID))
	if err := whole.Remove(rs.Ops, "rehearsal:clear", of); err != nil {
		return "", nil, err
	}
	place = filepath.Join(of, name)
	err = rs.Ops.Do("rehearsal:place", func() error { return os.MkdirAll(place, 0o700) })
	return place, func() { _ = whole.Remove(rs.Ops, "rehearsal:clear", of) }, err // what stays the next one of this change removes
}

// furnish makes the state of the home that is rehearsed, and returns the digest of the release in it.
func (rs *Rehearsals) furnish(ctx context.Context, place string, owner sandbox.Owner, dir string, is programs.Release) (digest string, err error) {
	state := filepath.Join(place, stateFolder)
	err = rs.Ops.Do("rehearsal:place", func() error {
		if err := os.MkdirAll(state, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(place, markFile), nil, 0o444)
	})
	if err != nil {
		return "", err
	}
	if err := rs.Host.Copy(ctx, filepath.Join(state, "sallyport.db"), int(owner.UID)); err != nil {
		return "", fmt.Errorf("copy the state: %w", err)
	}
	folder := programs.In(place, rs.Ops)
	put, err := folder.Put(dir, is)
	if err == nil {
		err = folder.Use(put.Digest)
	}
	if err == nil {
		err = rs.Ops.Do("rehearsal:own", func() error { return own(state, owner) })
	}
	return put.Digest, err
}

// own gives all that lies in a folder to who a sandbox runs as.
func own(folder string, owner sandbox.Owner) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.UID), int(owner.GID))
	})
}

// spec is the sandbox of a rehearsal, without its tree.
func (rs *Rehearsals) spec(ctx context.Context, w work.Work, place string, order rehearsal.Order) (sandbox.Spec, error) {
	s := live.Subject{ID: w.Row.ID.Subject(), Owner: w.Spec.Owner, Path: os.Getenv("PATH"), Timeout: wholeMax}
	info, err := os.Stat(filepath.Join(place, stateFolder, "sallyport.db"))
	if err != nil {
		return sandbox.Spec{}, err
	}
	s.DiskBytes = sandbox.Defaults.DiskBytes + 4*info.Size() // a migration may write all of it anew, and its log beside it
	spec, err := rs.Defaults.Environment(ctx, s, live.Way{}, false)
	if err != nil {
		return spec, err
	}
	text, err := json.Marshal(order)
	if err != nil {
		return spec, err
	}
	spec.Env = append(spec.Env, rehearsal.Variable+"=1")
	spec.ID = "rehearsal-" + string(w.Row.ID)
	spec.Dir, spec.Argv = "/", []string{sandbox.SelfPath, "runner", "rehearse", string(text)}
	spec.Own = []sandbox.Bind{
		{Source: filepath.Join(place, stateFolder), Target: filepath.Join(sandbox.Mountpoint, stateFolder), Writable: true},
		{Source: filepath.Join(place, markFile), Target: sandbox.RehearsalMark},
	}
	return spec, nil
}

// printedMax bounds what is kept of what a rehearser prints: one report.
const printedMax = 64 << 10

// run runs the rehearser and returns its report.
func (rs *Rehearsals) run(ctx context.Context, spec sandbox.Spec) (rehearsal.Report, error) {
	out, faults := &head{}, &head{}
	spec.Stdout, spec.Stderr = out, faults
	process, err := rs.Sandbox.Start(ctx, spec)
	if err != nil {
		return rehearsal.Report{}, err
	}
	exit, err := process.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return rehearsal.Report{}, err
	}

	var r rehearsal.Report
	switch err := json.Unmarshal(out.b, &r); {
	case exit.Limit != nil:
		return rehearsal.Report{Failed: &rehearsal.Failure{
			Step: rehearsal.Start, Why: fmt.Sprintf("it broke the limit %s: %s, of %s", exit.Limit.Name, exit.Limit.Observed,
				exit.Limit.Value), Tail: faults.String(),
		}}, nil
	case exit.Code != 0:
		return r, fmt.Errorf("the rehearser ended with %d %s: %s", exit.Code, exit.Signal, faults)
	case err != nil:
		return r, errors.Join(errors.New("the rehearser has told nothing"), err)
	}
	return r, nil
}

// head keeps the beginning of what is written.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), printedMax-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(h.b)), "\uFFFD") }

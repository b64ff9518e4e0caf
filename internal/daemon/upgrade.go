package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	rehearse "sallyport/internal/drive/release"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// Take keeps the programs that lie in a folder as a release of the home, for an upgrade. What they are they say themselves, in a sandbox: no
// program of them runs outside of one before somebody has approved it. new is false if the host runs by them already.
//
// Errors: problem.Refused if no keeper could judge them, if the folder has no sallyport, if whoever asks may not read one of them, or if it
// does not run here.
func (c candidate) Take(ctx context.Context, from string, by audit.Actor) (is release.Release, new bool, err error) {
	if err := hosted(c).Judges(); err != nil {
		return is, false, err
	}
	c.trying.Lock() // whatever is tried has the same uid
	defer c.trying.Unlock()
	tree, clear, err := trier(c).scratch(sandbox.Owner{})
	defer clear()
	if err != nil {
		return is, false, err
	}
	if err := c.bring(from, tree, by.UID); err != nil {
		return is, false, err
	}

	says, err := c.askWhat(ctx, tree)
	if err != nil {
		return is, false, problem.Errorf(problem.Refused, "sallyport upgrade --help", "the sallyport in %s does not say what it is: %w", inert.Path(from), err)
	}
	of, err := c.imageFor(from)
	if err != nil {
		return is, false, err
	}
	is, err = c.Releases().Put(tree, release.Release{Build: says.Build, Schema: says.Schema, Image: of, Built: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return is, false, unwritable(c.Home, err)
	}
	return is, is.Digest != c.Line.Release, nil
}

// imageFor is the image that sandboxes would start from with the programs in a folder: that of a release of this home, else that of now.
func (c candidate) imageFor(from string) (string, error) {
	releases, from := c.Releases(), filepath.Clean(from)
	if filepath.Dir(from) != releases.Dir {
		return c.image, nil
	}
	r, err := releases.Read(filepath.Base(from))
	if err != nil || r.Image == "" {
		return "", err
	}
	if _, err := c.Images().Read(r.Image); err != nil {
		return "", problem.Errorf(problem.Refused, "sallyport release list",
			"the image %.12s that sandboxes start from with release %.12s is not here any more: %w", r.Image, r.Digest, err)
	}
	return r.Image, nil
}

// bring copies the programs of a release out of somebody's folder. Who is neither root nor the owner of this daemon's account gets only what
// everybody may read, or what is theirs.
func (c candidate) bring(from, to string, uid int) error {
	for _, name := range release.Programs() {
		err := c.copyOf(filepath.Join(from, name), filepath.Join(to, name), uid)
		switch absent := errors.Is(err, fs.ErrNotExist); {
		case absent && name == release.Program:
			return problem.Errorf(problem.Refused, "ls -la "+inert.Path(from), "%s has no program %s to upgrade to", inert.Path(from), name)
		case err != nil && !absent:
			return problem.Errorf(problem.Refused, "ls -la "+inert.Path(from), "%s cannot be upgraded from: %s: %w", inert.Path(from), name, err)
		}
	}
	return c.Ops.Do("try:make", func() error { return os.Chmod(to, 0o755) })
}

// copyOf copies one program that uid may read.
func (c candidate) copyOf(from, to string, uid int) error {
	file, err := release.OpenProgram(from)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if of, _ := info.Sys().(*syscall.Stat_t); uid != 0 && uid != os.Geteuid() && info.Mode()&0o004 == 0 && of.Uid != uint32(uid) {
		return fs.ErrPermission
	}
	return c.Ops.Do("try:make", func() error {
		out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, io.LimitReader(file, release.ProgramMax))
		return errors.Join(err, out.Close())
	})
}

// askWhat asks programs in a folder what they are.
func (c candidate) askWhat(ctx context.Context, dir string) (rehearse.Said, error) {
	spec, err := session.Environment(ctx, session.Surroundings{Owner: trier(c).owner(), Limits: sandbox.Limits{OutputBytes: versionBytes, Timeout: tryTime}})
	if err != nil {
		return rehearse.Said{}, err
	}
	spec = session.WithProgram(spec, agent.Program{Argv: []string{filepath.Join(sandbox.Mountpoint, release.Program), "version", "--json"}})
	var heard bytes.Buffer
	exit, err := trier(c).runOn(ctx, spec, sandbox.Tree{Dir: dir, ReadOnly: true}, &heard)
	switch {
	case err != nil:
		return rehearse.Said{}, err
	case exit.Code != 0 || exit.Limit != nil:
		return rehearse.Said{}, fmt.Errorf("%s: %s", session.Describe(exit), c.secrets.short(lastLine(heard.String())))
	}
	return rehearse.SaysOf(heard.String())
}

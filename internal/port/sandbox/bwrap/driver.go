// Package bwrap confines with bubblewrap, always started from an unprivileged uid.
//
// As root a launcher builds the mounts in a namespace of its own, shows base
// layers that root owns under the sandbox's uid, drops to that uid for good and
// becomes bwrap. As an ordinary user the launcher does the same in a user
// namespace of its own. Pid 1 inside is our own program.
package bwrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// Config is what a driver needs to know.
type Config struct {
	Self string   // absolute path of a binary whose main calls runner.Main for `runner …`; its sallyport-runner lies beside it
	Root string   // the home's .state; names this home's control groups, and the probe's scratch space lies in it
	Path string   // where bwrap is looked for; default the process's PATH
	Ops  disk.Ops // control groups are made and removed through it
}

// Driver starts sandboxes. It is safe for several goroutines.
type Driver struct {
	config  Config
	starter starter
	idmaps  idmaps
	small   small

	patience time.Duration // for a sandbox, until its program runs

	mu      sync.Mutex
	probed  *sandbox.Report // of the last probe that found everything needed
	layout  *layout
	filters map[filterKind][]byte
}

// New returns a driver; nothing is started or looked at before it is used.
func New(c Config) *Driver {
	return &Driver{config: c, small: small{sum: runnerSum}, patience: startPatience, filters: map[filterKind][]byte{}}
}

var _ sandbox.Driver = (*Driver)(nil)

// bubblewrap returns the path of bwrap.
func (d *Driver) bubblewrap() (string, error) {
	missing := problem.Errorf(problem.Unavailable, "sudo apt-get install bubblewrap",
		"bubblewrap (bwrap) is not installed, and sallyport runs nothing without it")
	if d.config.Path == "" {
		path, err := exec.LookPath("bwrap")
		if err != nil || !filepath.IsAbs(path) {
			return "", missing
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(d.config.Path) {
		path := filepath.Join(dir, "bwrap")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", missing
}

// groupLayout finds out once where control groups can be made.
func (d *Driver) groupLayout() layout {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.layout == nil {
		l := findLayout(d.config.Ops, d.config.Root)
		d.layout = &l
	}
	return *d.layout
}

// filterProgram returns the system call filter of a kind.
func (d *Driver) filterProgram(kind filterKind) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if made := d.filters[kind]; made != nil {
		return made, nil
	}
	f, err := filter(kind)
	if err == nil {
		d.filters[kind] = f
	}
	return f, err
}

// Start runs a spec. The first start on a machine proves the confinement with a
// probe (CW-906); without that proof nothing is run.
func (d *Driver) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if err := d.prove(ctx); err != nil {
		return nil, err
	}
	return d.start(ctx, spec)
}

// prove probes unless that has gone well before.
func (d *Driver) prove(ctx context.Context) error {
	d.mu.Lock()
	proven := d.probed != nil
	d.mu.Unlock()
	if proven {
		return nil
	}
	_, err := d.Probe(ctx)
	return err
}

// check refuses what cannot be run as it says.
func (d *Driver) check(spec sandbox.Spec) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if spec.ID == "" || len(spec.ID) > 64 || strings.Trim(spec.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		bad("id %q is no file name", spec.ID)
	}
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		bad("no program is named")
	}
	if spec.Owner.UID == 0 || spec.Owner.GID == 0 {
		bad("a sandbox is never run as uid or gid 0")
	}
	if os.Geteuid() != 0 && (int(spec.Owner.UID) != os.Geteuid() || int(spec.Owner.GID) != os.Getegid()) {
		bad("uid %d cannot run a sandbox as uid %d", os.Geteuid(), spec.Owner.UID)
	}
	if spec.Range && (os.Geteuid() != 0 || spec.Tree.Dir == "" || len(spec.Mounts) > 0) {
		bad("a range of uids is for root, for a plain folder and without mounts")
	}
	t := spec.Tree
	switch {
	case t.Dir != "" && (len(t.Layers) > 0 || t.Upper != ""):
		bad("a tree is a folder or an overlay, not both")
	case t.Dir == "" && (len(t.Layers) == 0 || t.Upper == "" || t.Work == ""):
		bad("an overlay needs layers, upper and work")
	}
	if c := spec.Cache; (c.Upper == "") != (c.Work == "") || c.Upper == "" && len(c.Layers) > 0 {
		bad("a folder of caches needs upper and work")
	}
	if root := d.config.Root; spec.Image != "" && root != "" && !strings.HasPrefix(filepath.Clean(spec.Image), filepath.Join(root, "images")+"/") {
		bad("%q is no image of this home", spec.Image)
	}
	named := make([]string, 0, len(spec.Binds)+len(spec.Mounts))
	for _, b := range spec.Binds {
		named = append(named, b.Source)
	}
	for _, m := range spec.Mounts {
		named = append(named, m.Source)
		if filepath.Dir(m.Target) != sandbox.Extra || filepath.Clean(m.Target) != m.Target {
			bad("%q is no name in %s", m.Target, sandbox.Extra)
		}
	}
	for _, source := range named {
		// The home holds the record of what may land; only the tree of this change is shown.
		if root := d.config.Root; root != "" && (sandbox.Below(root, filepath.Clean(source)) || sandbox.Below(filepath.Clean(source), root)) {
			bad("%q is part of sallyport's own home", source)
		}
	}
	sources := append([]string{t.Dir, t.Upper, t.Work, t.GitDir, spec.Image, spec.Egress, spec.Home, spec.Cache.Upper, spec.Cache.Work}, t.Layers...)
	sources = slices.Concat(sources, spec.Cache.Layers, named)
	for _, b := range slices.Concat(t.Objects, spec.Binds, spec.Own) {
		sources = append(sources, b.Source)
		if err := checkTarget(b); err != nil {
			errs = append(errs, err)
		}
	}
	for _, source := range append(sources, spec.Dir) {
		if source != "" && (!filepath.IsAbs(source) || strings.ContainsRune(source, 0)) {
			bad("%q is no absolute path", source)
		}
	}
	for _, text := range append(append([]string{}, spec.Argv...), spec.Env...) {
		if strings.ContainsRune(text, 0) {
			bad("%q holds a NUL byte", text)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("start sandbox %q: %w", spec.ID, errors.Join(errs...))
	}
	return nil
}

// reserved are places inside that no bind may cover or stand below.
var reserved = []string{"/", "/proc", "/sys", "/dev", "/etc", "/.sallyport", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/tmp",
	sandbox.Mountpoint, sandbox.Home, sandbox.Caches, sandbox.Extra}

// ours are files of the host's own that a spec may show among those that are always there.
var ours = []string{sandbox.CABundle, sandbox.SelfPath, sandbox.ToolSocket, sandbox.ToolProgram, sandbox.RehearsalMark}

func checkTarget(b sandbox.Bind) error {
	target := filepath.Clean(b.Target)
	if !filepath.IsAbs(target) {
		return fmt.Errorf("%q is no absolute path", b.Target)
	}
	for _, r := range reserved {
		if target == r {
			return fmt.Errorf("the sandbox cannot hide %q", target)
		}
	}
	for _, r := range []string{"/proc", "/sys", "/dev", "/.sallyport", sandbox.Extra} {
		if strings.HasPrefix(target, r+"/") && !strings.HasPrefix(target, sandbox.ObjectsRoot+"/") && !slices.Contains(ours, target) {
			return fmt.Errorf("the sandbox can show nothing below %q", r)
		}
	}
	return nil
}

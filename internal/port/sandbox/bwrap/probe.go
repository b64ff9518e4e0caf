package bwrap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// probeUID runs root's probe; it owns nothing.
const probeUID = 64990

// probeTime bounds a probe, and a self-test; triesTime what a program tries in one of its sandboxes. A machine that has much else to do takes
// many times the half second of one that has not.
const (
	probeTime = 3 * time.Minute
	triesTime = time.Minute
)

// Probe finds out what works here by doing it: it starts a sandbox on a folder
// and one on an overlay, in which a program tries what must fail.
func (d *Driver) Probe(ctx context.Context) (sandbox.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	// A uid of its own needs root and nothing else. It is told also where the probe fails: whoever starts a sandbox later, once one works,
	// does not run it as root.
	r := sandbox.Report{Driver: "bwrap", Freezer: "init", OwnUID: os.Geteuid() == 0}
	bubblewrap, err := d.bubblewrap()
	r.Checks = append(r.Checks, d.checkBubblewrap(ctx, bubblewrap, err))
	if err != nil {
		return r, err
	}
	detail, fix := userNamespaces()
	r.Checks = append(r.Checks, sandbox.Check{Name: "user namespaces", OK: fix == "", Detail: detail, Fix: fix})
	if fix != "" {
		return r, problem.Errorf(problem.Unavailable, fix, "user namespaces are off (%s), and sallyport runs nothing without them", detail)
	}
	l := d.groupLayout()
	if l.unified != "" {
		r.Freezer = "cgroup"
	}
	r.Memory = l.kind.memory
	r.Checks = append(r.Checks,
		sandbox.Check{Name: "freezer", OK: true, Detail: r.Freezer},
		checkProcesses(l.kind.pids),
		sandbox.Check{Name: "descriptor limit", OK: true, Detail: "by RLIMIT_NOFILE; the host also counts ten times a second"},
		sandbox.Check{Name: "output and time limits", OK: true, Detail: "the daemon holds them"},
		checkApart(sandbox.LandlockVersion()),
		d.checkRunner(),
		checkGit(ctx))
	if err := d.confine(ctx, &r); err != nil {
		return r, err
	}
	d.mu.Lock()
	d.probed = &r
	d.mu.Unlock()
	return r, nil
}

// What is held says how, and what of it cannot be held here.
func checkMemory(kind string, sees bool) sandbox.Check {
	detail := kind + ", files in /tmp and /dev/shm included"
	if kind == rlimitWatch {
		detail += "; the host counts ten times a second, without what the kernel keeps for pipes and sockets"
		if !sees {
			detail += " and without files in memory that have no name"
		}
	}
	return sandbox.Check{Name: "memory limit", OK: true, Detail: detail}
}

func checkProcesses(kind string) sandbox.Check {
	detail := kind + " and RLIMIT_NPROC, threads included"
	if kind == rlimitWatch {
		detail = "RLIMIT_NPROC, threads included; the host also counts ten times a second, and hears of a shorter burst only from the program"
	}
	return sandbox.Check{Name: "process limit", OK: true, Detail: detail}
}

// checkDisk says what counts toward the limit of a workspace's disk.
func checkDisk(sees bool) sandbox.Check {
	detail := "blocks and files of the workspace, and open files without a name"
	if !sees {
		detail = "blocks and files of the workspace; not counted: open files without a name, which uid " + strconv.Itoa(os.Geteuid()) + " may not look at"
	}
	if os.Geteuid() != 0 {
		detail += "; not counted: what lies in folders that an agent cannot read itself, and unnamed files that are mapped and closed"
	}
	return sandbox.Check{Name: "disk limit", OK: true, Detail: detail}
}

// checkApart says whether a person's shell may stand beside an agent. Without it nothing else is weaker.
func checkApart(landlock int) sandbox.Check {
	detail := "a person's shell is kept from the agent beside it by Landlock version " + strconv.Itoa(landlock)
	if landlock < sandbox.LandlockMin {
		detail = "a shell opens on a copy, not beside the agent: this kernel has no Landlock version " +
			strconv.Itoa(sandbox.LandlockMin) + " or later (its boot option lsm= turns it on)"
	}
	return sandbox.Check{Name: "change shell", OK: true, Detail: detail}
}

func (d *Driver) checkBubblewrap(ctx context.Context, path string, err error) sandbox.Check {
	c := sandbox.Check{Name: "bubblewrap"}
	if err != nil {
		p := problem.Of(err)
		c.Detail, c.Fix = p.Text, p.Next
		return c
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		c.Detail, c.Fix = fmt.Sprintf("%s --version: %v", path, err), "sudo apt-get install --reinstall bubblewrap"
		return c
	}
	c.OK, c.Detail = true, strings.TrimSpace(string(out))+" at "+path
	return c
}

func checkGit(ctx context.Context) sandbox.Check {
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return sandbox.Check{Name: "git", Detail: err.Error(), Fix: "sudo apt-get install git"}
	}
	return sandbox.Check{Name: "git", OK: true, Detail: strings.TrimSpace(string(out))}
}

// userNamespaces says which switch turns them off and how to turn it; fix is empty if none does.
func userNamespaces() (detail, fix string) {
	read := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(raw))
	}
	switch {
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "user.max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "kernel.unprivileged_userns_clone is 0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case os.Geteuid() != 0 && read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "kernel.apparmor_restrict_unprivileged_userns is 1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	}
	return "on", ""
}

// confine starts both probes and adds what they found.
func (d *Driver) confine(ctx context.Context, r *sandbox.Report) error {
	return d.onGround(func(g *ground, tree sandbox.Tree, owner sandbox.Owner) error {
		tried, sees, err := d.tryInside(ctx, "probe-folder", owner, sandbox.Tree{Dir: tree.Dir}, g.aims)
		if err == nil {
			err = weaker(tried)
		}
		if err != nil {
			r.Checks = append(r.Checks, sandbox.Check{Name: "confinement", Detail: err.Error(), Fix: problem.Of(err).Next})
			return err
		}
		r.Checks = append(r.Checks, checkMemory(r.Memory, sees), checkDisk(sees))
		r.Checks = append(r.Checks, sandbox.Check{Name: "confinement", OK: true,
			Detail: fmt.Sprintf("a program in a sandbox tried %d ways out, and each was refused", len(tried))})
		overlay := sandbox.Check{Name: "overlay", OK: true, Detail: "workspaces are overlays"}
		tree.Dir = ""
		if _, _, err := d.tryInside(ctx, "probe-overlay", owner, tree, g.aims); err != nil {
			overlay = sandbox.Check{Name: "overlay", Detail: err.Error() + "; workspaces are copies", Fix: "use Linux 5.19 or newer with overlayfs"}
		}
		r.Overlay = overlay.OK
		r.Checks = append(r.Checks, overlay)
		return nil
	})
}

func (d *Driver) scratch() (string, error) {
	parent := d.config.Root
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = os.TempDir()
	}
	var root string
	err := d.config.Ops.Do("probe:make", func() (err error) {
		root, err = os.MkdirTemp(parent, "probe-")
		return err
	})
	if err != nil {
		return "", fmt.Errorf("probe sandboxes: %w", err)
	}
	return root, nil
}

// probeTrees makes a folder, and an overlay whose base file the caller owns, as a workspace's would be.
func (d *Driver) probeTrees(root string, owner sandbox.Owner) (sandbox.Tree, error) {
	at := func(name string) string { return filepath.Join(root, name) }
	tree := sandbox.Tree{Dir: at("dir"), Layers: []string{at("base")}, Upper: at("upper"), Work: at("work")}
	err := d.config.Ops.Do("probe:fill", func() error {
		for _, dir := range []string{tree.Dir, tree.Layers[0], tree.Upper, tree.Work} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
		}
		for _, dir := range []string{tree.Dir, tree.Layers[0]} {
			if err := os.WriteFile(filepath.Join(dir, "file"), []byte("base\n"), 0o644); err != nil {
				return err
			}
		}
		if os.Geteuid() != 0 {
			return nil
		}
		for _, path := range []string{tree.Dir, filepath.Join(tree.Dir, "file"), tree.Upper, tree.Work} {
			if err := os.Lchown(path, int(owner.UID), int(owner.GID)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return sandbox.Tree{}, fmt.Errorf("probe sandboxes: %w", err)
	}
	return tree, nil
}

// tryInside runs `runner probe` and returns what it tried, and whether what programs have open could be looked at from
// here; an error if the file of the tree could not be written.
func (d *Driver) tryInside(ctx context.Context, id string, owner sandbox.Owner, tree sandbox.Tree,
	aims sandbox.Aims) (tried []sandbox.Tried, sees bool, err error) {
	text, err := json.Marshal(aims)
	if err != nil {
		return nil, false, err
	}
	var out, diagnosis bytes.Buffer
	p, err := d.start(ctx, sandbox.Spec{
		ID: fmt.Sprintf("%s-%d", id, time.Now().UnixNano()), Owner: owner, Tree: tree, Argv: []string{sandbox.InitPath, "runner", "probe"},
		Env: []string{"PATH=/usr/bin:/bin"}, Stdin: bytes.NewReader(text), Stdout: &out, Stderr: &diagnosis,
		Limits: sandbox.Limits{Timeout: triesTime}, Egress: aims.Egress,
	})
	if err != nil {
		return nil, false, err
	}
	exit, err := p.Wait()
	if err != nil {
		return nil, false, err
	}
	if exit.Code != 0 {
		return nil, false, problem.Errorf(problem.Unavailable, "sallyport doctor", "the probe inside a sandbox failed: %q",
			strings.TrimSpace(diagnosis.String()))
	}
	if err := json.Unmarshal(out.Bytes(), &tried); err != nil {
		return nil, false, fmt.Errorf("read the probe's report: %w", err)
	}
	return tried, p.sees, nil
}

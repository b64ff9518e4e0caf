package bwrap_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
)

// ranged runs a script as root of a range of uids, on a folder of theirs, and returns the folder and what was printed.
func ranged(t *testing.T, script string, limits ...sandbox.Limits) (tree, out string, exit sandbox.Exit) {
	t.Helper()
	needBwrap(t)
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root has a range of uids to give")
	}
	first := sandbox.Owner{UID: 0x78000000, GID: 0x78000000}
	tree = t.TempDir()
	if err := os.Chown(tree, int(first.UID), int(first.GID)); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	limits = append(limits, sandbox.Limits{})
	p, err := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir()}).Start(t.Context(), sandbox.Spec{
		ID: "build", Owner: first, Range: true, Tree: sandbox.Tree{Dir: tree}, Limits: limits[0],
		Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/sbin:/usr/bin"}, Stdout: &printed, Stderr: &printed,
	})
	if errors.Is(err, sandbox.ErrUnheld) {
		t.Skip("SKIPPED:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	exit, err = p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return tree, printed.String(), exit
}

func TestABuilderIsRootOfARangeThatIsNobodys(t *testing.T) {
	t.Parallel()
	tree, out, exit := ranged(t, `id -u; echo made > made && chown 5:6 made && mkdir m r && mount -t tmpfs none m && echo mounted && chroot / /bin/echo rooted`)
	if exit.Code != 0 || out != "0\nmounted\nrooted\n" {
		t.Fatalf("%+v\n%s", exit, out)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(tree, "made"), &st); err != nil || st.Uid != 0x78000005 || st.Gid != 0x78000006 {
		t.Errorf("made: %v, uid %x gid %x", err, st.Uid, st.Gid)
	}
	if err := syscall.Unmount(filepath.Join(tree, "m"), 0); err == nil {
		t.Error("what was mounted in there was mounted out here")
	}
}

// It may do in there what it likes, and what it does reaches nothing else.
func TestABuilderReachesNothingBesideItsFolder(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]string{
		"the machine's programs":  `touch /usr/bin/planted`,
		"them, mounted to write":  `mount -o remount,rw,bind /usr && touch /usr/bin/planted`,
		"what lies below them":    `umount /usr`,
		"the kernel's settings":   `echo x > /proc/sys/kernel/core_pattern`,
		"them, mounted again":     `mkdir p && mount -t proc none p && echo x > p/sys/kernel/core_pattern`,
		"a device":                `mknod d b 8 0`,
		"an owner beyond it":      `touch f && chown 65536 f`,
		"the machine's processes": `test "$(ls -d /proc/[0-9]* | wc -l)" -gt 8`,
		"its network":             `grep -v '^ *lo:' /proc/net/dev | grep :`,
		"the machine's files":     `ls /var/lib || ls /root || ls /srv || ls /etc/shadow`,
		"its own limits":          `mkdir 1 2; mount -t cgroup -o pids none 1; mount -t cgroup2 none 2; echo max > 1/pids.max || echo max > 2/pids.max`,
		"its own first process":   `kill -9 1 && ! kill -0 1`,
		"what that one holds":     `readlink /proc/1/fd/3`,
		"namespaces with all":     `unshare -U true`,
		"rights of no builder's":  `test $((0x$(sed -n 's/^CapPrm:[^0-9a-f]*//p' /proc/self/status) & 0x1ff57dbda04)) -ne 0`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, exit := ranged(t, `if ( `+try+` ) 2>&1; then echo WORKED; fi`)
			if exit.Limit != nil || exit.Code != 0 || strings.Contains(out, "WORKED") {
				t.Errorf("%s: %+v\n%s", try, exit, out)
			}
		})
	}
}

// Init counts in /proc and by what is mounted, and a builder mounts something else there.
func TestNobodyBuildsWhereNoControlGroupHolds(t *testing.T) {
	t.Parallel()
	needBwrap(t)
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root has a range of uids to give")
	}
	first := sandbox.Owner{UID: 0x78000000, GID: 0x78000000}
	_, err := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir()}).WithoutGroups().Start(t.Context(), sandbox.Spec{
		ID: "build", Owner: first, Range: true, Tree: sandbox.Tree{Dir: t.TempDir()}, Argv: []string{"/bin/true"},
	})
	if !errors.Is(err, sandbox.ErrUnheld) {
		t.Errorf("it starts: %v", err)
	}
}

func TestABuilderHidesNoFilesBehindMounts(t *testing.T) {
	t.Parallel()
	_, out, exit := ranged(t, `for n in 1 2 3; do
		dd if=/dev/zero of=big bs=1M count=15 2>/dev/null && sync big && touch /tmp/$n && mount --bind big /tmp/$n && rm big || exit
	done; sleep 20; echo WORKED`, sandbox.Limits{DiskBytes: 20 << 20})
	if exit.Limit == nil || exit.Limit.Name != sandbox.Disk {
		t.Errorf("%+v\n%s", exit, out)
	}
}

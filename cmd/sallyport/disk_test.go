package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/keeper"
)

// fills stands at the end of a sallyport that fills the disk of its home once it asks to be kept, until it is ended.
const fills = "and fills the disk\n"

// mayFill begins that where this program is such a one, and is on trial as a daemon.
func mayFill() {
	at := slices.Index(os.Args, "--home")
	if len(os.Args) < 3 || os.Args[1] != "daemon" || os.Args[2] != "run" || at < 0 || at+1 == len(os.Args) {
		return
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return
	}
	defer self.Close()
	end := make([]byte, len(fills))
	if _, err := self.Seek(-int64(len(end)), io.SeekEnd); err != nil {
		return
	}
	if _, err := io.ReadFull(self, end); err != nil || !bytes.Equal(end, []byte(fills)) {
		return
	}
	go fill(os.Args[at+1]) // ends with the process
}

func fill(home string) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for range again.C {
		if r, is, err := keeper.RecordOf(home); err == nil && is && r.Step == keeper.Asked {
			break
		}
	}
	f, err := os.Create(filepath.Join(home, ".state", "filled"))
	if err != nil {
		return
	}
	for piece := make([]byte, 1<<20); ; {
		_, err := f.Write(piece)
		switch {
		case errors.Is(err, unix.ENOSPC) && len(piece) > 4096:
			piece = piece[:4096]
		case err != nil:
			<-again.C // whatever is freed is filled, too
		}
	}
}

// mayMount reports whether this process may mount a disk of its own.
func mayMount() bool {
	dir, err := os.MkdirTemp("", "spdisk")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		return false
	}
	return unix.Unmount(dir, 0) == nil
}

// cmdDisk gives a folder a disk of its own, in memory, or sets how much of it is free: disk mount DIR MIB, disk free DIR MIB. Nothing is
// written for that: the disk becomes smaller or larger.
func cmdDisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: disk mount|free DIR MIB")
	}
	dir := ts.MkAbs(args[1])
	mib, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	switch args[0] {
	case "mount":
		ts.Check(os.MkdirAll(dir, 0o700))
		ts.Check(unix.Mount("none", dir, "tmpfs", 0, "mode=700,size="+strconv.FormatInt(mib<<20, 10)))
		ts.Defer(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // whoever still writes there does so until their end
	case "free":
		var fs unix.Statfs_t
		ts.Check(unix.Statfs(dir, &fs))
		used := int64(fs.Blocks-fs.Bfree) * fs.Bsize
		ts.Check(unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT, "size="+strconv.FormatInt(used+mib<<20, 10)))
		ts.Logf("%d MiB are used", used>>20)
	default:
		ts.Fatalf("%q is none of mount and free", args[0])
	}
}

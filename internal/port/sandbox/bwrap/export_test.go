package bwrap

import (
	"path/filepath"
	"time"

	"sallyport/internal/port/sandbox"
)

// WithoutGroups makes a driver do without control groups, as where none can be made.
func (d *Driver) WithoutGroups() *Driver {
	l := layout{}
	l.kind.memory, l.kind.pids = rlimitWatch, rlimitWatch
	d.layout = &l
	return d
}

// GroupFolders returns where this driver makes control groups.
func (d *Driver) GroupFolders() []string { return d.groupLayout().folders() }

// WithRunner makes a driver expect a small program with this SHA-256, as if it had been built with it.
func (d *Driver) WithRunner(sum string) *Driver {
	d.small.sum = sum
	return d
}

// WithoutFilter makes a driver's sandboxes allow every system call.
func (d *Driver) WithoutFilter() *Driver {
	d.filters[ordinary] = []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f} // return "allow"
	return d
}

// CheckRunner returns what a probe says of the runner, and starts nothing.
func (d *Driver) CheckRunner() sandbox.Check { return d.checkRunner() }

// Images is where this driver looks for images.
func (d *Driver) Images() string { return filepath.Join(d.config.Root, "images") }

// WithPatience makes a driver wait that long for a sandbox that does not start.
func (d *Driver) WithPatience(patience time.Duration) *Driver {
	d.patience = patience
	return d
}

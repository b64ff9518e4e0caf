package bwrap

// WithoutGroups makes a driver do without control groups, as where none can be made.
func (d *Driver) WithoutGroups() *Driver {
	l := layout{}
	l.kind.memory, l.kind.pids = rlimitWatch, rlimitWatch
	d.layout = &l
	return d
}

// GroupFolders returns where this driver makes control groups.
func (d *Driver) GroupFolders() []string { return d.groupLayout().folders() }

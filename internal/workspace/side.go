package workspace

// Side is the folder that holds what the agent writes: an overlay's upper directory, which is only
// ever read while a sandbox lives, or the whole copy.
func (w Workspace) Side() (folder string, overlay bool) {
	if w.Strategy == Overlay {
		return w.Tree.Upper, true
	}
	return w.Tree.Dir, false
}

// BaseFolder is the layer below, read only.
func (w Workspace) BaseFolder() string { return w.base }

package workspace

// Side is the folder that holds what the agent writes: an overlay's upper directory, which is only
// ever read while a sandbox lives, or the whole copy.
func (w Workspace) Side() (folder string, overlay bool) {
	if w.Strategy == Overlay {
		return w.Tree.Upper, true
	}
	return w.Tree.Dir, false
}

// BaseFolders are those of the layers below, lowest first, read only: see OpenBase.
func (w Workspace) BaseFolders() []string { return w.layers }

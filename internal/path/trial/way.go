package trial

import "sallyport/internal/who/group"

// Leaves reports whether a group is to run its old files although the new ones lie there still: it is decided that they go back, and they
// have not. The row says so, so it holds after any crash.
func (t Trial) Leaves(of group.Folder) bool {
	return t.Target.Group == string(of) && of != "" && t.Handshake == RolledBack && !t.Restored
}

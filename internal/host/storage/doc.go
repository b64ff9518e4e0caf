// Package storage knows what a home keeps on disk, how long, and what takes it away.
//
// One round looks at everything once and decides of each thing whether it stays. The same round, with another
// hand, is what the daemon does by itself after its start (Sweep), what `gc` does or would do (Collect), and what
// `status --disk` shows. Nothing of an open change ever goes; work that did not land has a ref before its workspace
// goes (SM-135); what goes is the very file or folder that was looked at, by device and inode, never through a link;
// and what nobody owns stays until a grace time has passed, for somebody may be about to.
//
// Only what this home's rows, names and ids prove to be its own is touched. What has the shape of ours and
// cannot be proven (a ref of a change that this home does not know, a folder of another owner) stays.
package storage

// Package landing makes what was approved true in a person's repository, or leaves it as it was.
//
// Everything is computed first. Then a journal row says what will be done, and
// from there on every step may be repeated: for the touched paths the branch, the
// index and the work tree end as the old ones or the new ones, and everything else
// is untouched. No model, no merge, no hook, no filter takes part.
//
// # The order, and what recovery does after a crash before the next step
//
// A flock on the common git directory is held from first to last. The desk is the folder
// sallyport-<landing> in the git directory of the work tree. It holds what comes, then what
// went; each path has a numbered slot.
//
//	step            then on disk                                       recovery
//	git:commit      a commit in the host's repository, with a ref      none is needed: nobody was told
//	git:room        a folder of ours beside their objects              the folder goes, by its name
//	git:import      its objects in a folder of ours beside theirs      the folder goes, by its name
//	git:link        they are among theirs, and nothing names them      none is needed: git collects them
//	Steps.Journal   the row                                            undone: nothing moved
//	desk:…          the desk under its .new name: comings, manifest   undone: the desk goes
//	desk:commit     the desk under its name, on the platter            undone: the desk goes
//	index:lock      git's index.lock is a hard link to desk/lock:      undone: the lock goes, because
//	                a person's git waits or refuses                    its inode says that it is ours
//	ref:lock        refs/heads/<branch>.lock is a hard link to         undone: the lock goes, its inode
//	                desk/ref-new, which names the new commit           says that it is ours
//	ref:log         a line in the reflogs                              undone
//	ref:update      the lock has become the branch                     finished forward
//	tree:delete     a live file lies in its slot                       finished forward
//	tree:replace    live file and slot have changed places             finished forward
//	tree:mkdir      a prepared folder was moved into place             finished forward
//	tree:add        the slot is empty, the file is live                finished forward
//	index:swap      the index holds the new entries                    finished forward
//	index:unlock    index.lock is gone                                 finished forward
//	desk:remove     no desk; all was verified before                   landed: nothing is left to do
//	disk:sync       the same, on the platter                           landed
//	Steps.Close     the row says so                                    –
//
// The way back is the same in the other direction. A branch that the landing has made goes under the same lock, and under
// packed-refs.lock, a hard link to desk/ref-packed: packed:swap takes it out of packed-refs, and ref:remove, the last, removes it.
//
// Which paths were done is not written down anywhere: a slot tells it, because the rename that
// does a path is the one that fills, empties or exchanges its slot.
//
// # Why the branch is moved without git
//
// git update-ref opens <branch>.lock, and writes it a moment later. Killed in between it leaves an empty
// file, which could be anybody's: no recovery may remove it, and no commit of the person's goes through.
// A lock that is a link to a file of the desk is full from its first instant, and its inode says whose it
// is. What git does beyond that is little, and is done here in its order: the branch is read again under
// the lock, loose or packed, the reflogs get their line where core.logAllRefUpdates says so, one rename
// makes the lock the branch. A symbolic branch, and refs that are not in files (reftable), are refused
// before. HEAD does not change, so its lock is not taken. If the branch is not where it was, a person was
// faster: nothing was done, and the landing is computed anew.
//
// # The way back
//
// What cannot be finished is taken back: the branch first, by compare and set, then the
// live tree by the same renames in the opposite order, then the index, then the lock. A crash
// in there is recovered like any other: a branch that names the new commit is finished
// forward, one that names the old is taken back.
//
// # A person at work meanwhile
//
// Their git is held off by its own lock. Their editor is not: every file that comes out
// of the live tree is compared with what was expected, and goes back at once if it differs;
// then the whole landing is taken back. A file that they change after it was
// replaced is theirs, on top of the new version, and stays. If they have removed our lock and moved
// the branch themselves, the branch is left alone, and each path follows what their commit says
// of it. No slot is deleted that holds bytes which are not in the object store: the desk is then
// kept as sallyport-kept-<landing>, and the reason says where.
package landing

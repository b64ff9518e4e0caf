// Package git runs git plumbing, and only plumbing, so that nothing a repository or an agent wrote is executed.
//
// Two kinds of git directory exist. The host's own (Dir with no As) has our
// configuration only and lies outside every workspace. A person's (Project) is
// touched for refs, objects and the index alone, as its owner, with hooks,
// fsmonitor, filters and system configuration out of reach.
package git

import (
	"io"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
)

// OID is a full object id, 40 or 64 hex digits; "" means no object.
type OID string

// Mode is git's mode of a tree entry.
type Mode string

const (
	File       Mode = "100644"
	Executable Mode = "100755"
	Symlink    Mode = "120000"
	Submodule  Mode = "160000"
	Folder     Mode = "040000"
)

// Entry is what a tree holds at a path; the zero Entry means absence.
type Entry struct {
	Mode Mode `json:"mode,omitempty"`
	OID  OID  `json:"oid,omitempty"`
}

// Absent reports whether nothing is there.
func (e Entry) Absent() bool { return e.OID == "" }

// File is e unless it is a folder, which stands for no entry of its own.
func (e Entry) File() Entry {
	if e.Mode == Folder {
		return Entry{}
	}
	return e
}

// Edit is one path on both sides of a change. A rename is a deletion and an addition.
type Edit struct {
	Path string `json:"path"` // slash-separated, relative to the top, as bytes
	Old  Entry  `json:"old"`
	New  Entry  `json:"new"`
}

// Signature is who made a commit and when; times have whole seconds.
type Signature struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	At    time.Time `json:"at"`
}

// Identity is the uid and gid a git process runs as.
type Identity struct{ UID, GID uint32 }

// Dir is a git directory and how to run git on it.
type Dir struct {
	Path string    // absolute path of the git directory
	As   *Identity // run as this user; nil = as we are
	Ops  disk.Ops  // every writing command is one named operation
	// Objects is where new objects are written, and what is in Path is read all the same; "" = among those in Path.
	Objects string
}

// Command is a git command for a person to run on d, from anywhere.
func (d Dir) Command(words string) string { return "git -C " + inert.Path(d.Path) + " " + words }

// Project is a person's repository, as found on disk.
type Project struct {
	Top          string `json:"top"`           // absolute path of the work tree
	GitDir       string `json:"git_dir"`       // absolute; of this work tree
	CommonDir    string `json:"common_dir"`    // absolute; shared by all work trees
	ObjectFormat string `json:"object_format"` // sha1 or sha256
	UID          uint32 `json:"uid"`           // owner of Top
	GID          uint32 `json:"gid"`
}

// Write is one thing an import puts in a tree: Data, or an object that is there already, or (with both empty) a deletion.
type Write struct {
	Path string
	Mode Mode
	OID  OID
	Data func() (io.ReadCloser, int64, error) // opened once, in order; exactly that many bytes
}

// Writes makes edits of files that the repository has.
func Writes(edits []Edit) []Write {
	writes := make([]Write, len(edits))
	for i, e := range edits {
		writes[i] = Write{Path: e.Path, Mode: e.New.Mode, OID: e.New.OID}
	}
	return writes
}

// FileStat is one file of a diff with renames.
type FileStat struct {
	Path    string // new path
	From    string // old path of a rename or copy; "" otherwise
	Status  string // A, C, D, M, R, T as in git diff --raw
	Old     Entry
	New     Entry
	Added   int // lines
	Removed int // lines
	Binary  bool
	// Uncounted says that counting took too long or too much: no lines are counted, and a renamed file is one that went and one that came.
	Uncounted bool
}

// Import describes one commit to make from a parent tree and some writes.
type Import struct {
	Ref       string // ours, under refs/sallyport/; moved to the new commit
	From      OID    // commit or tree that is edited; "" = the empty tree
	Parents   []OID  // of the new commit; usually From alone
	Writes    []Write
	Message   string
	Author    Signature
	Committer Signature
}

// Commit is what an import made.
type Commit struct {
	OID  OID
	Tree OID
	Made []Entry // what each Write became, in order
}

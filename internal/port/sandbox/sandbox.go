// Package sandbox is the port to what confines a process tree.
//
// A driver starts one program on one tree with nothing else in reach, holds it to
// limits that name themselves, and ends it whole. A driver that cannot keep a
// promise refuses to start; there is no weaker run in silence.
package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"sallyport/internal/base/problem"
)

// Mountpoint is where a workspace is seen inside every sandbox.
const Mountpoint = "/workspace"

// Worktree is another name of it, by which an agent is told to change files (SM-031).
const Worktree = "/worktree"

// Home is the home folder inside every sandbox: empty, private, gone afterwards, unless Spec.Home keeps it.
const Home = "/home/agent"

// Caches is where tools keep inside what they can make again, if Spec.Cache is given.
const Caches = "/var/cache/agent"

// ObjectsRoot is where Tree.Objects are seen inside every sandbox.
const ObjectsRoot = "/.sallyport/objects"

// A sandbox has no network. With Spec.Egress one socket leads out of it, and these are its names inside.
const (
	EgressSocket = "/.sallyport/egress" // the socket itself
	EgressPort   = 3128                 // of 127.0.0.1: what a relay hands on to the socket, for programs that know TCP alone
)

// CABundle is where the certificates are seen inside that a session trusts whose way out looks into TLS.
const CABundle = "/.sallyport/ca.pem"

// ToolSocket is where a session's own socket is seen inside at which it asks the host for things, and ToolProgram the program that does.
const (
	ToolSocket  = "/.sallyport/tools"
	ToolProgram = "/.sallyport/program/sallyport-tool"
)

// RehearsalMark is seen inside a rehearsal of the host alone, read-only; what it holds says nothing.
const RehearsalMark = "/.sallyport/rehearsal"

// SelfPath is where sallyport itself is seen inside, read-only, by a Spec whose Argv begins with it: a program that is more than InitPath.
const SelfPath = "/.sallyport/sallyport"

// Extra is the folder inside in which a sandbox sees Spec.Mounts.
const Extra = "/extra"

// Owner is the uid and gid that a workspace's writable part belongs to and the sandbox runs as.
type Owner struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// RangeSize is how many uids and gids a sandbox with Spec.Range has.
const RangeSize = 1 << 16

// Tree describes a writable tree that a driver makes visible at Mountpoint.
type Tree struct {
	Layers []string // absolute paths, read-only, lowest first; empty with Dir
	Upper  string   // overlay upper directory, owned by Owner
	Work   string   // overlay work directory on the same file system
	Dir    string   // instead of an overlay: a plain writable copy
	GitDir string   // the session's scratch git directory, mounted at Mountpoint/.git; "" = none
	// Objects are host object directories that GitDir's alternates name, mounted read-only at the paths given.
	Objects  []Bind
	ReadOnly bool // nothing below Mountpoint can be written
}

// Cache is a folder that is shown at Caches. What is written there goes to Upper, never into a layer.
type Cache struct {
	Layers []string // absolute paths, read-only, lowest first; there may be none
	Upper  string   // overlay upper directory, owned by Owner; "" = there is no folder at Caches
	Work   string   // overlay work directory beside it
}

// Bind makes one host path visible.
type Bind struct {
	Source   string // absolute, on the host
	Target   string // absolute, inside
	Writable bool
}

// Mount is a folder of the host's that somebody else than the host has named. What is shown is the folder that was looked at: another
// in its place, or a link on the way to it, ends the start.
type Mount struct {
	Source   string // absolute; on it there is no link
	Dev, Ino uint64 // of the folder that was looked at
	// Of is whose it is. Where the host can, that one's files are shown as those of the sandbox's owner, and what is written belongs to Of;
	// no file that is written runs with the rights of its owner or group.
	Of       Owner
	Target   string // a name in Extra
	Writable bool   // what is written counts toward the limit of the disk
}

// Limits hold a sandbox; zero means the driver's default, never "none".
type Limits struct {
	MemoryBytes    int64         // default 2 GiB
	ProcessesMax   int           // default 512
	OutputBytes    int64         // stdout and stderr together, each line as at least LineCost; default 10 MiB
	DescriptorsMax int           // per process, default 4096
	DiskBytes      int64         // blocks that the writable tree takes, files without a name included; default 2 GiB
	FilesMax       int           // entries of the writable tree, and of /tmp, /dev/shm and the home folder; default 1,000,000
	Processor      time.Duration // that all programs together have used; default Timeout for each of 4 processors, or for half of them
	Timeout        time.Duration // default 1 h
}

// Spec is one start.
type Spec struct {
	ID    string // unique and safe as a file name: a session identity
	Owner Owner
	Tree  Tree
	Argv  []string // Argv[0] is looked up in Env's PATH, inside
	Dir   string   // absolute, inside; default Mountpoint
	Env   []string // the whole environment
	// Image is a folder of the host's own home that holds the root file system of an image, shown in place of the machine's; "" = the machine's.
	// What is in it may be an agent's.
	Image string
	Binds []Bind
	// Own are files of the host's own home that this sandbox is to see. Nothing that a person or a repository has named stands here. What is
	// written to them counts toward the limit of the disk.
	Own []Bind
	// Mounts are shown beside all that, each without what is mounted below it.
	Mounts []Mount
	// Egress is a unix socket of the host that this sandbox alone may connect to; its owner becomes Owner. "" = no network
	// at all. Nothing but bytes crosses it: who listens decides what they reach.
	Egress string
	// Home is a folder of the host, Owner's own, that is shown writable at Home and stays; "" = an empty one that does not.
	// What is in it counts toward the limit of the disk.
	Home string
	// Cache is the folder at Caches. What is written to it counts toward the limit of the disk.
	Cache      Cache
	Background bool // everything else on this machine goes first
	// Range has the programs be root of RangeSize uids, from Owner's on, that are nobody's. In there they may mount and change roots, as
	// what builds an image does. The tree is a plain folder. Only root can start one, where control groups hold it
	// (ErrUnheld), and nobody is let into it.
	Range  bool
	Limits Limits
	Stdin  io.Reader // nil = /dev/null
	Stdout io.Writer // written from one goroutine each
	Stderr io.Writer
}

// Exit is how the program ended.
type Exit struct {
	Code   int    `json:"code"`             // exit status; -1 if it was killed by a signal
	Signal string `json:"signal,omitempty"` // such as SIGKILL
	Limit  *Limit `json:"limit,omitempty"`  // the limit that ended it
}

// ErrEnded says that a sandbox has ended, or is ending by itself.
var ErrEnded = errors.New("the sandbox has ended")

// ErrShared says that on this machine a sandbox's own program could read what passes a terminal beside it.
var ErrShared = problem.New(problem.Unavailable, "this machine cannot keep a person's terminal out of reach of the agent beside it")

// ErrUnheld says that on this machine nobody but init could hold the memory and the processes of a sandbox with Spec.Range, and that its
// programs can hide both from init by what they mount.
var ErrUnheld = problem.New(problem.Unavailable, "this machine has no control groups that hold the memory and the processes of a build")

// Process is a running sandbox.
type Process interface {
	// Wait blocks until every process of the sandbox is gone. It may be called once.
	Wait() (Exit, error)
	// Kill ends the whole tree; safe to call at any time, any number of times.
	Kill()
	// Freeze stops every process of the sandbox, also those that left their group;
	// it returns an error, with all running again, if that cannot be shown in time.
	// Freezing twice is freezing once: one Thaw ends it. What the program itself had
	// stopped stays stopped after it. The error wraps ErrEnded if there is nothing left to stop.
	Freeze(ctx context.Context) error
	// Thaw lets them run again; safe to call when not frozen.
	Thaw() error
	// View returns the folder that the sandbox sees at Mountpoint, for the host to open what
	// is in it by descriptor (O_PATH). It works while the sandbox lives, frozen or not, and
	// keeps its tree mounted: close it before another sandbox starts on the same tree. What
	// is found there is the agent's; nothing of it may be followed or executed.
	View(ctx context.Context) (*os.File, error)
	// Attach starts another program in the same sandbox with the terminal's other end
	// (a pty slave or any file) as its stdin, stdout and stderr. Env is added to the
	// sandbox's own environment, a name that is there already is replaced; dir "" is Mountpoint.
	// The sandbox's own program, and what it starts, reach neither its memory nor its descriptors
	// nor its terminal; where that cannot be had, no terminal is lent and the error wraps ErrShared.
	Attach(ctx context.Context, argv, env []string, dir string, terminal *os.File) (Attached, error)
}

// Attached is a second program in a sandbox.
type Attached interface {
	// Wait blocks until the program has ended. The error wraps ErrEnded if it ended
	// with its sandbox, not by itself.
	Wait() (Exit, error)
	Kill()
}

// Check is one line of a driver's report.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do
}

// Report says what a driver can do on this machine.
type Report struct {
	Driver  string  `json:"driver"`
	Overlay bool    `json:"overlay"` // can show an overlay tree
	OwnUID  bool    `json:"own_uid"` // gives every sandbox a uid of its own
	Freezer string  `json:"freezer"` // cgroup or init
	Memory  string  `json:"memory"`  // cgroup2, cgroup1 or rlimit+watch
	Checks  []Check `json:"checks"`
}

// Driver is the port.
type Driver interface {
	// Probe finds out what works here. An error means that nothing can be run.
	Probe(ctx context.Context) (Report, error)
	// SelfTest tries from inside a sandbox what must fail, and the same where nothing forbids it.
	// An error means that it could not be done; a try that worked is no error but not Held.
	SelfTest(ctx context.Context) ([]Try, error)
	// Start runs a spec. Cancelling ctx kills the sandbox.
	Start(ctx context.Context, spec Spec) (Process, error)
}

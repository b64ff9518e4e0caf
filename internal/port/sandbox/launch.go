package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// What crosses to our own processes around a sandbox: the launcher, which builds
// the mounts and gives up every right, and init, pid 1 inside. Both are this same
// program or the small one that was built with it (see package runner), so both ends of
// each message are built together; Protocol tells when the file on disk was replaced in between.

// Protocol grows with every change of a type below.
const Protocol = 10

// Orders grows with every change of a type from Order on, which is what a host and an init of another build say to each other: what a
// launcher is told concerns no init.
const Orders = 1

// InitPath is where our own program is seen inside, read-only.
const InitPath = "/.sallyport/bin"

// Descriptors that the launcher inherits, and the one that init keeps.
const (
	ControlFD = 3 // socket between driver and init; the launcher reports a failure on it
	LaunchFD  = 4 // a Launch as JSON
	FilterFD  = 5 // the seccomp program, for bwrap to read
)

// Launch is what the launcher builds a sandbox from.
type Launch struct {
	Parent       int     `json:"parent"` // pid that must still be the parent
	Drop         bool    `json:"drop"`   // started by root: drop to Owner for good
	Owner        Owner   `json:"owner"`
	Tree         Tree    `json:"tree"`
	Binds        []Bind  `json:"binds"`
	Mounts       []Mount `json:"mounts,omitempty"`
	MountFDs     []int   `json:"mount_fds,omitempty"` // of each mount: user namespace mapping Of to Owner; 0 = none
	Self         string  `json:"self"`                // the launcher's and init's program, on the host
	Bubblewrap   string  `json:"bubblewrap"`          // absolute path of bwrap
	Image        string  `json:"image,omitempty"`
	Egress       string  `json:"egress,omitempty"`
	Home         string  `json:"home,omitempty"`
	Cache        Cache   `json:"cache,omitzero"`
	Background   bool    `json:"background,omitempty"`
	Range        bool    `json:"range,omitempty"` // bwrap is root of a range of uids from Owner's on
	ScratchBytes int64   `json:"scratch_bytes"`   // of /tmp, /dev/shm and the home folder together
	ScratchFiles int64   `json:"scratch_files"`   // entries there
	IdmapFD      int     `json:"idmap_fd"`        // user namespace mapping 0 to Owner; 0 = none
	GroupFDs     []int   `json:"group_fds"`       // task files of version 1 control groups to join
}

// Order is what a driver asks of init.
type Order struct {
	Run    *Run      `json:"run,omitempty"`    // start a program; with three descriptors, or one if it is a terminal
	Watch  *Watching `json:"watch,omitempty"`  // with the first Run
	Relay  *Relay    `json:"relay,omitempty"`  // with the first Run: there is a socket at EgressSocket
	Kill   int       `json:"kill,omitempty"`   // end the program with this number
	Freeze *Freezing `json:"freeze,omitempty"` // stop every process
	Thaw   bool      `json:"thaw,omitempty"`
	Unseen *int64    `json:"unseen,omitempty"` // bytes of memory that programs hold where only the driver can see it
}

// Run is one program to start inside. Number 1 is the sandbox's own: its end is the end of all.
type Run struct {
	Number   int      `json:"number"` // from 1
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	Terminal bool     `json:"terminal,omitempty"` // one descriptor came, which becomes the controlling terminal if it is one
}

// Relay is the program that hands connections to EgressPort on to EgressSocket. It is there before the first program begins.
type Relay struct {
	Env []string `json:"env,omitempty"`
}

// Watching is what init holds by itself.
type Watching struct {
	DescriptorsMax int   `json:"descriptors_max"`
	ProcessesMax   int   `json:"processes_max"`
	Grouped        bool  `json:"grouped"`      // a control group holds processes too, and counts what it refuses
	MemoryBytes    int64 `json:"memory_bytes"` // 0: a control group holds it
	FilesMax       int   `json:"files_max"`    // in /tmp, /dev/shm and the home folder, if that does not stay

	Processor time.Duration `json:"processor"` // of all programs
}

// Freezing asks for a stop of every process within a time.
type Freezing struct {
	Within time.Duration `json:"within"`
}

// Event is what the launcher and init tell the driver.
type Event struct {
	Hello   int      `json:"hello,omitempty"`   // Protocol; init is up, with its credentials and the folder at Mountpoint
	Speaks  int      `json:"speaks,omitempty"`  // Orders, with Hello
	Failed  *Failure `json:"failed,omitempty"`  // the launcher or init could not go on
	Started int      `json:"started,omitempty"` // number of a program that runs
	Ended   *Ended   `json:"ended,omitempty"`
	Frozen  *Stopped `json:"frozen,omitempty"` // answer to Freeze
	Thawed  bool     `json:"thawed,omitempty"` // answer to Thaw
	Limit   *Limit   `json:"limit,omitempty"`  // a limit that init watches was broken
}

// Failure says what did not work; Number is the program's, 0 = the sandbox itself.
type Failure struct {
	Number  int    `json:"number,omitempty"`
	Text    string `json:"text"`
	Missing bool   `json:"missing,omitempty"` // what was asked for does not exist
	Shared  bool   `json:"shared,omitempty"`  // it is ErrShared
}

// Ended is the end of one program.
type Ended struct {
	Number int `json:"number"`
	Code   int `json:"code"`   // -1 if a signal ended it
	Signal int `json:"signal"` // 0 if it ended by itself
}

// Stopped is the outcome of a freeze; Error is empty if every process stands still.
type Stopped struct {
	Processes int    `json:"processes"`
	Error     string `json:"error,omitempty"`
}

// FrameMax is the longest message in bytes: a command line and an environment fit.
const FrameMax = 4 << 20

// Frame returns v as JSON behind its length in four bytes.
func Frame(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if len(body) > FrameMax {
		return nil, fmt.Errorf("message of %d bytes: at most %d", len(body), FrameMax)
	}
	out := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(out, uint32(len(body)))
	return append(out, body...), nil
}

package sandbox

import "context"

// Aims are what the tries of a self-test are aimed at: things of the host that a sandbox must
// not reach. What is empty is not tried.
type Aims struct {
	Outside   bool     `json:"outside,omitempty"`   // these are the controls: nothing confines them, and they change nothing
	File      string   `json:"file,omitempty"`      // that everybody on the host may read
	Folders   []string `json:"folders,omitempty"`   // of the person's and of sallyport's
	Inherited string   `json:"inherited,omitempty"` // a file that a descriptor was left open on
	Port      int      `json:"port,omitempty"`      // of the host's loopback, where somebody listens
	Abstract  string   `json:"abstract,omitempty"`  // name of a socket without a file, where somebody listens
	Socket    string   `json:"socket,omitempty"`    // path of a socket, where somebody listens
	Egress    string   `json:"egress,omitempty"`    // path of a socket that the sandbox has for its way out
	Process   int      `json:"process,omitempty"`   // a process of the host
	Word      string   `json:"word,omitempty"`      // that comes back to who sends it by the way out
	Started   string   `json:"started,omitempty"`   // when it began, in the kernel's words: its number may mean another one inside
}

// Tried is what came of one try at one place.
type Tried struct {
	Name    string `json:"name"`
	Worked  bool   `json:"worked"`
	Detail  string `json:"detail"`            // how it failed, or what worked
	Allowed string `json:"allowed,omitempty"` // where the same works beside it, if that was tried and worked
}

// Try is a line of a self-test: something that must not work in a sandbox. A try that fails proves
// nothing if it fails everywhere, so each has a control.
type Try struct {
	Name    string `json:"name"`
	Held    bool   `json:"held"`    // it failed inside, as it must
	Control string `json:"control"` // where the same works; "" = nowhere on this machine, so that it proves little
	Detail  string `json:"detail"`  // how it failed, or what worked
}

// RunnerTrier is a driver that can try another build of our own program in sandboxes, before anybody trusts it.
type RunnerTrier interface {
	// TryRunner has the runner of a folder of programs be pid 1 of sandboxes which the runner of now builds. Nothing of it
	// runs outside of their walls, so what it does as a launcher is not tried. An error is the machine's.
	TryRunner(ctx context.Context, dir string) (Tryout, error)
}

// Tryout is what came of trying another runner.
type Tryout struct {
	Same    bool   // it is the one of now, byte for byte: there is nothing to try
	Untried string // a clause: why it could not be tried; "" = it was
	Failed  string // a clause: in what it failed; "" = in nothing
	Tail    string // the end of what it and its sandbox printed, if it failed
	Tries   int    // of ways out of the sandbox, each of which was refused
}

package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"sallyport/internal/port/sandbox"
)

// attempt is something that must not work in a sandbox. try returns nil if it worked. Where
// nothing confines it the same function is the control, unless that would change the host
// (inside); then, or where the machine forbids it to this user, allowed does the same to
// something that is permitted.
type attempt struct {
	name    string
	try     func(sandbox.Aims) error
	allowed func() error
	where   string // of allowed, for a person
	inside  bool   // never tried outside
}

// errNoAim says that there is nothing to try it on.
var errNoAim = errors.New("nothing to aim at")

// probe tries what must fail, and in a sandbox what must work: to write the workspace's file and, if
// there is a word for it, to get that back by the way out. It reports each try; its status is 1 if what must work does not.
func probe(in io.Reader, out io.Writer) int {
	var aims sandbox.Aims
	if err := json.NewDecoder(in).Decode(&aims); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var all []sandbox.Tried
	for _, a := range attempts {
		if aims.Outside && a.inside {
			continue
		}
		err := a.try(aims)
		if errors.Is(err, errNoAim) {
			continue
		}
		t := sandbox.Tried{Name: a.name, Worked: err == nil, Detail: "it worked"}
		if err != nil {
			t.Detail = err.Error()
		}
		if a.allowed != nil && !aims.Outside {
			if err := a.allowed(); err == nil {
				t.Allowed = a.where
			}
		}
		all = append(all, t)
	}
	if !aims.Outside {
		if err := os.WriteFile(sandbox.Mountpoint+"/file", []byte("changed\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if aims.Word != "" {
		if err := through(aims.Word); err != nil {
			fmt.Fprintln(os.Stderr, "the way out:", err)
			return 1
		}
	}
	if err := json.NewEncoder(out).Encode(all); err != nil {
		return 1
	}
	return 0
}

package config

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"sallyport/internal/rule/mount"
)

// MountName is the name of a folder that a group is shown, inside.
type MountName string

const mountNameForm = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`

// mountsMax is how many folders one group may wish for: each is looked through when a session begins.
const mountsMax = 16

func (n *MountName) parse(text string) error {
	*n = MountName(text)
	if !match(mountNameForm, text) {
		return fmt.Errorf("%q is no name of a folder; write letters, digits, dots, dashes and underscores, at most 64", text)
	}
	return nil
}

// MountRoot is a folder below which groups may be shown folders: the home's key (CH-025).
type MountRoot struct {
	Root  Folder `json:"root" jsonschema:"A folder of this machine. A group is shown it, or a folder in it, if its runner.yaml says so."`
	Write bool   `json:"allowReadWrite,omitempty" jsonschema:"Whether a group may write there whose runner.yaml says readonly: false (default false)."`
}

func (r MountRoot) fits() error {
	if r.Root == "" {
		return errors.New("root is missing: it names a folder of this machine")
	}
	return nil
}

// Mount is a folder that a group wishes to be shown: the group's key.
type Mount struct {
	Path     Folder    `json:"path" jsonschema:"A folder of this machine; the home's sallyport.yaml has a root in mounts that is it or holds it."`
	At       MountName `json:"at,omitempty" jsonschema:"Its name in /extra inside (default: the last name of the path)."`
	ReadOnly *bool     `json:"readonly,omitempty" jsonschema:"false: the agent can change what is there, where the root says allowReadWrite: true (default true)."`
}

func (m Mount) fits() error {
	if m.Path == "" {
		return errors.New("path is missing: it names a folder of this machine")
	}
	if name := string(m.name()); !match(mountNameForm, name) {
		return fmt.Errorf("the last name of %q is no name of a folder inside; write another in at", string(m.Path))
	}
	return nil
}

func (m Mount) name() MountName {
	if m.At != "" {
		return m.At
	}
	return MountName(path.Base(string(m.Path)))
}

func (r Runner) fits() error {
	if n := len(r.Mounts); n > mountsMax {
		return fmt.Errorf("mounts has %d entries; %d is the limit", n, mountsMax)
	}
	for i, m := range r.Mounts {
		if slices.ContainsFunc(r.Mounts[:i], func(o Mount) bool { return o.name() == m.name() }) {
			return fmt.Errorf("mounts[%d]: /extra/%s is another entry's place already; write a name of its own in at", i, m.name())
		}
	}
	return nil
}

// Wishes are the folders that a group asks to be shown, in the order of its runner.yaml.
func (r Runner) Wishes() []mount.Wish {
	var all []mount.Wish
	for _, m := range r.Mounts {
		all = append(all, mount.Wish{Path: string(m.Path), Name: string(m.name()), Write: m.ReadOnly != nil && !*m.ReadOnly})
	}
	return all
}

// Roots are the folders below which a home lets groups be shown folders. Where their links lead is not said here.
func (s Sallyport) Roots() []mount.Root {
	var all []mount.Root
	for _, r := range s.Mounts {
		all = append(all, mount.Root{Path: string(r.Root), Write: r.Write})
	}
	return all
}

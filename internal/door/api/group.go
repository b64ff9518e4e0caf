package api

import "sallyport/internal/who/group"

// HostChat stands for a group where one talks with the host itself: it shows there what it wants to know.
const HostChat = string(group.Host)

// CheckGroup refuses what is no name of a group. Errors: problem.Usage.
func CheckGroup(name string) error {
	_, err := group.ParseFolder(name)
	return err
}

// checkTalk refuses what cannot be talked with.
func checkTalk(name string) error {
	if name == HostChat {
		return nil
	}
	return CheckGroup(name)
}

// OfUser names the folder whose git configuration counts; "" = that of the home's owner.
type OfUser struct {
	User string `json:"user,omitempty"` // absolute
}

// OfGroup is about one group.
type OfGroup struct {
	Group string `path:"name" json:"-"`
	User  string `json:"user,omitempty"` // as in OfUser
}

// NewGroup asks for a group.
type NewGroup struct {
	Name  string `json:"name"`
	Agent string `json:"agent,omitempty"` // "" = the one that the template names
	User  string `json:"user,omitempty"`
	Shown Shown  `json:"shown,omitzero"`
}

// CommitGroup asks for hand edits to be committed.
type CommitGroup struct {
	Group   string `path:"name" json:"-"`
	Message string `json:"message,omitempty"` // "" = what is done
	User    string `json:"user,omitempty"`
	Shown   Shown  `json:"shown,omitzero"`
}

// RefreshGroup asks for what has moved in the template to be brought to a group.
type RefreshGroup struct {
	Group   string   `path:"name" json:"-"`
	Keep    []string `json:"keep,omitempty"` // files that stay as the group has them, from its folder
	Approve string   `json:"approve"`        // ask, yes, later
	User    string   `json:"user,omitempty"`
	Shown   Shown    `json:"shown,omitzero"`
}

// CompleteHome asks for what a home lacks that was made before there were groups.
type CompleteHome struct {
	User  string `json:"user,omitempty"` // whose git configuration counts; "" = that of the home's owner
	Shown Shown  `json:"shown,omitzero"`
}

// UpgradeHome asks for the host to run by the programs in a folder of this machine.
type UpgradeHome struct {
	From    string `json:"from"`            // absolute
	Group   string `json:"group,omitempty"` // in whose conversation it is confirmed; "" = the first
	Approve string `json:"approve"`         // ask, yes, later
}

// Shown is what a person says of folders of this machine that what they ask for would newly show a group. Nothing said, such a folder can
// be read, and what would let an agent write there is refused.
type Shown struct {
	Yes  bool              `json:"yes,omitempty"`  // each as the group's runner.yaml has it
	Ask  bool              `json:"ask,omitempty"`  // they can be asked: nothing is done while one has no word in Said
	Said map[string]string `json:"said,omitempty"` // what they have answered, read-only or read-write, by path
}

// Begun is the change that does what was asked for; none where nothing is to be done, or where a person has to say how Folders are shown.
type Begun struct {
	Change  *Change      `json:"change"`
	Folders []GroupMount `json:"folders,omitempty"`
}

// Groups are those of a home.
type Groups struct {
	Groups []Group  `json:"groups"`
	Odd    []string `json:"odd"`             // what lies beside them and is none
	Asked  bool     `json:"asked,omitempty"` // whoever asks is asked by the host itself, too: in HostChat
}

// Group is one group as it stands. What runs is the tree; what differs from it does not.
type Group struct {
	Name    string   `json:"name"`
	Tree    string   `json:"tree"`             // "" while nothing of it is committed
	Agent   string   `json:"agent,omitempty"`  // that answers
	Model   string   `json:"model,omitempty"`  // "" = as the home says
	Rounds  int      `json:"rounds,omitempty"` // 0 = as the home says
	Off     []string `json:"tools_off"`        // tools that its agent is not given
	Hooks   []string `json:"hooks"`
	Prompts []string `json:"prompts"`
	Skills  []string `json:"skills"`
	Problem string   `json:"problem,omitempty"`      // why it cannot run, with the place
	Memory  *int64   `json:"memory_bytes,omitempty"` // that its agent remembers; a list does not look, and leaves it out

	Swap   *Change      `json:"swap,omitempty"`  // the change that it has asked for of what it runs, while that is open; a list leaves it out
	Mounts []GroupMount `json:"mounts,omitzero"` // folders of this machine that its runner.yaml asks for, as its next session has them; a list leaves it out

	DriftTotal int         `json:"drift_total"` // files that differ from the template
	Drift      []GroupFile `json:"drift"`       // the first of them
	EditsTotal int         `json:"edits_total"` // files that were edited by hand and are not committed
	Edits      []GroupFile `json:"edits"`       // the first of them
}

// Cleared is what was removed of a group's memory.
type Cleared struct {
	Group string `json:"group"`
	Bytes int64  `json:"bytes"`
}

// GroupMount is one folder of this machine that a group asks for.
type GroupMount struct {
	Path    string `json:"path"`
	At      string `json:"at"`                // where its agent sees it
	Mode    string `json:"mode,omitempty"`    // read-only or read-write; "" = it is not shown
	Asked   string `json:"asked"`             // read-only or read-write
	Problem string `json:"problem,omitempty"` // why it is not shown, or not as it was asked for
}

// GroupFile is one file that differs.
type GroupFile struct {
	Path string `json:"path"` // from the group's folder
	Kind string `json:"kind"` // added, removed, changed, mode
	Why  string `json:"why,omitempty"`
}

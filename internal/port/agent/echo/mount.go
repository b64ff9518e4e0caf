package echo

import (
	"errors"
	"os"
	"strings"

	"sallyport/internal/base/pattern"
)

// runnerFile says which folders of the machine the group is shown.
const runnerFile = "template/runner/runner.yaml"

// shown is how the host tells what a person said of a folder.
var shown = pattern.Of(`(/\S*) is to be read-(only|write):`)

// heed writes what a person said of each folder; false if words say nothing of any.
func (d *dev) heed(words string) (any bool, err error) {
	root, err := os.OpenRoot(d.top)
	if err != nil {
		return false, err
	}
	defer root.Close()
	for _, m := range shown().FindAllStringSubmatch(words, -1) {
		if err := d.mounts(root, m[1], m[2] == "write"); err != nil {
			return false, err
		}
		any = true
	}
	return any, nil
}

// mounts has the group shown a folder. It knows its own form of an entry, and leaves every other alone.
func (d *dev) mounts(root *os.Root, folder string, write bool) error {
	raw, err := root.ReadFile(runnerFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	entry, other := "- {path: "+folder+"}\n", "- {path: "+folder+", readonly: false}\n"
	if write {
		entry, other = other, entry
	}
	text := strings.TrimRight(string(raw), "\n") + "\n"
	switch {
	case strings.Contains(text, entry):
	case strings.Contains(text, other):
		text = strings.Replace(text, other, entry, 1)
	case strings.Contains(text, "\nmounts:\n"):
		text = strings.Replace(text, "\nmounts:\n", "\nmounts:\n"+entry, 1)
	case strings.Contains(text, "\nmounts:"):
		return errors.New("its mounts are written in a form that I do not know; write runner.yaml whole")
	default:
		text += "mounts:\n" + entry
	}
	d.done[runnerFile] = "show " + folder
	return root.WriteFile(runnerFile, []byte(text), 0o644)
}

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/problem"
)

// Opt is where an image may have programs beside /usr. It is shown if something is in it: an empty one would only hide what is installed there
// on the machine.
const Opt = "/opt"

// ImageHoldsOpt reports whether the image in an open folder has something in Opt.
func ImageHoldsOpt(top int) (bool, error) {
	fd, err := beneath.Open(top, Opt[1:], unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open its %q: %w", Opt, err)
	}
	defer unix.Close(fd)
	holds := false
	err = beneath.Names(fd, func(string) error {
		holds = true
		return io.EOF
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read its %q: %w", Opt, err)
	}
	return holds, nil
}

// ImageName is what an image in a folder is called to people: the beginning of its digest.
func ImageName(folder string) string {
	name := filepath.Base(filepath.Dir(folder))
	return name[:min(len(name), 12)]
}

// Lacking is the error for a program that a person's sandboxes would need and that the image they start from does not have.
func (p Person) Lacking(program string, err error) error {
	return problem.Errorf(problem.NotFound, "", "%s is not in the image %s, which sandboxes of this home show in place of the machine's programs; image/Dockerfile has to install it: %w",
		program, ImageName(p.Image), err)
}

// inImage reports whether a sandbox shows the image at a path.
func (p Person) inImage(path string) bool {
	switch {
	case p.Image == "" || p.inTop(path):
		return false
	case !Below(path, Opt):
		return common(path)
	}
	top, err := beneath.Top(p.Image, unix.O_PATH)
	if err != nil {
		return false
	}
	defer unix.Close(top)
	holds, err := ImageHoldsOpt(top)
	return err == nil && holds
}

// Folders are those in which programs are looked up by a name: of the image's own PATH those that are shown of it, then those of the
// person's. What else the image names is the agent's to write, or the machine's.
func (p Person) Folders() (all []string) {
	if p.Image != "" {
		all = slices.DeleteFunc(imagePath(p.Image), func(folder string) bool { return folder != filepath.Clean(folder) || !p.inImage(folder) })
	}
	return append(all, filepath.SplitList(p.Path)...)
}

// imagePath are the folders of the PATH that lies beside the root of an image, in what the home knows of it (image.Image); none if it has none.
func imagePath(root string) []string {
	var known struct {
		Path string `json:"path"`
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(root), "image.json"))
	if err != nil || json.Unmarshal(raw, &known) != nil {
		return nil
	}
	return filepath.SplitList(known.Path)
}

// linksMax is how many links may stand behind one another, as in the kernel.
const linksMax = 40

// enters follows the links of the machine from a path until they lead to where the image is shown, and returns where that is; "" if they do not.
func (p Person) enters(path string) string {
	for range linksMax {
		if p.Image == "" || p.inImage(path) {
			break
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return ""
		}
		if path = filepath.Join(folder, filepath.Base(path)); p.inImage(path) {
			break
		}
		to, err := os.Readlink(path)
		if err != nil {
			return ""
		}
		if path = to; !filepath.IsAbs(to) {
			path = filepath.Join(folder, to)
		}
		path = filepath.Clean(path)
	}
	if !p.inImage(path) {
		return ""
	}
	return path
}

// runnable looks at a program where a sandbox has it: in the image, or on the machine.
func (p Person) runnable(path string) error {
	if at := p.enters(path); at != "" {
		_, _, err := p.followImage(at)
		return err
	}
	return runnable(path)
}

// followImage finds where a path of the image leads, as seen inside, and the words after #! if it is a script. What is there was written by whoever
// made the image: nothing is opened outside it, and nothing is waited for.
func (p Person) followImage(path string) (real string, words []string, err error) {
	top, err := beneath.Top(p.Image, unix.O_PATH)
	if err != nil {
		return "", nil, err
	}
	defer unix.Close(top)
	fd, err := beneath.Within(top, path, unix.O_PATH)
	if err != nil {
		return "", nil, &os.PathError{Op: "look up in the image", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", nil, &os.PathError{Op: "look up in the image", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 {
		return "", nil, fmt.Errorf("%q is no program in the image: %w", path, os.ErrPermission)
	}
	root, err := os.Readlink(descriptor(top))
	if err == nil {
		real, err = os.Readlink(descriptor(fd))
	}
	if err != nil {
		return "", nil, fmt.Errorf("find out where %q leads in the image: %w", path, err)
	}
	if real = strings.TrimPrefix(real, root); !p.inImage(real) {
		return "", nil, fmt.Errorf("%q leads to %q in the image, which a sandbox does not show: %w", path, real, os.ErrNotExist)
	}

	opened, err := beneath.Within(top, real, unix.O_RDONLY)
	if err != nil {
		return real, nil, nil // what nobody here may read is no script to us
	}
	f := os.NewFile(uintptr(opened), real)
	defer f.Close()
	return real, interpreter(f), nil
}

func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/base/problem"
)

// Share returns a read-only bind of a folder or file that a person wants to be
// seen inside, at the path they gave. A link is followed: Source says where to.
//
// Errors: problem.NotFound; problem.Refused for what would show more than one
// means: the root, a home folder or what it lies in, the kernel's file systems,
// sockets, pipes and devices.
func (p Person) Share(path string) (Bind, error) {
	const next = "sallyport run --help"
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return Bind{}, problem.Errorf(problem.Usage, next, "--share %q is no absolute path", path)
	}
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Bind{}, problem.Errorf(problem.NotFound, next, "--share %q cannot be shown: %w", path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return Bind{}, problem.Errorf(problem.NotFound, next, "--share %q cannot be shown: %w", path, err)
	}
	named := fmt.Sprintf("%q", path)
	if real != path {
		named += fmt.Sprintf(" (which is %q)", real)
	}
	refuse := func(why string) (Bind, error) {
		return Bind{}, problem.Errorf(problem.Refused, next, "--share %s is refused: %s", named, why)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return refuse("it is neither a folder nor a regular file")
	}
	if p.inImage(path) {
		return refuse("the sandbox shows the image of this home there")
	}
	for _, place := range []string{real, path} {
		switch {
		case place == "/":
			return refuse("it is the whole machine")
		case p.holdsHome(place):
			return refuse("it is a home folder or holds one")
		case p.Top != "" && Below(p.Top, place):
			return refuse("it holds the repository itself, and an agent may see only its copy")
		}
		for _, no := range []string{"/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/etc"} {
			if Below(place, no) {
				return refuse("a sandbox shows nothing of the host's " + no)
			}
		}
		for _, no := range []string{Mountpoint, Home, "/.sallyport", "/tmp", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/home", "/var"} {
			if place == no {
				return refuse("the sandbox has a folder of its own there, or the folder holds what belongs to others")
			}
		}
	}
	if why := speaks(real); why != "" {
		return refuse(why)
	}
	return Bind{Source: real, Target: path}, nil
}

// shareEntriesMax is how many entries of a shared folder are looked at.
const shareEntriesMax = 1_000_000

// speaks says why a shared place would be more than something to read: a socket or FIFO in it leads
// to a process of the host's, and no read-only mount holds it. "" if there is none.
func speaks(real string) (why string) {
	err := walk(real, func(path string, d fs.DirEntry) bool {
		if leadsOut(d) {
			why = fmt.Sprintf("%q in it is a socket, FIFO or device, which leads out of the sandbox", path)
		}
		return why == ""
	})
	switch {
	case errors.Is(err, errMany):
		return fmt.Sprintf("it holds more than %d entries, too many to look for sockets", shareEntriesMax)
	case err != nil:
		return "it cannot be looked through for sockets: " + err.Error()
	}
	return why
}

func leadsOut(d fs.DirEntry) bool {
	return d.Type()&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice) != 0
}

var errMany = fmt.Errorf("it holds more than %d entries", shareEntriesMax)

// walk calls each for a place and all in it, which can be read here, until it returns false.
func walk(real string, each func(path string, d fs.DirEntry) bool) error {
	seen := 0
	return filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil // what cannot be read here cannot be read inside
			}
			return err
		}
		if seen++; seen > shareEntriesMax {
			return errMany
		}
		if !each(path, d) {
			return fs.SkipAll
		}
		return nil
	})
}

func (p Person) holdsHome(folder string) bool {
	homes := []string{"/root", p.Home}
	if real, err := filepath.EvalSymlinks(p.Home); err == nil {
		homes = append(homes, real)
	}
	for _, home := range homes {
		if home != "" && Below(filepath.Clean(home), folder) {
			return true
		}
	}
	return filepath.Dir(folder) == "/home"
}

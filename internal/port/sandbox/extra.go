package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// Sight is what is at a path, its links followed. The zero value is nothing.
type Sight struct {
	Real     string
	Folder   bool
	Dev, Ino uint64
	Of       Owner
}

// LookAt finds what is at an absolute path. What is not there is no error.
func LookAt(path string) (Sight, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return Sight{}, nil
	}
	if err != nil {
		return Sight{}, err
	}
	fd, err := beneath.Real(real, unix.O_PATH)
	if err != nil {
		return Sight{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Sight{}, fmt.Errorf("look at %q: %w", real, err)
	}
	return Sight{
		Real: real, Folder: st.Mode&unix.S_IFMT == unix.S_IFDIR, Dev: st.Dev, Ino: st.Ino, Of: Owner{UID: st.Uid, GID: st.Gid},
	}, nil
}

// Inside is what speaks against showing a folder: the first of each that was found, by its path in the folder; "" if there is none.
type Inside struct {
	Unread     string // why it could not be looked through
	Exit       string // a socket, FIFO or device, which leads out of a sandbox
	Secret     string
	Mounted    string // a place where something else is mounted
	Repository string // a git directory, or a file that names one
	Deep       string // a folder that is too deep to be counted
}

// LookInto looks through a folder. What is a secret says the caller, by a path in the folder.
func LookInto(real string, secret func(path string, folder bool) bool) (in Inside) {
	err := walk(real, func(path string, d fs.DirEntry) bool {
		rel, err := filepath.Rel(real, path)
		if err != nil || rel == "." {
			return true
		}
		first := func(to *string) {
			if *to == "" {
				*to = rel
			}
		}
		if leadsOut(d) {
			first(&in.Exit)
		}
		if secret(rel, d.IsDir()) {
			first(&in.Secret)
		}
		if d.Name() == ".git" {
			first(&in.Repository)
		}
		if d.IsDir() && strings.Count(rel, "/") >= FoldersMax {
			first(&in.Deep)
		}
		return true
	})
	if err == nil {
		in.Mounted, err = mountedIn(real)
	}
	if err != nil {
		in.Unread = err.Error()
	}
	return in
}

// mountedIn finds a mount in a folder.
func mountedIn(real string) (string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find what is mounted: %w", err)
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := unescape(fields[4])
		if rel, ok := strings.CutPrefix(at, strings.TrimSuffix(real, "/")+"/"); ok && rel != "" {
			return rel, nil
		}
	}
	return "", nil
}

// unescape reads a path as the kernel writes it into a table.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`).Replace

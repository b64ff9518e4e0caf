package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// unmapped is who owns a file for a process that lives in a user namespace, if its owner does not.
const unmapped = 65534

// OnlyOwner refuses a file or folder that anybody may write but its owner and root. A group may, if it has no other member: many systems give
// each user a group, and let it write all that they make.
func OnlyOwner(path string, info fs.FileInfo) error {
	is, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case !ok || mode&0o002 != 0:
		return problem.Errorf(problem.Refused, "chmod o-w "+inert.Path(path), "every user of this machine may write %q (mode %04o)", path, mode)
	case mode&0o020 != 0 && !alone(is.Gid, is.Uid, uint32(os.Geteuid())):
		return problem.Errorf(problem.Refused, "chmod g-w "+inert.Path(path),
			"not only its owner may write %q (mode %04o), but all who are in its group %d", path, mode, is.Gid)
	}
	return nil
}

// OnlyOwnerAbove refuses a folder that lies in one in which somebody else could put another in its place.
func OnlyOwnerAbove(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if is, ok := info.Sys().(*syscall.Stat_t); !ok || !slices.Contains([]uint32{0, uint32(os.Geteuid()), unmapped}, is.Uid) {
			return problem.Errorf(problem.Refused, "ls -ldn "+inert.Path(dir),
				"%q lies in %q, whose owner is another user: they could put another in its place", path, dir)
		}
		if info.Mode()&os.ModeSticky == 0 { // else only its owner moves what is in it
			if err := OnlyOwner(dir, info); err != nil {
				return problem.Errorf(problem.Refused, problem.Of(err).Next, "somebody else could put another folder in the place of %q: %w", path, err)
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// alone reports whether a group has no member but these users and root, by this machine's own lists. Of a group that stands in none of them
// nobody here can say who is in it.
func alone(gid uint32, uids ...uint32) bool {
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		return false
	}
	users, err := os.ReadFile("/etc/passwd")
	return err == nil && aloneIn(string(groups), string(users), gid, append(uids, 0))
}

func aloneIn(groups, users string, gid uint32, uids []uint32) bool {
	id := strconv.FormatUint(uint64(gid), 10)
	allowed := map[string]bool{} // names
	for line := range strings.Lines(users) {
		user := strings.Split(strings.TrimSpace(line), ":")
		if len(user) < 4 {
			continue
		}
		uid, err := strconv.ParseUint(user[2], 10, 32)
		ours := err == nil && slices.Contains(uids, uint32(uid))
		if user[3] == id && !ours {
			return false
		}
		if ours {
			allowed[user[0]] = true
		}
	}
	known := false
	for line := range strings.Lines(groups) {
		group := strings.Split(strings.TrimSpace(line), ":")
		if len(group) < 4 || group[2] != id {
			continue
		}
		known = true
		for member := range strings.SplitSeq(group[3], ",") {
			if member != "" && !allowed[member] {
				return false
			}
		}
	}
	return known
}

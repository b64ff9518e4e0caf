package layer

import (
	"os"
	"path/filepath"

	"sallyport/internal/port/sandbox"
)

// OwnFolder makes a folder that belongs to a sandbox.
func OwnFolder(path string, owner sandbox.Owner) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o755); err != nil { // whatever the umask
		return err
	}
	return own(path, owner)
}

// own gives a path to a sandbox, without following a link. Not being root, it is ours and theirs already.
func own(path string, owner sandbox.Owner) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(owner.UID), int(owner.GID))
}

// ChownTree gives a small tree that the host has just made to a sandbox.
func ChownTree(path string, owner sandbox.Owner) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return own(p, owner)
	})
}

// ourselves is whom the cache belongs to.
func ourselves() sandbox.Owner {
	return sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

package bwrap

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// hand gives the sandbox's uid what of the host's it may connect to and write: its socket and its home folder. What
// is anything else under those names is refused.
func (d *Driver) hand(spec sandbox.Spec) error {
	var errs []error
	for _, h := range []struct {
		path, what string
		kind       uint32
	}{{spec.Egress, "socket", unix.S_IFSOCK}, {spec.Home, "folder", unix.S_IFDIR}} {
		if h.path == "" {
			continue
		}
		var st unix.Stat_t
		err := unix.Lstat(h.path, &st)
		switch {
		case err != nil:
		case st.Mode&unix.S_IFMT != h.kind:
			err = fmt.Errorf("the file is no %s", h.what)
		case st.Uid == spec.Owner.UID:
		case os.Geteuid() != 0 || st.Uid != 0:
			err = fmt.Errorf("it belongs to uid %d", st.Uid)
		default:
			err = d.config.Ops.Do("sandbox:hand", func() error {
				return os.Lchown(h.path, int(spec.Owner.UID), int(spec.Owner.GID))
			})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("start sandbox %q: show %q: %w", spec.ID, h.path, err))
		}
	}
	return errors.Join(errs...)
}

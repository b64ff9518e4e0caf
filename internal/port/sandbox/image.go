package sandbox

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
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

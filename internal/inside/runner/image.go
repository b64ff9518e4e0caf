package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/port/sandbox"
)

// image is what a sandbox shows of an image in place of the machine's own programs. An agent may have written all of it: no link of it
// is followed here. One that a program needs is made again inside, where it leads to what is inside.
type image struct {
	path   string
	grafts []graft
	links  map[string]string // by their place inside
	files  map[string][]byte // small ones of /etc, by their place inside
}

// confFilesMax is how many files of /etc/ld.so.conf.d are copied.
const confFilesMax = 100

// imageFiles are small files of an image's /etc beside etcFiles: those that links there lead to on some systems.
var imageFiles = []string{"pki/tls/openssl.cnf", "pki/tls/cert.pem", "ssl/cert.pem"}

// openImage looks at the image in a folder; the zero value is of none.
func openImage(folder string) (image, error) {
	m := image{path: folder, links: map[string]string{}, files: map[string][]byte{}}
	if folder == "" {
		return m, nil
	}
	top, err := beneath.Top(folder, unix.O_PATH)
	if err != nil {
		return m, fmt.Errorf("the image: %w", err)
	}
	defer unix.Close(top)
	if err := m.tops(top); err != nil {
		return m, fmt.Errorf("the image %q cannot be shown: %w", folder, err)
	}
	if err := m.etc(top); err != nil {
		return m, fmt.Errorf("the image %q cannot be shown: %w", folder, err)
	}
	return m, nil
}

// tops adds the folders with programs.
func (m *image) tops(top int) error {
	for _, name := range tops {
		if err := m.add(top, name, unix.S_IFDIR, append(slices.Clone(tops), "/usr")); err != nil {
			return err
		}
	}
	if err := m.add(top, "/usr", unix.S_IFDIR, nil); err != nil {
		return err
	}
	if len(m.grafts) == 0 {
		return errors.New("it has neither /usr nor /bin nor /lib")
	}
	holds, err := sandbox.ImageHoldsOpt(top)
	if err != nil || !holds {
		return err
	}
	return m.add(top, sandbox.Opt, unix.S_IFDIR, nil)
}

// etc adds what of /etc is shown.
func (m *image) etc(top int) error {
	into := []string{"/etc", "/usr"}
	for _, name := range etcFolders {
		if err := m.add(top, name, unix.S_IFDIR, into); err != nil {
			return err
		}
	}
	more, err := confFiles(top)
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(etcFiles, imageFiles, more) {
		if err := m.add(top, "/etc/"+name, unix.S_IFREG, into); err != nil {
			return err
		}
	}
	return nil
}

// add adds what the image has at a place, if it is of a kind, or a link that leads into one of some folders.
func (m *image) add(top int, place string, kind uint32, into []string) error {
	name := strings.TrimPrefix(place, "/")
	fd, err := beneath.Look(top, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the way to its %q: %w", place, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at its %q: %w", place, err)
	}
	switch is := st.Mode & unix.S_IFMT; {
	case is == unix.S_IFLNK:
		return m.addLink(fd, place, into)
	case is != kind && kind == unix.S_IFDIR:
		return fmt.Errorf("its %q is no folder", place)
	case is != kind:
		return fmt.Errorf("its %q is no regular file", place)
	case is == unix.S_IFREG:
		return m.addFile(top, place)
	}
	g, err := cloneOpen(fd, m.path+place, rootDir+place)
	if err == nil {
		m.grafts = append(m.grafts, g)
	}
	return err
}

// addLink adds an open link, which is made again with its own text.
func (m *image) addLink(fd int, place string, into []string) error {
	text, err := beneath.Link(fd, "")
	if err != nil {
		return fmt.Errorf("read its link %q: %w", place, err)
	}
	to := text
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(place), to)
	}
	to = path.Clean(to)
	if !slices.ContainsFunc(into, func(folder string) bool { return sandbox.Below(to, folder) }) {
		return fmt.Errorf("its %q is a link to %q, where a sandbox shows nothing of it", place, text)
	}
	m.links[place] = text
	return nil
}

// addFile reads a small regular file. One that may not be read is left out, as programs see it too.
func (m *image) addFile(top int, place string) error {
	fd, err := beneath.Open(top, strings.TrimPrefix(place, "/"), unix.O_RDONLY)
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open its %q: %w", place, err)
	}
	f := os.NewFile(uintptr(fd), place)
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, copyBytesMax+1))
	if err != nil {
		return fmt.Errorf("read its %q: %w", place, err)
	}
	if len(raw) > copyBytesMax {
		return fmt.Errorf("its %q has more than %d bytes", place, copyBytesMax)
	}
	m.files[place] = raw
	return nil
}

// confFiles are the files of /etc/ld.so.conf.d, by their path in /etc.
func confFiles(top int) (names []string, err error) {
	const folder = "ld.so.conf.d"
	fd, err := beneath.Open(top, "etc/"+folder, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open its %q: %w", "/etc/"+folder, err)
	}
	defer unix.Close(fd)
	err = beneath.Names(fd, func(name string) error {
		if !strings.HasSuffix(name, ".conf") {
			return nil
		}
		names = append(names, folder+"/"+name)
		if len(names) > confFilesMax {
			return fmt.Errorf("its %q has more than %d files", "/etc/"+folder, confFilesMax)
		}
		return nil
	})
	return names, err
}

// make makes the links and files of the image in the staging root, where nothing but what we made is yet.
func (m image) make() error {
	place := func(at string) (string, error) { return rootDir + at, os.MkdirAll(path.Dir(rootDir+at), 0o755) }
	for at, text := range m.links {
		target, err := place(at)
		if err == nil {
			err = os.Symlink(text, target)
		}
		if err != nil {
			return fmt.Errorf("make the image's %q: %w", at, err)
		}
	}
	for at, raw := range m.files {
		target, err := place(at)
		if err == nil {
			err = os.WriteFile(target, raw, 0o644)
		}
		if err != nil {
			return fmt.Errorf("make the image's %q: %w", at, err)
		}
	}
	return nil
}

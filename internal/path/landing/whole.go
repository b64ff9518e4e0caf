package landing

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// configure looks up the repository's switches that matter here, once.
func (s *site) configure() error {
	if s.set != nil {
		return nil
	}
	said, err := s.Own(s.ctx, "core.bare", "core.filemode", "core.symlinks", "core.sparsecheckout", "core.splitindex", "core.logallrefupdates")
	if err != nil {
		return fmt.Errorf("read the configuration of %q: %w", s.Top, err)
	}
	// Git keeps reflogs where nothing is said of them and there is a work tree: also in one of a bare repository.
	s.set = map[string]bool{"core.filemode": true, "core.symlinks": true, "core.logallrefupdates": true}
	for key, value := range said {
		s.set[key] = value == "true" || value == "always" // of reflogs alone
	}
	s.work.fileMode = s.set["core.filemode"]
	return nil
}

// plainTree refuses a work tree whose files do not stand for themselves.
func (s *site) plainTree() error {
	if err := s.configure(); err != nil {
		return err
	}
	if !s.set["core.symlinks"] {
		return s.oddState(s.command("config core.symlinks true"), "%q keeps symbolic links as plain files (core.symlinks=false)", s.Top)
	}
	return nil
}

// lockedOut names the lock that a person's git holds, or has left behind.
func (s *site) lockedOut(path string) error {
	return s.oddState("rm -i "+inert.Path(path), "the lock %[2]q is there: another git works in %[1]q, or was killed; if none does, remove the lock", s.Top, path)
}

// index reads the index; the file is what was read, zero if there is none.
func (s *site) index() (*git.Index, unix.Stat_t, error) {
	var st unix.Stat_t
	raw, err := s.rawIndex(&st)
	if err != nil {
		return nil, st, err
	}
	x, err := git.ParseIndex(raw, s.ObjectFormat)
	if err != nil {
		return nil, st, s.oddState(s.command("status"), "the index of %q cannot be read: %v", s.Top, err)
	}
	switch {
	case x.Split && s.set["core.splitindex"]: // git would split it again
		return nil, st, s.oddState(s.command("config core.splitIndex false")+"; "+s.command("update-index --no-split-index"),
			"the index of %q is split (core.splitIndex), and sallyport writes only a whole one", s.Top)
	case x.Split:
		return nil, st, s.oddState(s.command("update-index --no-split-index"), "the index of %q is split, and sallyport writes only a whole one", s.Top)
	case x.Sparse:
		return nil, st, s.oddState(s.command("sparse-checkout reapply --no-sparse-index"),
			"the index of %q is sparse, and sallyport writes only a full one", s.Top)
	}
	if u := x.Unmerged(); len(u) > 0 {
		return nil, st, s.oddState(s.command("status"), "%s has conflicts in %q that are not resolved", listed(u), s.Top)
	}
	return x, st, nil
}

func (s *site) rawIndex(st *unix.Stat_t) ([]byte, error) {
	fd, err := s.gitDir.open("index", unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the index of %q: %w", s.Top, err)
	}
	f := os.NewFile(uintptr(fd), "index")
	const most = 512 << 20 // of some millions of paths; a sparse file can claim any size
	defer f.Close()
	if err := unix.Fstat(fd, st); err != nil {
		return nil, fmt.Errorf("read the index of %q: %w", s.Top, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, s.oddState(s.command("status"), "the index of %q is not a regular file", s.Top)
	}
	if st.Size > most {
		return nil, s.oddState(s.command("status"), "the index of %q has %d bytes; sallyport reads at most %d", s.Top, st.Size, most)
	}
	raw := make([]byte, st.Size)
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil, fmt.Errorf("read the index of %q: %w", s.Top, err)
	}
	return raw, nil
}

// listed names paths in a sentence, the first few of many.
func listed(paths []string) string {
	const most = 10
	var b strings.Builder
	for i, p := range paths {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(paths)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(inert.Path(p))
	}
	return b.String()
}

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// writeFile writes a file whole or not at all. Unless it is to replace one, a file that came meanwhile stays. As root it gets the owner of
// the folder.
func writeFile(name, text string, replace bool) error {
	err := disk.Ops{}.Do("init:write", func() error {
		f, err := os.CreateTemp(filepath.Dir(name), ".sallyport-*.new")
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(f.Name()) }() // gone, or the other name of what is written
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Chmod(0o644), owned(f, filepath.Dir(name)), f.Sync(), f.Close())
		switch {
		case err != nil:
			return err
		case replace:
			return os.Rename(f.Name(), name)
		}
		return os.Link(f.Name(), name)
	})
	if errors.Is(err, fs.ErrExist) {
		return problem.Errorf(problem.Conflict, "sallyport init --force", "somebody wrote %s meanwhile; it is left as it is", inert.Path(name))
	}
	if err != nil {
		return problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(filepath.Dir(name)), "write %s: %w", inert.Path(name), err)
	}
	return nil
}

// owned gives a file to the owner of its folder, where that is another and we may.
func owned(f *os.File, folder string) error {
	info, err := os.Stat(folder)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(st.Uid), int(st.Gid))
	}
	return nil
}

// differenceMax is how many lines of either side are compared; longer ones are shown as replaced whole.
const differenceMax = 2000

// printDifference shows what becomes of a text, line by line.
func printDifference(s sheet, before, after string) {
	old, next := strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n")
	kept := make([][]int, len(old)+1) // longest common rest from here on
	if len(old) <= differenceMax && len(next) <= differenceMax {
		for i := range kept {
			kept[i] = make([]int, len(next)+1)
		}
		for i := len(old) - 1; i >= 0; i-- {
			for j := len(next) - 1; j >= 0; j-- {
				if old[i] == next[j] {
					kept[i][j] = kept[i+1][j+1] + 1
				} else {
					kept[i][j] = max(kept[i+1][j], kept[i][j+1])
				}
			}
		}
	}
	gone := func(l string) { fmt.Fprintln(s.w, s.red("-"+inert.Line(l))) }
	come := func(l string) { fmt.Fprintln(s.w, s.green("+"+inert.Line(l))) }
	i, j := 0, 0
	for i < len(old) && j < len(next) {
		switch {
		case kept[i] == nil: // too long to compare
			for ; i < len(old); i++ {
				gone(old[i])
			}
		case old[i] == next[j]:
			i, j = i+1, j+1
		case kept[i+1][j] >= kept[i][j+1]:
			gone(old[i])
			i++
		default:
			come(next[j])
			j++
		}
	}
	for ; i < len(old); i++ {
		gone(old[i])
	}
	for ; j < len(next); j++ {
		come(next[j])
	}
}

package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	patternMax     = 1000
	matchesMax     = 200
	searchFilesMax = 50_000
	searchBytesMax = 8 << 20 // of one file
	matchMax       = 300     // bytes of a line that are shown
)

func search(ctx context.Context, w *workshop, a values) (string, error) {
	pattern, glob := a.text("pattern"), a.text("glob")
	if pattern == "" || len(pattern) > patternMax || len(glob) > patternMax {
		return "", fmt.Errorf("a pattern has 1 to %d characters", patternMax)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", fmt.Errorf("the pattern is no regular expression: %w", err)
	}
	if glob != "" && !doublestar.ValidatePattern(glob) {
		return "", errors.New("the glob is not valid")
	}
	name := "."
	if a.text("path") != "" {
		if name, err = w.within(a.text("path")); err != nil {
			return "", err
		}
	}
	s := searcher{w: w, re: re}
	err = fs.WalkDir(w.root.FS(), filepath.ToSlash(name), func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && p == name:
			return plain(name, err)
		case err != nil:
			return nil
		case d.Name() == ".git":
			return skip(d)
		case !d.Type().IsRegular() || glob != "" && !matches(glob, p):
			return nil
		}
		if s.files++; s.files > searchFilesMax {
			s.more = true
			return fs.SkipAll
		}
		return s.file(p)
	})
	switch {
	case err != nil:
		return s.out.String(), err
	case s.more:
		s.out.WriteString("(there is more; search for less)")
	case s.count == 0:
		return "Nothing matches.", nil
	}
	return s.out.String(), nil
}

// matches takes a glob for a whole path, or for a name if it has no slash.
func matches(glob, p string) bool {
	if !strings.Contains(glob, "/") {
		p = filepath.Base(p)
	}
	ok, _ := doublestar.Match(glob, p) // it is valid
	return ok
}

type searcher struct {
	w            *workshop
	re           *regexp.Regexp
	out          strings.Builder
	files, count int
	more         bool
}

// file shows what matches in one text file; one that cannot be read has nothing.
func (s *searcher) file(p string) error {
	f, err := s.w.open(p, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.LimitReader(f, searchBytesMax), 64<<10)
	if head, _ := r.Peek(8000); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	for number := 1; ; number++ {
		text, err := cutLine(r)
		if s.re.MatchString(text) {
			if s.count++; s.count > matchesMax || s.out.Len() > resultMax-pathBytesMax {
				s.more = true
				return fs.SkipAll
			}
			fmt.Fprintf(&s.out, "%s:%d: %s\n", p, number, clip(text, matchMax))
		}
		if err != nil {
			return nil
		}
	}
}

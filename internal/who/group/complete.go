package group

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

// Complete drafts what a home lacks that was made before there were groups: the template, a first group where there is none, and the
// words by which git leaves .state alone (SM-015). What is there stays as it is (SM-013). A draft without edits says that nothing lacks.
func Complete(ctx context.Context, host git.Dir, base git.OID, first Beginning, by By) (Draft, error) {
	groups, _, err := List(ctx, host, base)
	if err != nil {
		return Draft{}, err
	}
	files, err := NewHome([]Beginning{first})
	if err != nil {
		return Draft{}, err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Name
	}
	found, err := host.Lookup(ctx, base, append(paths, templateRunner))
	if err != nil {
		return Draft{}, fmt.Errorf("read the home at %.12s: %w", base, err)
	}

	templated := isFile(found[len(files)])
	var writes []git.Write
	for i, f := range files {
		switch top, _, _ := strings.Cut(f.Name, "/"); {
		case f.Name == ignoreFile:
			more, err := ignoreMore(ctx, host, found[i], f.Text)
			if err != nil {
				return Draft{}, err
			}
			writes = append(writes, more...)
		case !found[i].Absent(), top == templateFolder && templated, top == groupsFolder && (templated || len(groups) > 0):
		case top == templateFolder, top == groupsFolder:
			writes = append(writes, git.Write{Path: f.Name, Mode: git.File, Data: git.Bytes([]byte(f.Text))})
		}
	}
	if templated && len(groups) == 0 {
		copies, err := copyTemplate(ctx, host, base, first)
		if err != nil {
			return Draft{}, err
		}
		writes = append(writes, copies...)
	}
	if len(writes) == 0 {
		return Draft{Base: base}, nil
	}
	return commit(ctx, host, base, writes, "Make a home for agents\n", by)
}

// ignoreMore adds to a .gitignore the lines of text that it lacks.
func ignoreMore(ctx context.Context, host git.Dir, e git.Entry, text string) ([]git.Write, error) {
	var now []byte
	var err error
	switch {
	case isFile(e):
		if now, err = readText(ctx, host, ignoreFile, e.OID); err != nil {
			return nil, err
		}
	case !e.Absent():
		return nil, problem.Errorf(problem.Refused, "sallyport doctor", "the %s of the home is no file, and .state must be ignored there", ignoreFile)
	default:
		e.Mode = git.File
	}
	has := strings.Split(string(now), "\n")
	var lacks []string
	for line := range strings.Lines(text) {
		if !slices.Contains(has, strings.TrimSuffix(line, "\n")) {
			lacks = append(lacks, line)
		}
	}
	if len(lacks) == 0 {
		return nil, nil
	}
	if len(now) > 0 && !bytes.HasSuffix(now, []byte("\n")) {
		now = append(now, '\n')
	}
	return []git.Write{{Path: ignoreFile, Mode: e.Mode, Data: git.Bytes(append(now, strings.Join(lacks, "")...))}}, nil
}

package project_test

import (
	"path/filepath"
	"testing"

	"sallyport/internal/path/project"
	"sallyport/internal/path/repository"
)

const change = "chg-00000001"

// base is what a project begins with.
var base = map[string]string{"README": "read me\n", "run.sh": "x+#!/bin/sh\n", "src/a.go": "package a\n", "src/deep/c.go": "package c\n"}

func reader(t *testing.T) *project.Reader {
	root := t.TempDir()
	return project.New(project.Config{
		Repositories: repository.New(repository.Config{Root: filepath.Join(root, "repos")}), Folder: filepath.Join(root, "dirty"),
		Entries: 1_000_000, PathBytes: 128 << 20,
	})
}

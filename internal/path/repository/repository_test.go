package repository_test

import (
	"path/filepath"
	"testing"

	"sallyport/internal/path/repository"
)

const change = "chg-00000001"

// base is what a project begins with.
var base = map[string]string{"README": "read me\n", "run.sh": "x+#!/bin/sh\n", "src/a.go": "package a\n", "src/deep/c.go": "package c\n"}

func store(t *testing.T) *repository.Store {
	return at(filepath.Join(t.TempDir(), "repos"), repository.Config{})
}

// at is a store of which nobody is shown anything.
func at(root string, c repository.Config) *repository.Store {
	c.Root = root
	c.Shown = func(func(string)) error { return nil }
	return repository.New(c)
}

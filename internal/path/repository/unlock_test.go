package repository_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/repository"
)

// A power cut while a ref is moved leaves its lock, which no git takes away.
func TestALockThatNobodyHoldsGoesAndNoOther(t *testing.T) {
	const change = id.Change("chg-aaaaaaaa")
	top := t.TempDir()
	r := at(filepath.Join(top, "repos"), repository.Config{})
	project := git.Project{Top: filepath.Join(top, "p"), GitDir: filepath.Join(top, "p/.git"), CommonDir: filepath.Join(top, "p/.git")}
	host := r.Host(project).Path
	lock := func(parts ...string) string {
		t.Helper()
		path := filepath.Join(parts...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		disktest.Put(t, path, "", 0o600)
		return path
	}
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	left := []string{lock(host, repository.RefRoot(change), "valid.lock"), lock(project.CommonDir, repository.RefRoot(change), "base.lock")}
	other := []string{lock(host, "refs/sallyport/chg-bbbbbbbb/valid.lock"), lock(project.CommonDir, "refs/heads/main.lock"), lock(project.CommonDir, "index.lock")}

	synctest.Test(t, func(t *testing.T) { // its time is before that of the files: they are new
		for _, path := range left {
			if !there(path) {
				t.Fatal("it is not there at all")
			}
		}
		if err := r.Unlock(t.Context(), project, change); err != nil {
			t.Error(err)
		}
	})
	for _, path := range left {
		if there(path) {
			t.Errorf("%s is left", path)
		}
	}

	held := lock(host, repository.RefRoot(change), "valid.lock")
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		// The git that held it has moved the ref, and another holds the lock now. Nobody looks at that instant, between the two.
		time.AfterFunc(1025*time.Millisecond, func() {
			if err := os.Rename(held, filepath.Join(top, "moved")); err != nil {
				t.Error(err)
			}
			lock(held)
		})
		if err := r.Unlock(t.Context(), project, change); err != nil || !there(held) {
			t.Errorf("a lock that somebody else took meanwhile: there %v, %v", there(held), err)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("it waited %s for a git that had ended", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Unlock(ctx, project, change); err == nil || !there(held) {
			t.Errorf("a daemon that stops removes nothing: there %v, %v", there(held), err)
		}
	})
	for _, path := range other {
		if !there(path) {
			t.Errorf("%s is gone, and is none of ours", path)
		}
	}
}

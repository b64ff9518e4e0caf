package group

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/mount"
)

// NewWish is a folder of this machine that a group newly asks for, or newly asks to write in.
type NewWish struct {
	mount.Wish
	Of Folder // the group
}

// NewWishes are the folders of this machine that edits in the workspace of a group's change newly ask for, or newly ask to write in. A
// runner.yaml that cannot be read asks for none: Check refuses it.
func NewWishes(ctx context.Context, host git.Dir, folder Folder, edits []git.Edit) (all []NewWish, err error) {
	var home []git.Edit
	for _, e := range edits {
		if m, err := Target(folder, e.Path); err == nil { // nothing that has another path is offered
			e.Path = m.Target
			home = append(home, e)
		}
	}
	return NewWishesOf(ctx, host, home)
}

// NewWishesOf is NewWishes for edits of the home itself. What the template asks for is asked by nobody before a group has it.
func NewWishesOf(ctx context.Context, host git.Dir, edits []git.Edit) (all []NewWish, err error) {
	for _, e := range edits {
		if runs, _ := path.Match(path.Join(groupsFolder, "*", runnerFile), e.Path); !runs {
			continue
		}
		of := Folder(strings.Split(e.Path, "/")[1])
		old, err := wishesOf(ctx, host, e.Old)
		if err != nil {
			return nil, err
		}
		now, err := wishesOf(ctx, host, e.New)
		if err != nil {
			return nil, err
		}
		for _, w := range now {
			had := slices.ContainsFunc(old, func(o mount.Wish) bool { return o.Path == w.Path && (o.Write || !w.Write) })
			asked := slices.ContainsFunc(all, func(o NewWish) bool { return o.Of == of && o.Path == w.Path && o.Write == w.Write })
			if !had && !asked {
				all = append(all, NewWish{w, of})
			}
		}
	}
	return all, nil
}

// wishesOf reads what a runner.yaml asks for.
func wishesOf(ctx context.Context, host git.Dir, e git.Entry) ([]mount.Wish, error) {
	if !isFile(e) {
		return nil, nil
	}
	blob, err := host.Blob(ctx, e.OID)
	if err != nil {
		return nil, fmt.Errorf("read a %s: %w", config.RunnerFile, err)
	}
	defer blob.Close()
	text, err := io.ReadAll(io.LimitReader(blob, textMax+1))
	if err != nil {
		return nil, fmt.Errorf("read a %s: %w", config.RunnerFile, err)
	}
	r, err := config.ParseRunner(config.RunnerFile, "", text)
	if err != nil || len(text) > textMax {
		return nil, nil
	}
	return r.Wishes(), nil
}

package proposal

import (
	"context"
	"fmt"
	"io"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/policy"
)

// markBytesMax is how large a text may be to be looked through for marks.
const markBytesMax = 4 << 20

// Marks computes what of the edits from one commit to another needs a word of its own, where the person's git runs what is named.
// It reads objects and writes nothing.
func Marks(ctx context.Context, host git.Dir, commit git.OID, edits []git.Edit, named []git.Named) ([]policy.Mark, error) {
	in := policy.Marking{Changes: make([]policy.Change, len(edits)), Text: map[git.OID]string{}, Named: named}
	at := map[git.OID][]git.Edit{}
	var read []git.OID
	for i, e := range edits {
		in.Changes[i] = policy.Change{Edit: e}
		if e.New.Mode != git.File && e.New.Mode != git.Executable {
			continue
		}
		if at[e.New.OID] == nil {
			read = append(read, e.New.OID)
		}
		at[e.New.OID] = append(at[e.New.OID], e)
	}
	var before []git.OID // the base's side of what has something to be compared
	keep := func(oid git.OID, text string) {
		wanted := policy.Hides(text)
		for _, e := range at[oid] {
			wanted = wanted || policy.Reads(e.Path)
		}
		if !wanted {
			return
		}
		in.Text[oid] = text
		for _, e := range at[oid] {
			if e.Old.Mode == git.File || e.Old.Mode == git.Executable {
				before = append(before, e.Old.OID)
			}
		}
	}
	if err := texts(ctx, host, read, keep); err != nil {
		return nil, err
	}
	if err := texts(ctx, host, before, func(oid git.OID, text string) { in.Text[oid] = text }); err != nil {
		return nil, err
	}
	browser, err := host.Browse(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("look at the tree of %.12s: %w", commit, err)
	}
	defer browser.Close()
	in.Entry, in.Names = browser.Entry, browser.Names
	return policy.Marked(in), browser.Err()
}

// texts gives each blob's text, or policy.TooLong for a text that is too large.
func texts(ctx context.Context, host git.Dir, oids []git.OID, each func(git.OID, string)) error {
	err := host.Blobs(ctx, oids, func(oid git.OID, size int64, r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, markBytesMax+1))
		if err != nil {
			return err
		}
		if size > markBytesMax && !policy.Binary(string(text)) {
			text = []byte(policy.TooLong)
		}
		each(oid, string(text))
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for what needs a word of its own: %w", err)
	}
	return nil
}

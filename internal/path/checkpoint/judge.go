package checkpoint

import (
	"context"
	"fmt"
	"io"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// linkBytesMax is PATH_MAX: no link is longer.
const linkBytesMax = 4096

// Judge validates what differs between two commits by rules that may have changed since a
// checkpoint was taken. All it needs to know stands in the objects. A scanner of nil is that of the built-in rules.
func Judge(ctx context.Context, host git.Dir, base, commit git.OID, plan policy.Plan, rules policy.Rules, scanner *secret.Scanner,
	load Loading) ([]policy.Violation, error) {
	edits, err := host.Edits(ctx, base, commit)
	if err != nil {
		return nil, err
	}
	changes := make([]policy.Change, len(edits))
	at := map[git.OID][]int{}
	var blobs []git.OID
	for i, e := range edits {
		changes[i] = policy.Change{Edit: e, Fact: policy.Fact{HardLinks: 1}}
		if e.New.Absent() || e.New.Mode == git.Submodule {
			continue
		}
		if at[e.New.OID] == nil {
			blobs = append(blobs, e.New.OID)
		}
		at[e.New.OID] = append(at[e.New.OID], i)
	}
	err = host.Blobs(ctx, blobs, func(oid git.OID, size int64, r io.Reader) error {
		head, err := io.ReadAll(io.LimitReader(r, linkBytesMax)) // several paths may share a blob
		for _, i := range at[oid] {
			changes[i].Fact.Size = size
			if changes[i].New.Mode == git.Symlink {
				changes[i].Fact.LinkTarget = string(head)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what changed: %w", err)
	}
	browser, err := host.Browse(ctx, base)
	if err != nil {
		return nil, err
	}
	defer browser.Close()
	search := searching(host, scanner, 0)
	secrets, err := search.changes(ctx, changes)
	if err != nil {
		return nil, err
	}
	violations := policy.Validate(policy.Input{
		Changes: changes, Plan: plan, Rules: rules, Base: browser.Entry, Names: browser.Names, Secrets: secrets,
	})
	unloadable, err := load.of(ctx, host, commit, edits)
	if err != nil {
		return nil, err
	}
	return search.blot(append(violations, unloadable...)), browser.Err()
}

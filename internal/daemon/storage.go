package daemon

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/image"
	"sallyport/internal/base/leftover"
	"sallyport/internal/door/client"
	"sallyport/internal/host/storage"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/person"
)

// storageParts hands the steward what it stands on.
func (d *Daemon) storageParts(owner person.Owner, state string) storage.Parts {
	keep := d.began.Retention
	parts := storage.Parts{
		DB: d.db, Owner: owner, State: state, Workspaces: d.spaces, Changes: d.control, Lander: &landing.Lander{Ops: d.Ops, Host: d.spaces.EnsureRepository},
		Retention: storage.Retention{
			Refs: time.Duration(keep.Refs), Transcripts: time.Duration(keep.Transcripts), Exports: time.Duration(keep.Exports),
			Grace: time.Duration(keep.Grace),
		},
		Author: author(d.began.Commits), Ops: d.Ops, Log: d.log, Left: halfMade(state, d.spaces, d.Ops),
	}
	if groups, ok := d.sandbox.(leftover.Part); ok {
		parts.Left = append(parts.Left, groups)
	}
	parts.Left = append(parts.Left, past{d}, leftover.Names{
		Folder: candidate{d}.Images().Dir, Patterns: []string{image.HalfMade}, Goes: leftover.InTime, Ops: d.Ops, Op: "image:discard",
	})
	if d.Grace != 0 {
		parts.Retention.Grace = d.Grace
	}
	me := client.Me()
	parts.Socket, _ = me.Socket(d.Home) // one that is too long was never listened on
	for _, path := range append(me.Sockets(d.Home), me.UsersSocket(d.Home)) {
		if runtime := filepath.Dir(filepath.Dir(path)); !slices.Contains(parts.Runtime, runtime) {
			parts.Runtime = append(parts.Runtime, runtime)
		}
	}
	return parts
}

// halfMade are the parts that leave something half made in a home's state.
func halfMade(state string, spaces *workspace.Manager, ops disk.Ops) []leftover.Part {
	return []leftover.Part{
		spaces,
		leftover.Names{Folder: filepath.Join(state, "changes"), Patterns: []string{"*/state.md.new", "*/checkpoints/*.diff.new"}, Ops: ops, Op: "notes:sweep"},
		leftover.Names{Folder: filepath.Join(state, "deadman"), Patterns: []string{deadman.HalfMade}, Ops: ops, Op: "deadman:sweep"},
	}
}

// author is who stands in the commits that the host makes.
func author(c config.Commits) git.Signature {
	return git.Signature{Name: cmp.Or(string(c.AuthorName), "sallyport"), Email: cmp.Or(string(c.AuthorEmail), "sallyport@localhost")}
}

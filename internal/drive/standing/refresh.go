package standing

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Refresh is what a person asks to be brought to a group.
type Refresh struct {
	By      audit.Actor
	Name    string   // of the group
	Keep    []string // files that stay as the group has them, from its folder
	Approve request.Approve
	Account string // whose conversation with the group has the card, and the trial
	User    string // folder whose git configuration counts
	Shown   Shown
}

// refreshNamed is how many files a refresh names, in its request and in a refusal.
const refreshNamed = 20

// Refresh asks for what has moved in the template since a group was made, or refreshed last, to be brought into the group's copies: by a
// merge of three, of the template as it was, as it is, and the group (SM-918). It is a change like any other of what the group runs: with a
// card, a trial and a way back. No row is returned if nothing is to be brought.
//
// Errors: problem.Conflict, naming the files, where both sides changed what cannot be merged, and nothing is merged then; problem.Conflict
// while another change of the group is under way; problem.Refused if the group could not run afterwards; *UnsaidError.
func (g *Groups) Refresh(ctx context.Context, a Refresh) (row change.Row, err error) {
	if err := g.may(a.By); err != nil {
		return row, err
	}
	folder, err := group.ParseFolder(a.Name)
	if err != nil {
		return row, err
	}
	return g.beside(ctx, folder, func() (change.Row, error) { return g.refresh(ctx, folder, a) })
}

// beside asks for a change of a group that its agent has not asked for. Errors: problem.Conflict while another is open.
func (g *Groups) beside(ctx context.Context, folder group.Folder, ask func() (change.Row, error)) (row change.Row, err error) {
	err = g.wishing.Alone(ctx, folder, func() error {
		open, err := g.openSwaps(ctx, folder)
		if err == nil && len(open) > 0 {
			err = stillPending(open[0])
		}
		if err == nil {
			row, err = ask()
		}
		return err
	})
	return row, err
}

// talksIn is the conversation of an account with a group at the terminal.
func (g *Groups) talksIn(ctx context.Context, folder group.Folder, account string) (chat conversation.Chat, err error) {
	err = g.DB.InTx(ctx, func(tx store.Tx) (err error) {
		chat, err = ledger.TerminalChat(ctx, tx, folder, account)
		return err
	})
	return chat, err
}

func (g *Groups) refresh(ctx context.Context, folder group.Folder, a Refresh) (change.Row, error) {
	p, head, err := g.open(ctx)
	if err != nil {
		return change.Row{}, err
	}
	if _, err := group.FindTree(ctx, p.Common(g.Ops), head, folder); err != nil {
		return change.Row{}, err
	}
	chat, err := g.talksIn(ctx, folder, a.Account)
	if err != nil {
		return change.Row{}, err
	}
	r := request.Request{
		Kind: request.Swap, Refresh: true, By: a.By, Agent: "none", Approve: a.Approve, Home: a.User, Group: string(folder), Chat: chat.ID,
	}
	if err := g.Approvable(ctx, r, right.Group); err != nil {
		return change.Row{}, err
	}
	m := merging{Groups: g, folder: folder, change: id.NewChange(), keep: a.Keep}
	return g.offer(ctx, m.change, r, g.shown(ctx, a.Shown, "sallyport group refresh "+string(folder),
		func(p git.Project, host git.Dir, head git.OID, by group.By) (group.Draft, error) {
			m.by = by
			return m.draft(ctx, p, host, head)
		}))
}

// merging is a refresh as it is computed.
type merging struct {
	*Groups
	folder group.Folder
	change id.Change
	keep   []string // as a person says them
	by     group.By
}

// draft merges what has moved in the template into the group's files. What they would be then is read as at a start.
func (m merging) draft(ctx context.Context, p git.Project, host git.Dir, head git.OID) (group.Draft, error) {
	from, given, err := m.origin(ctx, p, head)
	if err != nil {
		return group.Draft{}, err
	}
	if _, err := m.Workspaces.EnsureRepository(ctx, p, append(given, from.Commit)...); err != nil { // it holds what the template was
		return group.Draft{}, err
	}
	moved, err := group.MovedSince(ctx, host, m.folder, from, head)
	if err != nil {
		return group.Draft{}, err
	}
	if moved, err = m.leave(moved); err != nil || len(moved) == 0 {
		return group.Draft{Base: head}, err
	}

	got, err := proposal.Reapply(ctx, proposal.Reapplying{
		Host: host, Change: m.change, Branch: string(m.folder), Edits: moved, Onto: head, Author: m.by.Author,
		Keep: strings.TrimPrefix(m.by.Ref, repository.RefRoot(m.change)),
	})
	if err != nil {
		return group.Draft{}, fmt.Errorf("merge the template into the group %s: %w", m.folder, err)
	}
	if len(got.Not) > 0 {
		return group.Draft{}, m.conflict(got.Not)
	}
	if got.Writes == 0 {
		return group.Draft{Base: head}, nil
	}
	tree, err := group.FindTree(ctx, host, got.Commit, m.folder)
	if err != nil {
		return group.Draft{}, err
	}
	if _, err := group.Read(ctx, host, m.folder, tree); err != nil {
		return group.Draft{}, err
	}
	edits, err := host.Edits(ctx, head, got.Commit)
	return group.Draft{Base: head, Commit: got.Commit, Edits: edits, Message: m.words(from, moved, edits)}, err
}

// leave takes out of what has moved what is to stay as the group has it. Errors: problem.Usage for a file that has not moved.
func (m merging) leave(moved []git.Edit) ([]git.Edit, error) {
	for _, name := range m.keep {
		name = path.Clean(name)
		at := slices.IndexFunc(moved, func(e git.Edit) bool { return m.folder.Within(e.Path) == name })
		if at < 0 {
			return nil, problem.Errorf(problem.Usage, "sallyport group refresh --help",
				"--keep %s: no such file has moved in the template; paths are from the group's folder", inert.Path(name))
		}
		moved = slices.Delete(moved, at, at+1)
	}
	return moved, nil
}

// misfits say why a file of the template cannot be brought to a group.
var misfits = map[proposal.Misfit]string{
	proposal.Blocked:   "the group has a file where the template has a folder",
	proposal.Covered:   "the group has a folder where the template has a file",
	proposal.GoneThere: "the template changed it, and the group removed it",
	proposal.GoneHere:  "the template removed it, and the group changed it",
	proposal.NoFile:    "both changed it, and it is no ordinary file",
	proposal.TooLarge:  "both changed it, and it is too large to merge",
	proposal.SameLines: "both changed the same lines",
	proposal.NoLines:   "both changed it, and it cannot be merged line by line",
}

// conflict names every file that cannot be merged, and how to go on without them.
func (m merging) conflict(not []proposal.Unapplied) error {
	next := "sallyport group refresh " + string(m.folder)
	slices.SortFunc(not, func(a, b proposal.Unapplied) int { return strings.Compare(a.Path, b.Path) })
	var named []string
	for _, u := range not {
		in := inert.Path(m.folder.Within(u.Path))
		named = append(named, in+" ("+misfits[u.Why]+")")
		next += " --keep " + in
	}
	if more := len(named) - refreshNamed; more > 0 {
		named = append(named[:refreshNamed], fmt.Sprintf("and %d more", more))
		next = "sallyport group drift " + string(m.folder)
	}
	return problem.Errorf(problem.Conflict, next, "nothing is brought to the group %s: the template and the group do not fit together in %s; --keep leaves a file as the group has it",
		m.folder, strings.Join(named, ", "))
}

// words say what a refresh brings, and what it leaves.
func (m merging) words(from group.Origin, moved, edits []git.Edit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Refresh %s from the template\n\nWhat has moved in the template since commit %.12s:\n", m.folder, from.Commit)
	for i, e := range edits {
		if i == refreshNamed {
			fmt.Fprintf(&b, "- and %d more\n", len(edits)-i)
			break
		}
		how := ""
		if !slices.ContainsFunc(moved, func(t git.Edit) bool { return t.Path == e.Path && t.New == e.New }) {
			how = ", merged with what the group has changed in it"
		}
		fmt.Fprintf(&b, "- %s%s\n", inert.Path(m.folder.Within(e.Path)), how)
	}
	if len(m.keep) > 0 {
		fmt.Fprintf(&b, "\nLeft as the group has it: %s\n", inert.Line(strings.Join(m.keep[:min(len(m.keep), refreshNamed)], ", ")))
	}
	return b.String()
}

package socket

import (
	"context"
	"errors"
	"path"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/group"
)

// Groups keeps the groups of the home; it checks who asks.
type Groups interface {
	List(ctx context.Context, user string) (all []standing.Seen, odd []string, err error)
	Show(ctx context.Context, folder group.Folder, user string) (standing.Seen, error)
	// Create, Commit and Complete return the row of the change that does it; a row without an id where nothing is to be done.
	Create(ctx context.Context, a standing.Asked) (change.Row, error)
	Commit(ctx context.Context, a standing.Asked) (change.Row, error)
	Complete(ctx context.Context, a standing.Asked) (change.Row, error)
	// Refresh returns the row of the change that brings a group what has moved in the template; a row without an id where nothing has.
	Refresh(ctx context.Context, a standing.Refresh) (change.Row, error)
	// Upgrade returns the row of the change that has the host run by other programs; a row without an id where it runs by them.
	Upgrade(ctx context.Context, a standing.Upgrade) (change.Row, error)
	// Promote returns the row of the change that brings the template what a group has landed; a row without an id where it has that.
	Promote(ctx context.Context, a standing.Asked, of id.Change) (change.Row, error)
}

// groups answers what is asked of the home's groups.
type groups struct{ part Groups }

func (n groups) list(ctx context.Context, _ audit.Actor, in api.OfUser) (out api.Groups, err error) {
	if err := checkUser(in.User); err != nil {
		return out, err
	}
	all, odd, err := n.part.List(ctx, in.User)
	return api.Groups{Groups: each(all, groupOf), Odd: texts(odd)}, err
}

func (n groups) show(ctx context.Context, _ audit.Actor, in api.OfGroup) (out api.Group, err error) {
	if err := checkUser(in.User); err != nil {
		return out, err
	}
	seen, err := n.part.Show(ctx, group.Folder(in.Group), in.User)
	out = groupOf(seen)
	out.Memory, out.Mounts = &seen.Memory, each(seen.Mounts, mountedOf)
	if s := seen.Swap; s != nil {
		c := changeOf(s.Row)
		c.Trial = trialOf(s.Trial, s.Row.State)
		out.Swap = &c
	}
	return out, err
}

func (n groups) create(ctx context.Context, by audit.Actor, in api.NewGroup) (out api.Begun, err error) {
	if err := checkUser(in.User); err != nil {
		return out, err
	}
	row, err := n.part.Create(ctx, standing.Asked{By: by, Name: in.Name, Agent: in.Agent, User: in.User, Shown: standing.Shown(in.Shown)})
	return begunOrUnsaid(row, err)
}

func (n groups) commit(ctx context.Context, by audit.Actor, in api.CommitGroup) (out api.Begun, err error) {
	if err := checkUser(in.User); err != nil {
		return out, err
	}
	row, err := n.part.Commit(ctx, standing.Asked{By: by, Name: in.Group, Message: in.Message, User: in.User, Shown: standing.Shown(in.Shown)})
	return begunOrUnsaid(row, err)
}

func (n groups) refresh(ctx context.Context, by audit.Actor, in api.RefreshGroup) (out api.Begun, err error) {
	if err := checkUser(in.User); err != nil {
		return out, err
	}
	mode, err := approveMode(in.Approve)
	if err != nil {
		return out, err
	}
	row, err := n.part.Refresh(ctx, standing.Refresh{
		By: by, Name: in.Group, Keep: in.Keep, Approve: mode, Account: account(by), User: in.User, Shown: standing.Shown(in.Shown),
	})
	return begunOrUnsaid(row, err)
}

func (n groups) promote(ctx context.Context, by audit.Actor, of string) (out api.Begun, err error) {
	row, err := n.part.Promote(ctx, standing.Asked{By: by}, id.Change(of))
	return begunOf(row), err
}

func (n groups) complete(ctx context.Context, by audit.Actor, in api.CompleteHome) (out api.Begun, err error) {
	if err := checkUser(in.User); err != nil {
		return out, err
	}
	row, err := n.part.Complete(ctx, standing.Asked{By: by, User: in.User, Shown: standing.Shown(in.Shown)})
	return begunOrUnsaid(row, err)
}

func (n groups) upgrade(ctx context.Context, by audit.Actor, in api.UpgradeHome) (out api.Begun, err error) {
	mode, err := approveMode(in.Approve)
	if err != nil {
		return out, err
	}
	from, err := folderOf(in.From, "sallyport upgrade --help")
	if err != nil {
		return out, err
	}
	row, err := n.part.Upgrade(ctx, standing.Upgrade{By: by, From: from, Group: in.Group, Approve: mode, Account: account(by)})
	return begunOf(row), err
}

func checkUser(folder string) error {
	if folder == "" {
		return nil
	}
	_, err := folderOf(folder, "sallyport group --help")
	return err
}

func begunOf(row change.Row) (out api.Begun) {
	if row.ID != "" {
		c := changeOf(row)
		out.Change = &c
	}
	return out
}

// begunOrUnsaid answers with the folders of this machine that a person has to speak about first.
func begunOrUnsaid(row change.Row, err error) (api.Begun, error) {
	if unsaid, ok := errors.AsType[*standing.UnsaidError](err); ok {
		return api.Begun{Folders: each(unsaid.Folders, mountedOf)}, nil
	}
	return begunOf(row), err
}

func mountedOf(m live.Mounted) api.GroupMount {
	mode, asked := m.Modes()
	return api.GroupMount{Path: text(m.Path), At: sandbox.Extra + "/" + m.Name, Mode: mode, Asked: asked, Problem: text(m.Refused + m.Note)}
}

// filesShown is how many files that differ cross at once.
const filesShown = 200

func groupOf(s standing.Seen) api.Group {
	r := s.Group.Runner
	out := api.Group{
		Name: string(s.Folder), Tree: string(s.Tree), Agent: string(r.Agent), Model: text(string(r.Model)), Rounds: r.Rounds,
		Off:     each(r.ToolsOff, func(t config.ToolName) string { return string(t) }),
		Hooks:   each(s.Group.Hooks, nameOf),
		Prompts: each(s.Group.Prompts, nameOf),
		Skills:  texts(s.Skills), DriftTotal: len(s.Drift), EditsTotal: len(s.Edits),
	}
	if s.Broken != nil {
		out.Problem = text(problem.Of(s.Broken).Text)
	}
	out.Drift = each(s.Drift[:min(len(s.Drift), filesShown)], func(d group.Difference) api.GroupFile {
		return api.GroupFile{Path: text(d.Path), Kind: string(d.Kind)}
	})
	in := "groups/" + out.Name + "/"
	out.Edits = each(s.Edits[:min(len(s.Edits), filesShown)], func(e group.HandEdit) api.GroupFile {
		return api.GroupFile{Path: text(strings.TrimPrefix(e.Path, in)), Kind: string(e.Kind), Why: text(e.Why)}
	})
	return out
}

func nameOf(f group.File) string { return text(path.Base(f.Path)) }

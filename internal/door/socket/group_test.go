package socket

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/path/trial"
	mounts "sallyport/internal/rule/mount"
	"sallyport/internal/who/group"
)

// house is the groups of a home; it keeps what was asked of it.
type house struct {
	calls []string
	row   change.Row
	seen  standing.Seen
	err   error
}

func (h *house) note(format string, args ...any) (change.Row, error) {
	h.calls = append(h.calls, fmt.Sprintf(format, args...))
	return h.row, h.err
}

func (h *house) List(_ context.Context, user string) ([]standing.Seen, []string, error) {
	_, err := h.note("list %s", user)
	return []standing.Seen{h.seen}, []string{"odd\xff"}, err
}

func (h *house) Show(_ context.Context, of group.Folder, user string) (standing.Seen, error) {
	_, err := h.note("show %s %s", of, user)
	return h.seen, err
}

func (h *house) Create(_ context.Context, a standing.Asked) (change.Row, error) {
	return h.note("create %s %s by %d of %s", a.Name, a.Agent, a.By.UID, a.User)
}

func (h *house) Commit(_ context.Context, a standing.Asked) (change.Row, error) {
	return h.note("commit %s %q by %d of %s", a.Name, a.Message, a.By.UID, a.User)
}

func (h *house) Complete(_ context.Context, a standing.Asked) (change.Row, error) {
	return h.note("complete by %d of %s", a.By.UID, a.User)
}

func (h *house) Refresh(_ context.Context, a standing.Refresh) (change.Row, error) {
	return h.note("refresh %s %q %s by %d at %s of %s", a.Name, a.Keep, a.Approve, a.By.UID, a.Account, a.User)
}

func (h *house) Upgrade(_ context.Context, a standing.Upgrade) (change.Row, error) {
	return h.note("upgrade from %s %s by %d at %s in %s", a.From, a.Approve, a.By.UID, a.Account, a.Group)
}

func (h *house) Promote(_ context.Context, a standing.Asked, of id.Change) (change.Row, error) {
	return h.note("promote %s by %d", of, a.By.UID)
}

// What is asked of groups arrives as it was asked. A folder or a word that is none reaches nobody, and what the home refuses is no answer.
func TestWhatIsAskedOfGroupsArrivesOrIsRefused(t *testing.T) {
	ctx, by := t.Context(), audit.Actor{UID: 1001}
	for name, row := range map[string]struct {
		do    func(n groups, folder, approve string) (api.Begun, error)
		does  string
		waits bool // it takes the word of when it is approved
		as    bool // it is for a user's folder
	}{
		"list": {func(n groups, folder, _ string) (api.Begun, error) {
			out, err := n.list(ctx, by, api.OfUser{User: folder})
			if err == nil && (len(out.Groups) != 1 || out.Odd[0] != `odd\xff`) {
				t.Errorf("listed are %+v", out)
			}
			return api.Begun{}, err
		}, "list /home/ann", false, true},
		"show": {func(n groups, folder, _ string) (api.Begun, error) {
			_, err := n.show(ctx, by, api.OfGroup{Group: "ada", User: folder})
			return api.Begun{}, err
		}, "show ada /home/ann", false, true},
		"create": {func(n groups, folder, _ string) (api.Begun, error) {
			return n.create(ctx, by, api.NewGroup{Name: "ada", Agent: "echo", User: folder})
		}, "create ada echo by 1001 of /home/ann", false, true},
		"commit": {func(n groups, folder, _ string) (api.Begun, error) {
			return n.commit(ctx, by, api.CommitGroup{Group: "ada", Message: "m", User: folder})
		}, `commit ada "m" by 1001 of /home/ann`, false, true},
		"complete": {func(n groups, folder, _ string) (api.Begun, error) {
			return n.complete(ctx, by, api.CompleteHome{User: folder})
		}, "complete by 1001 of /home/ann", false, true},
		"refresh": {func(n groups, folder, approve string) (api.Begun, error) {
			return n.refresh(ctx, by, api.RefreshGroup{Group: "ada", Keep: []string{"a"}, Approve: approve, User: folder})
		}, `refresh ada ["a"] later by 1001 at 1001 of /home/ann`, true, true},
		"upgrade": {func(n groups, folder, approve string) (api.Begun, error) {
			return n.upgrade(ctx, by, api.UpgradeHome{From: folder, Group: "ada", Approve: approve})
		}, "upgrade from /home/ann later by 1001 at 1001 in ada", true, false},
		"promote": {func(n groups, _, _ string) (api.Begun, error) {
			return n.promote(ctx, by, "chg-00000009")
		}, "promote chg-00000009 by 1001", false, false},
	} {
		begins := name != "list" && name != "show"
		h := &house{row: change.Row{ID: "chg-00000001"}}
		out, err := row.do(groups{h}, "/home/ann", "later")
		if err != nil || !slices.Equal(h.calls, []string{row.does}) || begins != (out.Change != nil) || begins && out.Change.ID != "chg-00000001" {
			t.Errorf("%s: %+v, %v, does %q", name, out, err, h.calls)
		}
		if h = (&house{}); begins { // nothing is to be done
			if out, err := row.do(groups{h}, "/home/ann", "later"); err != nil || out.Change != nil {
				t.Errorf("%s, which has nothing to do: %+v, %v", name, out, err)
			}
		}
		h = &house{err: errRefused}
		if out, err := row.do(groups{h}, "/home/ann", "later"); problem.KindOf(err) != problem.Refused || out.Change != nil {
			t.Errorf("%s, which is refused: %+v, %v", name, out, err)
		}
		for folder, approve := range map[string]string{"home/ann": "later", "/home/\x00": "later", "/home/ann": "maybe"} {
			if bad := (row.as || name == "upgrade") && approve == "later" || row.waits && approve == "maybe"; !bad {
				continue
			}
			h = &house{}
			if _, err := row.do(groups{h}, folder, approve); problem.KindOf(err) != problem.Usage || len(h.calls) > 0 {
				t.Errorf("%s of %q, %s: %v, does %q", name, folder, approve, err, h.calls)
			}
		}
		h = &house{}
		if row.as {
			if _, err := row.do(groups{h}, "", "later"); err != nil || len(h.calls) != 1 {
				t.Errorf("%s of no user's folder: %v", name, err)
			}
		}
	}
}

// Folders about which a person has to speak first are an answer, and no problem.
func TestFoldersThatNobodySpokeAboutAreAnswered(t *testing.T) {
	unsaid := &standing.UnsaidError{Folders: []live.Mounted{{Wish: mounts.Wish{Path: "/data", Name: "data", Write: true}, Grant: mounts.Grant{Refused: "not yet said"}}}}
	out, err := groups{&house{err: fmt.Errorf("create: %w", unsaid)}}.create(t.Context(), audit.Actor{}, api.NewGroup{Name: "ada"})
	if err != nil || out.Change != nil || len(out.Folders) != 1 || out.Folders[0].Path != "/data" || out.Folders[0].Problem != "not yet said" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestAGroupIsShownWithWhatIsWrongAndWhatIsUnderWay(t *testing.T) {
	h := &house{seen: standing.Seen{
		Folder: "ada", Broken: errRefused, Memory: 7,
		Drift: slices.Repeat([]group.Difference{{Edit: git.Edit{Path: "a\xff"}, Kind: "changed"}}, filesShown+1),
		Edits: slices.Repeat([]group.HandEdit{{Difference: group.Difference{Edit: git.Edit{Path: "groups/ada/b"}}, Why: "no"}}, filesShown+2),
		Swap:  &standing.Swap{Row: change.Row{ID: "chg-00000001", State: change.InTrial}, Trial: &trial.Trial{Landing: "lnd-00000001"}},
	}}
	g, err := groups{h}.show(t.Context(), audit.Actor{}, api.OfGroup{Group: "ada"})
	if err != nil || g.Problem != problem.Of(errRefused).Text || g.Memory == nil || *g.Memory != 7 {
		t.Errorf("%+v, %v", g, err)
	}
	if g.Swap == nil || g.Swap.ID != "chg-00000001" || g.Swap.Trial == nil || g.Swap.Trial.Landing != "lnd-00000001" {
		t.Errorf("under way: %+v", g.Swap)
	}
	if len(g.Drift) != filesShown || g.DriftTotal != filesShown+1 || g.Drift[0].Path != `a\xff` || len(g.Edits) != filesShown || g.EditsTotal != filesShown+2 || g.Edits[0].Path != "b" {
		t.Errorf("%d of %d differ, %d of %d are edited", len(g.Drift), g.DriftTotal, len(g.Edits), g.EditsTotal)
	}
	h.seen = standing.Seen{Folder: "ada", Drift: make([]group.Difference, 1)}
	if g, err := (groups{h}).show(t.Context(), audit.Actor{}, api.OfGroup{Group: "ada"}); err != nil || g.Problem != "" || g.Swap != nil || len(g.Drift) != 1 {
		t.Errorf("a group at rest: %+v, %v", g, err)
	}
}

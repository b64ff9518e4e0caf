package accept_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/request"
)

// What a request is refused with because of the repository is said of it without one, in the same words, and nothing is written.
func TestARepositoryIsExaminedAsARequestThereWouldBe(t *testing.T) {
	for name, test := range map[string]struct {
		before func(h *drivetest.Home)
		says   string   // of what is refused; "" = changes can be made
		ignore []string // what does not count
	}{
		"as it should be":      {func(*drivetest.Home) {}, "", nil},
		"a merge is under way": {func(h *drivetest.Home) { h.Git("update-ref", "MERGE_HEAD", "HEAD") }, "a merge is under way", nil},
		"no branch":            {func(h *drivetest.Home) { h.Git("switch", "-q", "--detach") }, "no branch is checked out", nil},
		"no commit":            {func(h *drivetest.Home) { h.Git("switch", "-q", "--orphan", "new") }, "no commit", nil},
		"what cannot be told":  {func(h *drivetest.Home) { h.Git("config", "core.attributesFile", "mine") }, "core.attributesFile", nil},
		"links as plain files": {func(h *drivetest.Home) { h.Git("config", "core.symlinks", "false") }, "keeps symbolic links as plain files", nil},
		"a split index":        {func(h *drivetest.Home) { h.Git("update-index", "--split-index") }, "is split", nil},
		"rules that do not load": {func(h *drivetest.Home) {
			h.Parts.Rules = unread{why: problem.Errorf(problem.Usage, "cat .sallyport.yaml", "line 1 is no rule")}
		}, "line 1 is no rule", nil},
		"loosened secret rules": {func(h *drivetest.Home) {
			h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{SecretNote: "allowlists do not count"}}
		}, "", []string{"allowlists do not count"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := drivetest.NewHome(t)
			test.before(h)
			c := control.New(h.Parts) // it does not run: nothing is worked on
			before := h.Everything()

			x, err := c.Examine(gittest.Context(t), h.Repo)
			if after := h.Everything(); !slices.Equal(after, before) {
				t.Errorf("it wrote: %q, before %q", after, before)
			}
			_, asked := c.TakeRequest(gittest.Context(t), request.Request{By: h.By(), Text: "x", Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
			if (err == nil) != (test.says == "") || (asked == nil) != (test.says == "") {
				t.Fatalf("examined: %v; asked: %v", err, asked)
			}
			if err != nil {
				if one, other := problem.Of(err), problem.Of(asked); one.Kind != other.Kind || one.Text != other.Text || one.Next != other.Next || !strings.Contains(one.Text, test.says) {
					t.Errorf("examined: %+v\nasked: %+v", one, other)
				}
				return
			}
			if x.Top != h.Repo || x.Branch != "main" || !slices.Equal(x.Ignored, test.ignore) {
				t.Errorf("got %+v", x)
			}
		})
	}
}

// unread are rules that cannot be read.
type unread struct {
	drivetest.Rules
	why error
}

func (u unread) At(context.Context, git.Project, git.Dir, git.OID) (grounds.Judging, error) {
	return grounds.Judging{}, u.why
}

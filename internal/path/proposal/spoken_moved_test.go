package proposal_test

import (
	"strings"
	"testing"

	"sallyport/internal/path/proposal"
)

func TestACardInAConversationSaysByWhatTheBranchHasMoved(t *testing.T) {
	for name, s := range map[string]struct {
		moved *proposal.Moved
		want  []string
	}{
		"one commit":  {&proposal.Moved{Commits: 1, Paths: []string{"a"}, PathsTotal: 1}, []string{"main has moved by 1 commit since the change began", "  ! what differs there now: a"}},
		"more of all": {&proposal.Moved{Commits: 9, Paths: []string{"a", "b\nMay chg-k3v9m2qp land?"}, PathsTotal: 7}, []string{"main has moved by 9 commits since the change began", `  ! what differs there now: a, $'b\nMay chg-k3v9m2qp land?', and 5 more`}},
		"rewritten":   {&proposal.Moved{Rewritten: true}, []string{"main has moved by 0 commits since the change began", "  ! it was rewritten: the commit that the change started from is not on it any more"}},
		"it stands":   {nil, nil},
	} {
		about, _, _ := ofGroup(func(c *proposal.Card) { c.Moved = s.moved }).Tell("echo")
		plain, _, _ := ofGroup().Tell("echo")
		var got []string
		for line := range strings.SplitSeq(about, "\n") {
			if !strings.Contains("\n"+plain+"\n", "\n"+line+"\n") {
				got = append(got, line)
			}
		}
		if strings.Join(got, "\n") != strings.Join(s.want, "\n") {
			t.Errorf("%s: it says\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(s.want, "\n"))
		}
	}
}

package submit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// What stands above all else on the card of a swap; the words are SM-083's, SM-085's and SM-086's.
const (
	hostBanner     = "Host-level changes run with full credential scope and can access data across all groups. Review carefully."
	lossyBanner    = "rollback may be lossy if migration is non-reversible"
	combinedBanner = "This change modifies host code and per-group runner/skills code. Host changes will apply to every group on next restart. " +
		"Runner/skills changes will only apply to the originating group. Other existing groups will continue running their old runner against the new host — " +
		"this can break them if the host change requires a matching runner update. If that happens, you can run another dev-agent cycle from each affected " +
		"group to refresh them."
)

// offerSwap finds what the agent of a swap has proposed. It is judged by the paths that the agent worked on; what is offered is the same
// edits where they belong in the home, upon the commit that the request was made on. So the digest, drift and the landing know only those.
func (s *Submissions) offerSwap(ctx context.Context, row change.Row, o *grounds.Offer) error {
	switch {
	case row.Request.Release != "":
		return s.weigh(ctx, row, group.Mapping{Head: o.Base, Commit: o.Base, Class: right.Host}, o)
	case row.Request.Refresh:
		if err := s.offerDrafted(ctx, row, o); err != nil {
			return err
		}
		return s.weigh(ctx, row, group.Mapping{Head: o.Base, Commit: o.Commit, Class: right.Group}, o)
	}
	if err := s.offerCheckpoint(ctx, row, o); err != nil {
		return err
	}
	m, err := s.Standing.Map(ctx, row, o.Commit)
	if err != nil {
		return err
	}
	o.LastWord = inItsWords(*row.Swap)
	return s.weigh(ctx, row, m, o)
}

// weigh says on a card what a change of a group reaches, and how a yes to it is given.
func (s *Submissions) weigh(ctx context.Context, row change.Row, m group.Mapping, o *grounds.Offer) error {
	o.Base, o.Commit, o.Class = m.Head, m.Commit, string(m.Class)
	err := s.DB.Read(ctx, func(tx store.Tx) error {
		need, err := s.Answers.Need(ctx, tx, row.Request, m.Class)
		o.Typed, o.Think = need.Typed, need.Think
		if need.Yeses > 1 {
			o.People = need.Yeses
		}
		return err
	})
	if err != nil {
		return err
	}
	if m.Class != right.Group {
		o.Banner = append(o.Banner, hostBanner)
	}
	if m.Class == right.Combined {
		o.Banner = append(o.Banner, combinedBanner)
	}
	if m.Lossy {
		o.Banner = append(o.Banner, lossyBanner)
	}

	effect, err := group.Compare(ctx, o.Host, group.Folder(row.Request.Group), m.Head, m.Commit, reach)
	if err != nil {
		return err
	}
	for _, line := range effect.Lines {
		o.Reach = append(o.Reach, line.String())
	}
	if effect.More > 0 {
		o.Reach = append(o.Reach, fmt.Sprintf("and %d more, which the diff shows", effect.More))
	}
	if m.Others {
		o.Reach = append(o.Reach, "touching another group's data")
	}
	return nil
}

// inItsWords is what a dev agent says of its change: of the whole, and of each file, as far as a card has room. Of the whole is said in the
// commit, too, so it is what stays.
func inItsWords(said change.Swap) string {
	lines := []string{said.Summary}
	for _, path := range slices.Sorted(maps.Keys(said.Files)) {
		lines = append(lines, path+": "+said.Files[path])
	}
	return proposal.Beginning(strings.Join(lines, "\n"))
}

// tried is how often in a row an agent has proposed what checks refuse: since a person wanted something else in it, or from the beginning.
func (s *Submissions) tried(ctx context.Context, tx store.Tx, p proposal.Proposal) (int, error) {
	last, err := tx.LatestApproval(ctx, p.Change)
	if problem.KindOf(err) == problem.NotFound {
		return p.Number, nil
	}
	if last.Decision != approval.Reworked {
		last.Proposal = 0
	}
	return p.Number - last.Proposal, err
}

// reach is what an agent of a group gets of the outside by what the home says of it.
func reach(name string, of config.Agent) (hosts, keys []string) {
	k, err := agent.Lookup(name)
	if err != nil {
		return nil, nil
	}
	s := agent.Settings{Base: string(of.Base), Wire: agent.Wire(of.Wire), Login: credential.Reference(of.Key) == credential.Login}
	return k.Reach(s, of.Key != "")
}

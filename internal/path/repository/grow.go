package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// historyDefault is how many commits are copied with a base, the newest first; older history is cut.
const historyDefault = 10_000

// nearMax is how far back a base that is held is looked for before history is read as a whole.
const nearMax = 64

// anchors are how many commits before a base, each a first parent, are held beside the first base of a line of history: one that
// is amended or rebased shares them, so that it is no new line.
var anchors = []int{50, 1}

// copying says from where what commits reach is copied into the host's repository.
type copying struct {
	host   git.Dir
	source git.Dir // the project's, as its owner; or the host's own
	depth  int     // commits at most
}

// past is a piece of history, newest first.
type past struct {
	order   []git.OID
	parents map[git.OID][]git.OID
}

// upTo is what of a piece of history comes after one of its commits; false if that cannot be told from it alone, because history
// forks on the way.
func (p past) upTo(commit git.OID) (past, bool) {
	for i, c := range p.order {
		if c == commit {
			return past{order: p.order[:i], parents: pick(p.parents, p.order[:i])}, i > 0
		}
		if i+1 == len(p.order) || len(p.parents[c]) != 1 || p.parents[c][0] != p.order[i+1] {
			break
		}
	}
	return past{}, false
}

// pick returns the parents of some commits alone.
func pick(parents map[git.OID][]git.OID, of []git.OID) map[git.OID][]git.OID {
	some := make(map[git.OID][]git.OID, len(of))
	for _, c := range of {
		some[c] = parents[c]
	}
	return some
}

// grow adds a commit with what it reaches: upon the nearest of its ancestors that is held, or as a whole.
func (r *Store) grow(ctx context.Context, g copying, commit git.OID) error {
	before, err := g.walk(ctx, commit, min(nearMax, g.depth))
	if err != nil {
		return err
	}
	near := nearest(g.host, before.order[1:])
	if near == "" && len(before.order) == nearMax {
		if before, err = g.walk(ctx, commit, g.depth); err != nil {
			return err
		}
		near = nearest(g.host, before.order[1:])
	}
	if near == "" {
		for _, back := range anchors {
			at := before.back(commit, back)
			if at == "" {
				continue
			}
			if err := r.add(ctx, g, past{}, at, near); err != nil {
				return err
			}
			near = at
		}
	}
	return r.add(ctx, g, before, commit, near)
}

// nearest is the first of some commits, newest first, that is held.
func nearest(host git.Dir, commits []git.OID) git.OID {
	for _, c := range commits {
		if whole.Exists(view(host, c)) {
			return c
		}
	}
	return ""
}

// walk reads so many commits of the history of one, without what the commits of not reach.
func (g copying) walk(ctx context.Context, commit git.OID, most int, not ...git.OID) (past, error) {
	args := []string{"rev-list", "--parents", fmt.Sprintf("--max-count=%d", most), string(commit)}
	for _, n := range not {
		args = append(args, "^"+string(n))
	}
	out, err := g.source.Run(ctx, git.Cmd{Args: args})
	if err != nil {
		return past{}, fmt.Errorf("read the history of %.12s: %w", commit, err)
	}
	p := past{parents: map[git.OID][]git.OID{}}
	for line := range bytes.Lines(out) {
		var oids []git.OID
		for _, field := range bytes.Fields(line) {
			oids = append(oids, git.OID(field))
		}
		p.order = append(p.order, oids[0])
		p.parents[oids[0]] = oids[1:]
	}
	if len(p.order) == 0 {
		return p, fmt.Errorf("%.12s has no history", commit)
	}
	return p, nil
}

// back is the commit so many first parents before another; "" if history does not go so far.
func (p past) back(commit git.OID, steps int) git.OID {
	for range steps {
		parents := p.parents[commit]
		if len(parents) == 0 {
			return ""
		}
		commit = parents[0]
	}
	if _, known := p.parents[commit]; !known {
		return ""
	}
	return commit
}

// add copies what a commit reaches beyond one that is held; near "" copies the whole. What is known of its history is before.
func (r *Store) add(ctx context.Context, g copying, before past, commit, near git.OID) error {
	if whole.Exists(view(g.host, commit)) {
		return nil
	}
	all, err := stagesOf(g.host, near)
	if err != nil {
		return err
	}
	stages, err := lasting(g.host, near, all)
	if err != nil {
		return err
	}
	over := git.OID("")
	if len(stages) > 0 {
		over = stages[len(stages)-1].commit
	}
	more, err := g.since(ctx, before, commit, over)
	if err != nil {
		return err
	}
	if over != "" && len(more.order) >= g.depth { // more is new than is ever copied
		return r.add(ctx, g, before, commit, "")
	}
	var not, cut []git.OID
	held := func(git.OID) (bool, error) { return false, nil }
	if over != "" {
		not = []git.OID{over}
		if cut, held, err = r.within(ctx, g.host, near, over); err != nil {
			return err
		}
	}
	ends, err := g.ends(more, held)
	if err != nil {
		return err
	}
	cut = append(cut, ends...)
	pack, err := r.pack(ctx, g, commit, not, cut)
	if err != nil {
		return err
	}
	if err := r.reveal(ctx, g.host, sight{base: commit, near: near, stages: stages, pack: pack, cut: cut}); err != nil || over == "" {
		return err
	}
	return r.supersede(g.host, all[len(stages):])
}

// since reads the history of a commit without what another reaches, from what is known of it where that is enough.
func (g copying) since(ctx context.Context, before past, commit, over git.OID) (past, error) {
	if over == "" {
		return g.walk(ctx, commit, g.depth)
	}
	if more, told := before.upTo(over); told {
		return more, nil
	}
	return g.walk(ctx, commit, g.depth, over)
}

// within returns where the history of a held commit ends, and what tells whether a commit is part of it up to one of its stages.
func (r *Store) within(ctx context.Context, host git.Dir, near, over git.OID) (cut []git.OID, held func(git.OID) (bool, error), err error) {
	shallow, err := ViewShallow(host, near)
	if err != nil {
		return nil, nil, err
	}
	if len(shallow) == 0 { // all that it reaches
		return nil, func(git.OID) (bool, error) { return true, nil }, nil
	}
	for _, line := range strings.Fields(string(shallow)) {
		cut = append(cut, git.OID(line))
	}
	all := sync.OnceValues(func() (map[git.OID]bool, error) {
		out, err := r.basesIn(host).Run(ctx, git.Cmd{Args: []string{"rev-list", string(over)},
			Env: []string{"GIT_SHALLOW_FILE=" + filepath.Join(view(host, near), "shallow")}})
		if err != nil {
			return nil, fmt.Errorf("read what is held of %.12s: %w", over, err)
		}
		held := map[git.OID]bool{}
		for line := range strings.Lines(string(out)) {
			held[git.OID(strings.TrimSpace(line))] = true
		}
		return held, nil
	})
	return cut, func(c git.OID) (bool, error) {
		if c == over {
			return true, nil
		}
		known, err := all()
		return known[c], err
	}, nil
}

// ends are the commits where what is copied ends: a parent is neither copied now nor held, or the source does not have it.
// A merge of which one side goes on keeps its other sides too: git can only cut all of its parents, so each missing one is
// copied as well, and history ends there.
func (g copying) ends(p past, held func(git.OID) (bool, error)) (ends []git.OID, err error) {
	shallow, err := ReadPlain(filepath.Join(g.source.Path, "shallow"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(shallow)) {
		c := git.OID(strings.TrimSpace(line))
		if _, copied := p.parents[c]; copied {
			ends = append(ends, c)
		}
	}

	for _, c := range p.order {
		parents := p.parents[c]
		var missing []git.OID
		for _, parent := range parents {
			if _, copied := p.parents[parent]; copied {
				continue
			}
			there, err := held(parent)
			if err != nil {
				return nil, err
			}
			if !there {
				missing = append(missing, parent)
			}
		}
		switch {
		case len(missing) == 0:
		case len(missing) < len(parents) && g.depth > 1: // of a partial clone only the base is copied
			ends = append(ends, missing...)
		default:
			ends = append(ends, c)
		}
	}
	return ends, nil
}

// pack copies what a commit reaches, beyond what the commits of not reach and as if history ended at the commits of cut, as one pack.
func (r *Store) pack(ctx context.Context, g copying, commit git.OID, not, cut []git.OID) (string, error) {
	var list strings.Builder
	for _, c := range cut {
		list.WriteString("--shallow " + string(c) + "\n")
	}
	list.WriteString(string(commit) + "\n")
	for _, c := range not {
		list.WriteString("^" + string(c) + "\n")
	}
	pack, err := r.basesIn(g.host).Take(ctx, "bases:pack", g.source, list.String())
	if err != nil {
		if failed := (*git.Failure)(nil); errors.As(err, &failed) && problem.KindOf(err) == problem.Internal { // an object is missing, or broken
			err = problem.Errorf(problem.Refused, g.source.Command("fsck --connectivity-only"), "%w", err)
		}
		return "", err
	}
	return pack, nil
}

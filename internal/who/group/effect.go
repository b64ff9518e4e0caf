package group

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
)

// Turn is which way an effect goes.
type Turn string

const (
	Gained  Turn = "gained"
	Lost    Turn = "lost"
	Altered Turn = "altered"
)

// EffectLine is one thing that a group, or the home, has otherwise after a change. All of its text is harmless to show, and short.
type EffectLine struct {
	Whose  string `json:"whose"` // "the home", or "the group NAME"
	Turn   Turn   `json:"turn"`
	What   string `json:"what"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`

	minor bool // a skill, or a file that is neither run nor told
}

// String is a line for a card.
func (l EffectLine) String() string {
	s := l.Whose + map[Turn]string{Gained: " gains ", Lost: " loses ", Altered: " changes "}[l.Turn] + l.What
	if l.Before != "" || l.After != "" {
		s += ": " + l.Before + " → " + l.After
	}
	return s
}

// Effect is what a change comes to, from the two trees and from nobody's words (SM-908).
type Effect struct {
	Lines  []EffectLine `json:"lines"`            // the weightiest first
	More   int          `json:"more,omitempty"`   // lines that are left out: no gain but a skill
	Broken string       `json:"broken,omitempty"` // why the group could not run with it
}

// home is whose all is that is no group's own.
const home = "the home"

const (
	effectMax     = 100 // lines
	effectTextMax = 120 // bytes of a name or a value
)

// Compare tells what a change of the home comes to for a group: what its agent gains and loses, what it is told, and what of others it
// touches; reach says what an agent gets of the outside. That the rules change is policy.Reach's to tell, of every change. Before and after
// are commits or trees of the home. A group that cannot run after the change is told as broken, and is no error here: Check refuses it.
func Compare(ctx context.Context, host git.Dir, folder Folder, before, after git.OID, reach Reach) (Effect, error) {
	c := comparison{host: host, folder: folder, reach: reach}
	was, err := settingsOf(ctx, host, before)
	if err != nil {
		return Effect{}, err
	}
	is, err := settingsOf(ctx, host, after)
	if err != nil {
		return Effect{}, err
	}
	old, err := sideOf(ctx, host, folder, before, was)
	if err != nil {
		return Effect{}, err
	}
	now, err := sideOf(ctx, host, folder, after, is)
	if err != nil {
		return Effect{}, err
	}

	c.group(old, now)
	c.settings(was, is)
	if err := c.others(ctx, version{before, was}, version{after, is}); err != nil {
		return Effect{}, err
	}
	e := Effect{Lines: c.lines, Broken: now.broken}
	e.cut()
	return e, nil
}

// cut leaves out what is too much: skills and other files first, and then losses. What the group gains otherwise is all told, so that no
// number of other lines keeps it from who decides; a runner.yaml has only so much.
func (e *Effect) cut() {
	if len(e.Lines) <= effectMax {
		return
	}
	slices.SortStableFunc(e.Lines, func(a, b EffectLine) int { return a.weight() - b.weight() })
	keep := len(e.Lines)
	for keep > effectMax && e.Lines[keep-1].weight() > 0 {
		keep--
	}
	e.Lines, e.More = e.Lines[:keep], len(e.Lines)-keep
}

// weight says what is told first where not all can be: less is more.
func (l EffectLine) weight() int {
	switch {
	case l.minor:
		return 2
	case l.Turn == Lost:
		return 1
	}
	return 0
}

// side is a group as one tree has it.
type side struct {
	there  bool
	files  map[string]git.Entry
	runner config.Runner
	broken string // why it cannot run; the runner is not known then
	settings
}

func sideOf(ctx context.Context, host git.Dir, folder Folder, treeish git.OID, says settings) (side, error) {
	s := side{broken: "the group is not there", settings: says}
	tree, err := FindTree(ctx, host, treeish, folder)
	if problem.KindOf(err) == problem.NotFound {
		return s, nil
	}
	if err != nil {
		return side{}, err
	}
	s.there, s.broken = true, ""
	if s.files, err = list(ctx, host, folder, tree); err != nil {
		return side{}, err
	}
	g, err := Read(ctx, host, folder, tree)
	if problem.KindOf(err) == problem.Refused {
		s.broken = inert.Short(problem.Of(err).Text, 4*effectTextMax)
		return s, nil
	}
	s.runner = g.Runner
	return s, err
}

// comparison is a Compare under way.
type comparison struct {
	host   git.Dir
	folder Folder
	reach  Reach
	lines  []EffectLine
}

// add tells something of the group.
func (c *comparison) add(turn Turn, what, before, after string) {
	c.lines = append(c.lines, EffectLine{
		Whose: "the group " + string(c.folder), Turn: turn,
		What: inert.Short(what, effectTextMax), Before: inert.Short(before, effectTextMax), After: inert.Short(after, effectTextMax),
	})
}

// home tells something that is no group's own.
func (c *comparison) home(turn Turn, what, before, after string) {
	c.lines = append(c.lines, EffectLine{
		Whose: home, Turn: turn, What: inert.Short(what, effectTextMax), Before: inert.Short(before, effectTextMax), After: inert.Short(after, effectTextMax),
	})
}

// group tells what a group has otherwise.
func (c *comparison) group(old, now side) {
	c.runs(old, now)
	c.files(old.files, now.files)
}

// runs tells how the agent runs otherwise. A group that comes or goes takes all that it has with it.
func (c *comparison) runs(old, now side) {
	switch {
	case !old.there && !now.there:
	case !old.there:
		c.home(Gained, now.named(c.folder), "", "")
		c.mounts(nil, now.runner.Wishes())
		c.reaches(old, now)
	case !now.there:
		c.home(Lost, old.named(c.folder), "", "")
		c.mounts(old.runner.Wishes(), nil)
		c.reaches(old, now)
	case old.broken == "" && now.broken == "":
		c.runner(old.runner, now.runner)
		c.reaches(old, now)
	case old.files[runnerFile] != now.files[runnerFile]:
		c.add(Altered, "how its agent runs, in a way that cannot be told: "+runnerFile+" cannot be read on both sides", "", "")
	}
}

// named is a group that comes or goes.
func (s side) named(folder Folder) string {
	if s.broken != "" {
		return "the group " + string(folder)
	}
	return fmt.Sprintf("the group %s, whose agent is %s", folder, s.runner.Agent)
}

// files tells which files of a group are others: hooks, what the agent is told, skills, and the rest by folder.
func (c *comparison) files(old, now map[string]git.Entry) {
	parts := map[string]*part{}
	for p := range maps.Keys(old) {
		partIn(parts, p).count(old[p], now[p])
	}
	for p := range maps.Keys(now) {
		if _, both := old[p]; !both {
			partIn(parts, p).count(git.Entry{}, now[p])
		}
	}
	for _, weight := range []int{hookPart, toldPart, skillPart, restPart} {
		for _, what := range slices.Sorted(maps.Keys(parts)) {
			if p := parts[what]; p.weight == weight && p.differs > 0 {
				c.add(p.turn(), what, "", "")
				c.lines[len(c.lines)-1].minor = weight >= skillPart
			}
		}
	}
}

// part is what of a group is told in one line.
type part struct {
	weight                 int
	before, after, differs int // files
}

// Parts in the order in which they are told.
const (
	hookPart = iota
	toldPart
	skillPart
	restPart
)

// partIn finds the part of a group that a file belongs to, by its whole name; runner.yaml is told by its keys.
func partIn(all map[string]*part, p string) *part {
	in, name := path.Split(p)
	what, weight := "other files", restPart
	switch {
	case p == runnerFile:
		what, weight = "", -1
	case in == hooksFolder+"/" && slices.Contains(Hooks, name):
		what, weight = "the hook "+name+", a program that runs in its sandbox", hookPart
	case p == instructionsFile:
		what, weight = "what its agent is told in "+name, toldPart
	case in == promptsFolder+"/":
		what, weight = "what its agent is told in prompts/"+name, toldPart
	case strings.HasPrefix(p, skillsFolder+"/"):
		skill, _, below := strings.Cut(p[len(skillsFolder)+1:], "/")
		what, weight = "files beside the skills", restPart
		if below {
			what, weight = "the skill "+skill, skillPart
		}
	case strings.HasPrefix(p, runnerFolder+"/"):
		what = "other files of the runner, which hooks may use"
	}
	if all[what] == nil {
		all[what] = &part{weight: weight}
	}
	return all[what]
}

func (p *part) count(old, now git.Entry) {
	if !old.Absent() {
		p.before++
	}
	if !now.Absent() {
		p.after++
	}
	if old != now {
		p.differs++
	}
}

func (p *part) turn() Turn {
	switch {
	case p.before == 0:
		return Gained
	case p.after == 0:
		return Lost
	}
	return Altered
}

// Check refuses what is offered if a group that it touches could not run afterwards, with the place of what is wrong: its own group, and
// any other that stays. Errors: problem.Refused, for a runner.yaml with line and key.
func Check(ctx context.Context, host git.Dir, folder Folder, m Mapping) error {
	for _, f := range m.touched() {
		tree, err := FindTree(ctx, host, m.Commit, f)
		switch {
		case problem.KindOf(err) == problem.NotFound && f != folder:
			continue // it goes, and the card says so
		case problem.KindOf(err) == problem.NotFound:
			return folder.refuse("", "the change would remove it")
		case err == nil:
			_, err = Read(ctx, host, f, tree)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// touched are the groups that a mapping has files of, in order.
func (m Mapping) touched() (all []Folder) {
	for _, e := range m.Edits {
		parts := strings.SplitN(e.Path, "/", 3)
		if parts[0] != groupsFolder || len(parts) < 2 {
			continue
		}
		if f, err := ParseFolder(parts[1]); err == nil && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	slices.Sort(all)
	return all
}

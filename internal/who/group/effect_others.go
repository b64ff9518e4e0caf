package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// version is a tree of the home, and what its settings say.
type version struct {
	tree git.OID
	says settings
}

// others tells what of a change reaches beyond the group: what other groups gain and lose, by their own files or by the home's settings, and
// what new ones begin with.
func (c *comparison) others(ctx context.Context, before, after version) error {
	old, err := c.host.Names(ctx, before.tree, groupsFolder)
	if err != nil {
		return fmt.Errorf("list the groups at %.12s: %w", before.tree, err)
	}
	now, err := c.host.Names(ctx, after.tree, groupsFolder)
	if err != nil {
		return fmt.Errorf("list the groups at %.12s: %w", after.tree, err)
	}
	names := maps.Clone(old)
	maps.Copy(names, now)
	var all shares
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name == string(c.folder) {
			continue
		}
		p := part{}
		p.count(old[name], now[name])
		folder, err := ParseFolder(name)
		if p.differs > 0 && (p.turn() == Altered || err != nil) {
			c.home(p.turn(), "files of another group: "+inert.Path(groupsFolder+"/"+name), "", "")
		}
		if err != nil || p.differs == 0 && before.says.said == after.says.said {
			continue
		}
		lines, err := c.other(ctx, folder, before, after, p.differs > 0)
		if err != nil {
			return err
		}
		all.add(name, lines)
	}
	c.lines = append(c.lines, all.lines()...)
	return c.begins(ctx, before, after)
}

// other tells what another group has otherwise.
func (c *comparison) other(ctx context.Context, folder Folder, before, after version, differs bool) ([]EffectLine, error) {
	its := comparison{host: c.host, folder: folder, reach: c.reach}
	old, err := sideOf(ctx, c.host, folder, before.tree, before.says)
	if err != nil {
		return nil, err
	}
	now := old
	now.settings = after.says
	if differs {
		if now, err = sideOf(ctx, c.host, folder, after.tree, after.says); err != nil {
			return nil, err
		}
	}
	its.group(old, now)
	return its.lines, nil
}

// begins tells that new groups begin with something else.
func (c *comparison) begins(ctx context.Context, before, after version) error {
	template := []string{templateFolder}
	was, err := c.host.Lookup(ctx, before.tree, template)
	if err != nil {
		return fmt.Errorf("read the template at %.12s: %w", before.tree, err)
	}
	is, err := c.host.Lookup(ctx, after.tree, template)
	if err != nil {
		return fmt.Errorf("read the template at %.12s: %w", after.tree, err)
	}
	if was[0] != is[0] {
		c.home(Altered, "what new groups begin with", "", "")
	}
	return nil
}

// shares are lines about groups; what several of them have alike is one line.
type shares struct {
	of    []EffectLine
	names [][]string // of the groups that each line is about
}

func (s *shares) add(group string, lines []EffectLine) {
	for _, l := range lines {
		one := l
		if one.Whose != home {
			one.Whose = ""
		}
		i := slices.Index(s.of, one)
		if i < 0 {
			i, s.of, s.names = len(s.of), append(s.of, one), append(s.names, nil)
		}
		s.names[i] = append(s.names[i], group)
	}
}

// sharesNamed is how many groups one line names.
const sharesNamed = 20

func (s *shares) lines() []EffectLine {
	for i, names := range s.names {
		switch n := len(names); {
		case s.of[i].Whose == home:
		case n == 1:
			s.of[i].Whose = "the group " + names[0]
		case n > sharesNamed:
			s.of[i].Whose = fmt.Sprintf("each of the groups %s and %d more", strings.Join(names[:sharesNamed], ", "), n-sharesNamed)
		default:
			s.of[i].Whose = "each of the groups " + strings.Join(names[:n-1], ", ") + " and " + names[n-1]
		}
	}
	return s.of
}

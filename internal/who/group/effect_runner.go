package group

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"sallyport/internal/rule/config"
	"sallyport/internal/rule/mount"
)

// runner tells what a runner.yaml says otherwise. A key that has no words here is told as it is written, so that none goes untold.
func (c *comparison) runner(old, now config.Runner) {
	if old.Agent != now.Agent {
		c.add(Altered, "the agent that answers", string(old.Agent), string(now.Agent))
	}
	if old.Model != now.Model {
		c.add(Altered, "the model that it asks", cmp.Or(string(old.Model), "as the home says"), cmp.Or(string(now.Model), "as the home says"))
	}
	for _, tool := range now.ToolsOff {
		if !slices.Contains(old.ToolsOff, tool) {
			c.add(Lost, "the tool "+string(tool), "", "")
		}
	}
	for _, tool := range old.ToolsOff {
		if !slices.Contains(now.ToolsOff, tool) {
			c.add(Gained, "the tool "+string(tool), "", "")
		}
	}
	if old.Agent != now.Agent {
		for _, tool := range now.ToolsOff { // that this agent may have by another name
			if slices.Contains(old.ToolsOff, tool) && !slices.Contains(config.HostTools, tool) {
				c.add(Gained, fmt.Sprintf("what %s called the tool %s, unless %s calls it so, too", old.Agent, tool, now.Agent), "", "")
			}
		}
	}
	c.mounts(old.Wishes(), now.Wishes())
	c.rest(old, now)

	c.limit("tokens an hour", old.Budgets.TokensPerHour, now.Budgets.TokensPerHour, strconv.Itoa)
	c.limit("tokens a day", old.Budgets.TokensPerDay, now.Budgets.TokensPerDay, strconv.Itoa)
	money := func(n int) string { return config.Money(n).String() }
	c.limit("cost an hour", int(old.Budgets.CostPerHour), int(now.Budgets.CostPerHour), money)
	c.limit("cost a day", int(old.Budgets.CostPerDay), int(now.Budgets.CostPerDay), money)
	if old.Rounds != now.Rounds {
		rounds := func(n int) string {
			if n == 0 {
				return "the default"
			}
			return strconv.Itoa(n)
		}
		c.add(Altered, "how often a change of its own files may be tried", rounds(old.Rounds), rounds(now.Rounds))
	}
}

// mounts tells which folders of this machine are asked for otherwise. Whether they are shown, the home's owner says (CH-025).
func (c *comparison) mounts(old, now []mount.Wish) {
	for _, w := range now {
		switch {
		case slices.Contains(old, w):
		case w.Write:
			c.add(Gained, "the right to write, if the home allows it, in /extra/"+w.Name+": "+w.Path, "", "")
		case slices.Contains(old, mount.Wish{Path: w.Path, Name: w.Name, Write: true}):
			c.add(Lost, "the right to write in /extra/"+w.Name+": "+w.Path, "", "")
		default:
			c.add(Gained, "the right to read, if the home allows it, as /extra/"+w.Name+": "+w.Path, "", "")
		}
	}
	for _, w := range old {
		kept := slices.ContainsFunc(now, func(n mount.Wish) bool { return n.Path == w.Path && n.Name == w.Name })
		if !kept {
			c.add(Lost, "the right to read, as /extra/"+w.Name+": "+w.Path, "", "")
		}
	}
}

// limit tells that a limit is another; 0 is none.
func (c *comparison) limit(what string, old, now int, text func(int) string) {
	say := func(n int) string {
		if n == 0 {
			return "no limit"
		}
		return text(n)
	}
	switch {
	case old == now:
		return
	case now == 0, old != 0 && now > old:
		c.add(Gained, "more "+what, say(old), say(now))
	default:
		c.add(Lost, what, say(old), say(now))
	}
}

// told are the keys of a runner.yaml that have words of their own.
var told = []string{"agent", "model", "tools_off", "budgets", "rounds", "mounts"}

// rest tells the keys that have no words here: what came to a list and went from it, or that the value is another.
func (c *comparison) rest(old, now config.Runner) {
	was, is := keysOf(old), keysOf(now)
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if slices.Contains(told, key) || bytes.Equal(was[key], is[key]) {
			continue
		}
		before, listed := elements(was[key])
		after, listedToo := elements(is[key])
		if !listed || !listedToo {
			c.add(Altered, key, cmp.Or(string(was[key]), "not set"), cmp.Or(string(is[key]), "not set"))
			continue
		}
		c.list(key+": %s", before, after)
	}
}

// elements returns the elements of a list as they are written; an absent list has none.
func elements(text json.RawMessage) (all []string, listed bool) {
	if len(text) == 0 {
		return nil, true
	}
	var raw []json.RawMessage
	if json.Unmarshal(text, &raw) != nil {
		return nil, false
	}
	for _, e := range raw {
		all = append(all, string(e))
	}
	return all, true
}

package group

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/config"
)

// Reach says what an agent gets of the outside by what a home says of it: at which hosts its model may be, and in words what opens it there.
type Reach func(agent string, of config.Agent) (hosts, keys []string)

// settings reads the home's own settings as a tree has them.
func (s *side) settings(ctx context.Context, host git.Dir, treeish git.OID) error {
	found, err := host.Lookup(ctx, treeish, []string{config.SallyportFile})
	if err != nil {
		return fmt.Errorf("read the settings at %.12s: %w", treeish, err)
	}
	s.said = found[0].OID
	if s.readable = found[0].Absent(); s.readable {
		return nil
	}
	err = host.Blobs(ctx, []git.OID{found[0].OID}, func(_ git.OID, _ int64, r io.Reader) error {
		data, err := io.ReadAll(io.LimitReader(r, config.FileBytesMax+1))
		if err != nil {
			return err
		}
		parsed, why := config.ParseSallyport(config.SallyportFile, data)
		s.home, s.readable = parsed, why == nil
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the settings at %.12s: %w", treeish, err)
	}
	return nil
}

// reaches tells which hosts and credentials the group's agent gets otherwise.
func (c *comparison) reaches(reach Reach, old, now side) {
	hosts, keys := reach(string(old.runner.Agent), old.home.Agents[config.AgentName(old.runner.Agent)])
	hostsNow, keysNow := reach(string(now.runner.Agent), now.home.Agents[config.AgentName(now.runner.Agent)])
	c.list("the host %s, where its model may be", hosts, hostsNow)
	c.list("a credential that its host adds: %s", keys, keysNow)
}

// list tells what came to a list of the group's and what went from it.
func (c *comparison) list(says string, old, now []string) {
	for _, e := range now {
		if !slices.Contains(old, e) {
			c.add(Gained, fmt.Sprintf(says, e), "", "")
		}
	}
	for _, e := range old {
		if !slices.Contains(now, e) {
			c.add(Lost, fmt.Sprintf(says, e), "", "")
		}
	}
}

// settings tells by key what the home's settings say otherwise: what every agent may reach and be shown entry by entry, and of all else that it
// is another. That they are the rules, policy.Reach tells.
func (c *comparison) settings(old, now side) {
	switch {
	case old.said == now.said:
		return
	case !old.readable || !now.readable:
		c.home(Altered, config.SallyportFile+", in a way that cannot be told: it cannot be read on both sides")
		return
	}
	was, is := keysOf(old.home), keysOf(now.home)
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if string(was[key]) == string(is[key]) {
			continue
		}
		before, listed := elements(was[key])
		after, listedToo := elements(is[key])
		if !listed || !listedToo {
			c.home(Altered, key+" of "+config.SallyportFile)
			continue
		}
		for _, e := range after {
			if !slices.Contains(before, e) {
				c.home(Gained, key+" of "+config.SallyportFile+": "+e)
			}
		}
		for _, e := range before {
			if !slices.Contains(after, e) {
				c.home(Lost, key+" of "+config.SallyportFile+": "+e)
			}
		}
	}
}

// keysOf returns what a file says by key; what it leaves out is not there.
func keysOf(file any) map[string]json.RawMessage {
	keys := map[string]json.RawMessage{}
	if text, err := json.Marshal(file); err == nil { // strings, numbers and lists of them: there is nothing that cannot be written
		_ = json.Unmarshal(text, &keys)
	}
	return keys
}

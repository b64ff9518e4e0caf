package group

import (
	"bytes"
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

// settings are what the home's own file says, as a tree has it.
type settings struct {
	home     config.Sallyport
	said     git.OID // the file
	readable bool
}

func settingsOf(ctx context.Context, host git.Dir, treeish git.OID) (s settings, err error) {
	found, err := host.Lookup(ctx, treeish, []string{config.SallyportFile})
	if err != nil {
		return s, fmt.Errorf("read the settings at %.12s: %w", treeish, err)
	}
	s.said = found[0].OID
	if s.readable = found[0].Absent(); s.readable {
		return s, nil
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
		err = fmt.Errorf("read the settings at %.12s: %w", treeish, err)
	}
	return s, err
}

// agent is what the settings say of a group's agent.
func (s side) agent() config.Agent { return s.home.Agents[config.AgentName(s.runner.Agent)] }

// reaches tells which hosts and credentials the group's agent gets otherwise.
func (c *comparison) reaches(old, now side) {
	hosts, keys := c.reach(string(old.runner.Agent), old.agent())
	hostsNow, keysNow := c.reach(string(now.runner.Agent), now.agent())
	c.list("the host %s, where its model may be", hosts, hostsNow)
	c.list("a credential that its host adds: %s", keys, keysNow)
	if was, is := old.agent().Key, now.agent().Key; was != is && slices.Equal(keys, keysNow) && len(keys) > 0 {
		c.add(Altered, "the credential that its host adds", string(was), string(is))
	}
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

// settings tells what the home's settings say otherwise: each value by its key, and a list entry by entry. That they are the rules,
// policy.Reach tells.
func (c *comparison) settings(old, now settings) {
	switch {
	case old.said == now.said:
		return
	case !old.readable || !now.readable:
		c.home(Altered, config.SallyportFile+", in a way that cannot be told: it cannot be read on both sides", "", "")
		return
	}
	c.keys("", keysOf(old.home), keysOf(now.home))
}

// keys tells what is otherwise below a key.
func (c *comparison) keys(above string, was, is map[string]json.RawMessage) {
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, after, at := was[key], is[key], above+key
		inside, deep := fields(before)
		insideNow, deepNow := fields(after)
		listed, plain := elements(before)
		listedNow, plainNow := elements(after)
		switch {
		case bytes.Equal(before, after):
		case deep && deepNow:
			c.keys(at+".", inside, insideNow)
		case plain && plainNow:
			c.entries(at, listed, listedNow)
		default:
			c.home(Altered, at+" of "+config.SallyportFile, written(before), written(after))
		}
	}
}

// entries tells what came to a list of the settings and what went from it.
func (c *comparison) entries(at string, before, after []string) {
	for _, e := range after {
		if !slices.Contains(before, e) {
			c.home(Gained, at+" of "+config.SallyportFile+": "+e, "", "")
		}
	}
	for _, e := range before {
		if !slices.Contains(after, e) {
			c.home(Lost, at+" of "+config.SallyportFile+": "+e, "", "")
		}
	}
}

// fields are those of an object; one that is not there has none.
func fields(text json.RawMessage) (all map[string]json.RawMessage, object bool) {
	if len(text) == 0 {
		return map[string]json.RawMessage{}, true
	}
	return all, json.Unmarshal(text, &all) == nil && all != nil
}

// written is a value as a person reads it.
func written(text json.RawMessage) string {
	var s string
	switch {
	case len(text) == 0:
		return "not set"
	case json.Unmarshal(text, &s) == nil:
		return s
	}
	return string(text)
}

// keysOf returns what a file says by key; what it leaves out is not there.
func keysOf(file any) map[string]json.RawMessage {
	keys := map[string]json.RawMessage{}
	if text, err := json.Marshal(file); err == nil { // strings, numbers and lists of them: there is nothing that cannot be written
		_ = json.Unmarshal(text, &keys)
	}
	return keys
}

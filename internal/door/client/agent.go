package client

import (
	"context"
	"net/url"
	"time"

	"sallyport/internal/door/api"
)

// agentTime bounds a look at agents, which are started for their version, and the try of one.
const agentTime = 5 * time.Minute

// Wanted says which variables the agent of a new change asks for; agent "" is the repository's own.
func (c *Client) Wanted(ctx context.Context, agent, dir, branch string) (out api.Wanted, err error) {
	q := url.Values{"dir": {dir}}
	if agent != "" {
		q.Set("agent", agent)
	}
	if branch != "" {
		q.Set("branch", branch)
	}
	err = c.call(ctx, get, api.Path("wanted"), q, nil, &out)
	return out, err
}

// WantedBy says it of a change; ref is its id or a session's.
func (c *Client) WantedBy(ctx context.Context, ref string) (out api.Wanted, err error) {
	err = c.call(ctx, get, api.Path("wanted"), url.Values{"of": {ref}}, nil, &out)
	return out, err
}

// GiveKeys hands keys over for an open change.
func (c *Client) GiveKeys(ctx context.Context, change string, keys api.Keys) error {
	return c.call(ctx, post, api.Path("changes", url.PathEscape(change), "keys"), nil, api.GiveKeys{Keys: keys}, nil)
}

// Agents lists the agents that have a name, as they are on this machine.
func (c *Client) Agents(ctx context.Context, at api.Place) (out []api.Agent, err error) {
	q := url.Values{"dir": {at.Dir}, "path": {at.Path}, "home": {at.Home}}
	err = c.surely(ctx, func() error { return c.within(ctx, agentTime, get, api.Path("agents"), q, nil, &out) })
	return out, err
}

// TestAgent tries an agent in a sandbox.
func (c *Client) TestAgent(ctx context.Context, t api.TestAgent) (out api.AgentTest, err error) {
	err = c.within(ctx, agentTime, post, api.Path("agents", "test"), nil, t, &out)
	return out, err
}

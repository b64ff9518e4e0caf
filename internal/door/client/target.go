package client

import (
	"context"
	"net/url"

	"sallyport/internal/door/api"
)

// Target returns how the code of the repository that dir (absolute) lies in is restarted and probed.
func (c *Client) Target(ctx context.Context, dir string) (out api.Target, err error) {
	err = c.call(ctx, get, api.Path("targets"), url.Values{"repo": {dir}}, nil, &out)
	return out, err
}

// TrustTarget lets what the repository proposes count, if digest names exactly these words; said twice it counts once.
func (c *Client) TrustTarget(ctx context.Context, dir, digest string) (out api.Target, err error) {
	err = c.call(ctx, post, api.Path("targets", "trust"), nil, api.TrustTarget{Repo: dir, Digest: digest}, &out)
	return out, err
}

// DistrustTarget takes that back.
func (c *Client) DistrustTarget(ctx context.Context, dir string) error {
	return c.call(ctx, post, api.Path("targets", "distrust"), nil, api.DistrustTarget{Repo: dir}, nil)
}

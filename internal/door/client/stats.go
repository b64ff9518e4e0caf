package client

import (
	"context"
	"io"
	"net/url"

	"sallyport/internal/door/api"
)

// Stats returns what the daemon measured; change "" is the host alone.
func (c *Client) Stats(ctx context.Context, change string) (out api.Stats, err error) {
	q := url.Values{}
	if change != "" {
		q.Set("change", change)
	}
	err = c.call(ctx, get, api.Path("stats"), q, nil, &out)
	return out, err
}

// Metrics writes every figure in Prometheus text form; it answers any version.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	return c.copy(ctx, api.Path("metrics"), nil, w)
}

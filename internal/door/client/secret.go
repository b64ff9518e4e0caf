package client

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"sallyport/internal/door/api"
)

// SecretScan looks for secrets in the files below path (absolute), and in the last so many commits if commits is not 0. It writes
// api.SecretLines as JSON, one a line, as they come.
func (c *Client) SecretScan(ctx context.Context, path string, commits int, w io.Writer) error {
	q := url.Values{"path": {path}}
	if commits > 0 {
		q.Set("history", strconv.Itoa(commits))
	}
	return c.copy(ctx, api.Path("secrets"), q, w)
}

package client

import (
	"context"
	"net/http"
	"time"

	"sallyport/internal/door/api"
)

// gcTime bounds a verb that looks at everything a home has on disk.
const gcTime = time.Hour

// Storage returns what the home has on disk, and what gc would remove.
func (c *Client) Storage(ctx context.Context) (out api.Storage, err error) {
	err = c.within(ctx, gcTime, get, api.Path("storage"), nil, nil, &out)
	return out, err
}

// GC removes what need not be kept, or says what it would.
func (c *Client) GC(ctx context.Context, dry bool) (out api.Storage, err error) {
	err = c.within(ctx, gcTime, http.MethodPost, api.Path("gc"), nil, api.GC{DryRun: dry}, &out)
	return out, err
}

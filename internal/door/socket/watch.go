package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/path/change"
)

// watch sends a change's notices as server-sent events: id, event, data. The last
// event of a stream that ended by itself is `end`; a stream without it was cut.
func (n changes) watch(d *door, w http.ResponseWriter, r *http.Request, of string) {
	// The reader going away ends the controller's side too.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	notices, err := n.part.Watch(ctx, id.Change(of))
	if err != nil {
		d.refuseWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", api.EventsKind)
	w.WriteHeader(http.StatusOK)
	if err := sendEvents(ctx, w, notices); err != nil {
		d.log.Debug("watch ended early", slog.String("change", of), slog.Any("error", err))
	}
}

// sendEvents writes until the channel is closed (then `end` follows), ctx ends or the reader is gone.
func sendEvents(ctx context.Context, w http.ResponseWriter, notices <-chan change.Notice) error {
	control := http.NewResponseController(w)
	send := func(format string, args ...any) error {
		if err := control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return err
		}
		return control.Flush()
	}
	if err := send(": sallyport\n\n"); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeatTime)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			// Whoever only went away does not hear it.
			return errors.Join(context.Cause(ctx), send("event: %s\ndata: {}\n\n", api.NoticeStopped))
		case <-beat.C:
			if err := send(": beat\n\n"); err != nil {
				return err
			}
		case n, open := <-notices:
			if !open {
				if err := ctx.Err(); err != nil { // closed because we are leaving, not because the change came to rest
					return errors.Join(err, send("event: %s\ndata: {}\n\n", api.NoticeStopped))
				}
				return send("event: %s\ndata: {}\n\n", api.NoticeEnd)
			}
			raw, err := json.Marshal(noticeOf(n))
			if err != nil {
				return err
			}
			if err := send("id: %d\nevent: %s\ndata: %s\n\n", n.Seq, n.Kind, raw); err != nil {
				return err
			}
		}
	}
}

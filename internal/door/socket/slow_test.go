package socket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A verb may take longer than a request's body: only the reading of the body is bounded.
func TestAVerbMayTakeLongerThanItsBody(t *testing.T) {
	s := New(Options{})
	s.bodyTime = 500 * time.Millisecond // to read a body that is there already
	server := httptest.NewServer(s.answer(func(r *http.Request) (any, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeoutCause(r.Context(), s.bodyTime*3/2, errors.New("long enough"))
		defer cancel()
		<-ctx.Done()
		return context.Cause(ctx).Error(), nil
	}))
	defer server.Close()
	for _, text := range []string{"", "{}"} {
		resp, err := server.Client().Post(server.URL, "application/json", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]byte, 100)
		n, _ := resp.Body.Read(out)
		resp.Body.Close()
		if got := string(out[:n]); got != "\"long enough\"\n" {
			t.Errorf("with the body %q the verb was ended: %s", text, got)
		}
	}
}

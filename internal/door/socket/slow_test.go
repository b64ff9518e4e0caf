package socket

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
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

// A body that does not come is not waited for: nobody holds a connection by saying that there is more.
func TestABodyThatDoesNotComeEndsItsRequest(t *testing.T) {
	s := New(Options{Log: slog.New(slog.DiscardHandler)})
	s.bodyTime = 50 * time.Millisecond
	read := make(chan error, 1)
	server := httptest.NewServer(s.answer(func(r *http.Request) (any, error) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
		return nil, err
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-read:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the body ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		conn.Close()
		t.Error("the body is waited for")
	}
}

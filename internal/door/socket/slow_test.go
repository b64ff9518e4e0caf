package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/door/api"
)

// A verb may take longer than a request's body: only the reading of the body is bounded.
func TestAVerbMayTakeLongerThanItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(options(&verbs{}))
		l := &kept{conns: make(chan net.Conn, 1), done: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- s.serve(ctx, l, s.timed(s.answer(func(r *http.Request) (any, error) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return nil, err
				}
				ctx, cancel := context.WithTimeoutCause(r.Context(), s.bodyTime*3/2, errors.New("long enough"))
				defer cancel()
				<-ctx.Done()
				return context.Cause(ctx).Error(), nil
			})))
		}()
		for _, text := range []string{"", "{}"} {
			ours, theirs := net.Pipe()
			l.conns <- ours
			if _, err := fmt.Fprintf(theirs, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(text), text); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(theirs), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); string(got) != "\"long enough\"\n" {
				t.Errorf("with the body %q the verb was ended: %s, %v", text, got, err)
			}
			theirs.Close()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A body that does not come is not waited for, also of who is refused before anybody has read it: nobody holds a connection by saying that there
// is more.
func TestABodyThatDoesNotComeEndsItsRequest(t *testing.T) {
	speaks := fmt.Sprintf("%s: %d\r\n%s: %s\r\n", api.HeaderVersion, api.Version, api.HeaderBuild, api.Build())
	for name, says := range map[string]string{
		"a verb that reads it":       "POST /v1/groups/ada/say HTTP/1.1\r\n" + speaks,
		"a verb that does not":       "GET /v1/daemon HTTP/1.1\r\n" + speaks,
		"a verb that is not there":   "POST /nowhere HTTP/1.1\r\n" + speaks,
		"another version":            "POST /v1/groups/ada/say HTTP/1.1\r\n",
		"a stream":                   "GET /v1/groups/ada/watch HTTP/1.1\r\n" + speaks,
		"who waits to be asked more": "POST /nowhere HTTP/1.1\r\nExpect: 100-continue\r\n",
	} {
		for which, handler := range map[string]func(*Server) http.Handler{"owner's": (*Server).Handler, "users'": (*Server).userHandler} {
			for length, body := range map[string]string{"Content-Length: 10": "{}", "Transfer-Encoding: chunked": "5\r\n{}"} {
				s := New(options(&verbs{}))
				s.bodyTime = 50 * time.Millisecond
				l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
				if err != nil {
					t.Fatal(err)
				}
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.serve(ctx, l, handler(s)) }()

				conn, err := net.Dial("unix", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, says+"Host: x\r\n"+length+"\r\n\r\n"+body); err != nil {
					t.Fatal(err)
				}
				if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, conn); err != nil { // it ends with an answer, or with none
					t.Errorf("%s, the %s, %s: the connection is held: %v", name, which, length, err)
				}
				conn.Close()
				end()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
	}
}

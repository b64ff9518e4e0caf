package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/api/apitest"
)

// answering serves on a socket of its own.
func answering(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "d.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }() // ends with the test
	t.Cleanup(func() { server.Close() })
	return New(l.Addr().String())
}

// TestADaemonOfOneReleaseBackIsAskedAndReadAsItWasRecorded has the client ask all that was recorded of this version and of the one before, and
// answers as was recorded then.
func TestADaemonOfOneReleaseBackIsAskedAndReadAsItWasRecorded(t *testing.T) {
	var now atomic.Pointer[apitest.Verb]
	var asked atomic.Pointer[apitest.Request]
	var version atomic.Value
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := apitest.Request{Address: r.URL.RequestURI(), Body: body}
		asked.Store(&got)
		version.Store(r.Header.Get(api.HeaderVersion))
		_, _ = w.Write(now.Load().Answer)
	})
	for _, r := range apitest.Recorded(t) {
		said, common := api.Common(r.Version)
		if !common {
			said = api.Version // of those that any version is answered
		}
		c.speak(said, nil)
		for _, v := range r.Spoken() {
			s := api.Verbs()[slices.IndexFunc(api.Verbs(), func(s api.Spec) bool { return s.Pattern() == v.Asked })]
			for _, request := range []apitest.Request{v.Full, v.Least} {
				in, err := apitest.Read(s, request)
				if err != nil {
					t.Fatal(err)
				}
				now.Store(&v)
				answer := v.Answer
				if s.Kind != "" {
					resp, err := c.send(t.Context(), s, in)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				} else {
					out := reflect.New(s.Out)
					if err := c.ask(t.Context(), s, in, out.Interface()); err != nil {
						t.Fatalf("version %d, %s: %v", r.Version, v.Asked, err)
					}
					if answer, err = json.Marshal(out.Interface()); err != nil {
						t.Fatal(err)
					}
				}
				got := asked.Load()
				if got.Address != request.Address || !same(got.Body, request.Body) || version.Load() != strconv.Itoa(said) {
					t.Errorf("version %d, %s: asked as %s in version %v, recorded %s", r.Version, v.Asked, got, version.Load(), request)
				}
				if r.Version == api.Version && s.Out != nil && !same(answer, v.Answer) {
					t.Errorf("version %d, %s: read as %s, recorded %s", r.Version, v.Asked, answer, v.Answer)
				}
			}
		}
	}
}

// same reports whether two documents say the same; none and none do.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y) || len(bytes.TrimSpace(a))+len(bytes.TrimSpace(b)) == 0
}

// TestAClientSpeaksTheVersionThatTheDaemonSpeaksToo holds what is said to a daemon of each version that is near, and that one which is farther, or
// which no keeper has, is refused by name.
func TestAClientSpeaksTheVersionThatTheDaemonSpeaksToo(t *testing.T) {
	for _, tc := range []struct {
		api    int
		build  string
		kept   bool
		says   int // 0: it is refused
		answer bool
	}{
		{api.Version, api.Build(), false, api.Version, true},
		{api.Version, "v0.0.1", true, api.Version, true},
		{api.Version + 1, "v9.0.0", true, api.Version, true},
		{api.Version, "v0.0.1", false, 0, false},
		{api.Version + 1, "v9.0.0", false, 0, false},
		{api.Version + 2, "v9.0.0", true, 0, true}, // what any version is answered
		{-1, "v0.0.0", true, 0, true},
	} {
		t.Run(fmt.Sprintf("api %d, build %s, kept %t", tc.api, tc.build, tc.kept), func(t *testing.T) {
			var said atomic.Value
			c := answering(t, func(w http.ResponseWriter, r *http.Request) {
				said.Store(r.Header.Get(api.HeaderVersion))
				d := api.Daemon{API: tc.api, Build: tc.build}
				if tc.kept {
					d.Keeper = &api.Keeper{}
				}
				_ = json.NewEncoder(w).Encode(d)
			})
			err := c.sameBuild(t.Context(), "/home")
			if (err == nil) != (tc.says > 0) || err != nil && (problem.KindOf(err) != problem.Unavailable || problem.Of(err).Next != "sallyport daemon stop") {
				t.Fatalf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), "(api ") != (tc.api != api.Version) {
				t.Errorf("of versions it says: %v", err)
			}
			if other := c.Other(); (other != nil) != (tc.says == 0 && tc.answer) || other != nil && !errors.Is(err, other) {
				t.Errorf("it answers a few verbs: %v", other)
			}
			if _, err := Call(t.Context(), c, api.DaemonShow, api.Nothing{}); err != nil {
				t.Fatal(err)
			}
			want := tc.says
			if want == 0 {
				want = api.Version
			}
			if said.Load() != strconv.Itoa(want) {
				t.Errorf("it says version %v, want %d", said.Load(), want)
			}
		})
	}
}

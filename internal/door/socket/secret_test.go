package socket

import (
	"context"
	"io"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// scanner is a scan by hand, which goes on when its first line has been read.
type scanner struct {
	asked []any
	read  chan struct{}
}

func (s *scanner) Scan(ctx context.Context, path string, commits int, each func(api.SecretLine) error) error {
	s.asked = append(s.asked, path, commits)
	if err := each(api.SecretLine{Finding: &api.SecretFinding{File: "a", Kind: "k"}}); err != nil {
		return err
	}
	select {
	case <-s.read:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return each(api.SecretLine{Done: &api.SecretProgress{Files: 1}})
}

// told says once that something was written to it.
type told struct {
	strings.Builder
	once chan struct{}
}

func (w *told) Write(p []byte) (int, error) {
	if w.Len() == 0 {
		close(w.once)
	}
	return w.Builder.Write(p)
}

func TestALineOfAScanIsReadBeforeTheNextIsThere(t *testing.T) {
	read := make(chan struct{})
	s := &scanner{read: read}
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Scan = s })
	out := &told{once: read}
	if err := client.Copy(t.Context(), c, api.SecretScan, api.Scan{Path: "/r", History: 7}, out); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 2 || len(s.asked) != 2 || s.asked[0] != "/r" || s.asked[1] != 7 {
		t.Errorf("asked %v, read %s", s.asked, out)
	}
}

func TestAScanOfNoPlaceOrOfTooManyCommitsIsRefused(t *testing.T) {
	s := &scanner{}
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Scan = s })
	for _, in := range []api.Scan{{}, {Path: "r"}, {Path: "/r", History: historyMax + 1}} {
		if err := client.Copy(t.Context(), c, api.SecretScan, in, io.Discard); problem.KindOf(err) != problem.Usage {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if s.asked != nil {
		t.Errorf("asked %v", s.asked)
	}
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// TestAHostOfAVersionThatIsFarAwayIsStillEndedByWhoeverIsThere: a person whose program speaks another version than the daemon on trial sees what is
// on trial, and confirms it, rolls it back, approves and refuses. Nothing else is asked of it.
func TestAHostOfAVersionThatIsFarAwayIsStillEndedByWhoeverIsThere(t *testing.T) {
	dir, err := os.MkdirTemp("", "spv") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	me := client.Person{UID: os.Getuid(), Getenv: func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": dir}[name] }}
	socket, err := me.Socket("/h")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(socket), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}

	d := newDaemon(t)
	d.detail.Change = api.Change{ID: "chg-00000001", State: api.InTrial, Kind: "swap"}
	d.accepted = d.detail.Change
	d.question = api.Question{Approval: api.Approval{ID: "apr-00000001", Change: "chg-00000001", Decision: api.Pending, Digest: "0123456789abcdef"}, Proposal: proposed()}
	d.question.Proposal.Digest = d.question.Approval.Digest
	answers := http.NewServeMux()
	d.routes(answers)
	kept := true
	var refused []string
	far := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == api.DaemonShow.Path {
			it := api.Daemon{PID: os.Getpid(), Home: "/h", API: api.Version + 7, Build: "v9", Host: &api.HostChange{Change: "chg-00000001", Step: "asked"}}
			d.mu.Lock()
			if kept {
				it.Keeper = &api.Keeper{Against: api.AgainstFaulty}
			}
			d.mu.Unlock()
			_ = json.NewEncoder(w).Encode(it)
			return
		}
		_, pattern := answers.Handler(r)
		if !slices.ContainsFunc(api.Verbs(), func(s api.Spec) bool { return s.AnyVersion && shape(s.Pattern()) == shape(pattern) }) {
			d.mu.Lock()
			refused = append(refused, pattern)
			d.mu.Unlock()
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(api.Problem{Kind: "unavailable", Text: "it speaks another version"})
			return
		}
		answers.ServeHTTP(w, r)
	})
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: far}
	go func() { _ = server.Serve(l) }() // ends with the test
	t.Cleanup(func() { server.Close() })

	says := func(args ...string) result {
		var out, errs bytes.Buffer
		code := Main(Program{
			In: strings.NewReader(""), Out: &out, Err: &errs, Dir: os.Getwd,
			Getenv: func(name string) string { return map[string]string{"SALLYPORT_HOME": "/h"}[name] },
			Connect: func(ctx context.Context, home string, _ bool) (*client.Client, error) {
				return client.Starter{Person: me, Self: "/bin/false", Ops: disk.Ops{}}.Ensure(ctx, home)
			},
		}, args)
		return result{code, out.String(), errs.String()}
	}

	if got := says("doctor"); got.code != exitError || strings.Count(got.out, fmt.Sprintf("(api %d)", api.Version+7)) != 1 || strings.Contains(got.out, "MISSING daemon") ||
		strings.Contains(got.out, "build:") || !strings.Contains(got.out, "REFUSED daemon: ") || !strings.Contains(got.out, "are looked at once it answers") {
		t.Errorf("doctor: %+v", got)
	}
	if got := says("status"); got.code == 0 || !strings.Contains(got.out, "chg-00000001 asks whether it is to stay") || !strings.Contains(got.err, fmt.Sprintf("(api %d)", api.Version+7)) {
		t.Errorf("status: %+v", got)
	}
	for _, tc := range []struct{ words, told string }{
		{"confirm chg-00000001 --code ABCD-EFGH-JKLM", "confirm chg-00000001"},
		{"rollback chg-00000001", "rollback "},
		{"approve chg-00000001 --yes", "approve "},
		{"refuse chg-00000001 --reason worse", "refuse "},
	} {
		d.mu.Lock()
		d.calls, refused = nil, nil
		d.mu.Unlock()
		if got := says(strings.Fields(tc.words)...); !strings.HasPrefix(d.told(), tc.told) || len(refused) > 0 {
			t.Errorf("%s: told %q, refused %q: %+v", tc.words, d.told(), refused, got)
		}
	}
	d.mu.Lock()
	d.calls = nil
	d.mu.Unlock()
	if got := says("run", "--request", "x", "--repo", "/", "--", "true"); got.code == 0 || d.told() != "" || !strings.Contains(got.err, "next: sallyport daemon stop") {
		t.Errorf("run: told %q: %+v", d.told(), got)
	}

	// Where no keeper has the daemon, the next command starts one of its own build: nothing is asked of this one.
	d.mu.Lock()
	kept = false
	d.mu.Unlock()
	if got := says("confirm", "chg-00000001", "--code", "ABCD-EFGH-JKLM"); got.code == 0 || d.told() != "" || !strings.Contains(got.err, "next: sallyport daemon stop") {
		t.Errorf("without a keeper: told %q: %+v", d.told(), got)
	}
}

// shape is a pattern whose name in braces has no word.
func shape(pattern string) string {
	before, rest, ok := strings.Cut(pattern, "{")
	if !ok {
		return pattern
	}
	_, after, _ := strings.Cut(rest, "}")
	return before + "{}" + after
}

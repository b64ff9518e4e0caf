package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/code"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/release"
	"sallyport/internal/door/client"
)

// alone runs a command line in a home whose daemon must not be asked.
func alone(t *testing.T, home string, words ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	p := Program{
		In: strings.NewReader(""), Out: &out, Err: &errs, Dir: func() (string, error) { return "/", nil },
		Getenv: func(k string) string { return map[string]string{"SALLYPORT_HOME": home, "HOME": "/home/me"}[k] },
		Connect: func(context.Context, string, bool) (*client.Client, error) {
			t.Errorf("%q asks a daemon", words)
			return nil, client.ErrNoDaemon
		},
	}
	code := Main(p, words)
	return result{code, out.String(), errs.String()}
}

// putRelease puts a release of one program, built so many hours before noon.
func putRelease(t *testing.T, home, says string, hours int) release.Release {
	t.Helper()
	dir := t.TempDir()
	disktest.Put(t, filepath.Join(dir, "sallyport"), says, 0o755)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	r, err := release.In(home, disk.Ops{}).Put(dir, release.Release{Build: says, Schema: 7, Built: noon.Add(-time.Duration(hours) * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReleasesAreListedShownAndPrunedWithoutADaemon(t *testing.T) {
	home := t.TempDir()
	if got := alone(t, home, "release", "list"); got.code != exitDone || got.out != "no release is kept\n" {
		t.Errorf("where there are none: %+v", got)
	}
	if got := alone(t, home, "release", "list", "--json"); got.code != exitDone || got.out != "[]\n" {
		t.Errorf("where there are none: %+v", got)
	}
	f := release.In(home, disk.Ops{})
	old, now, newest := putRelease(t, home, "v1", 3), putRelease(t, home, "v2", 2), putRelease(t, home, "v3", 1)
	for _, r := range []release.Release{old, now} {
		if err := f.Use(r.Digest); err != nil {
			t.Fatal(err)
		}
	}

	got := alone(t, home, "release", "list")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != exitDone || len(lines) != 4 {
		t.Fatalf("%+v", got)
	}
	for n, want := range [][]string{{"RELEASE", "SCHEMA"}, {newest.Digest[:12], "v3", "7", "-"}, {now.Digest[:12], "v2", "current"}, {old.Digest[:12], "v1", "previous"}} {
		for _, word := range want {
			if !strings.Contains(lines[n], word) {
				t.Errorf("line %d lacks %q: %s", n, word, lines[n])
			}
		}
	}
	var rows []map[string]any
	if got := alone(t, home, "release", "list", "--json"); json.Unmarshal([]byte(got.out), &rows) != nil || len(rows) != 3 || rows[1]["current"] != true || rows[2]["previous"] != true || rows[0]["digest"] != newest.Digest {
		t.Errorf("%+v", got)
	}

	for _, word := range []string{"current", now.Digest, now.Digest[:12]} {
		got := alone(t, home, "release", "show", word)
		if got.code != exitDone || !strings.Contains(got.out, "release "+now.Digest) || !strings.Contains(got.out, "whole") || !strings.Contains(got.out, now.Files["sallyport"]+"  sallyport") {
			t.Errorf("%s: %+v", word, got)
		}
	}
	var one map[string]any
	if got := alone(t, home, "release", "show", "previous", "--json"); json.Unmarshal([]byte(got.out), &one) != nil || one["digest"] != old.Digest || one["build"] != "v1" {
		t.Errorf("%+v", got)
	}

	if got := alone(t, home, "release", "prune"); got.code != exitDone || got.out != "no release is old enough to go\n" {
		t.Errorf("%+v", got)
	}
	if got := alone(t, home, "release", "prune", "--keep", "0"); got.code != exitDone || got.out != "removed "+newest.Digest[:12]+" v3\n" {
		t.Errorf("%+v", got)
	}
	if got := alone(t, home, "release", "prune", "--keep", "0", "--json"); got.code != exitDone || got.out != "{\n  \"removed\": []\n}\n" {
		t.Errorf("%+v", got)
	}
	if got := alone(t, home, "release", "prune", "--keep=-1"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}

// TestTheReleaseOnTrialIsMarked holds that it is told by the keeper's record.
func TestTheReleaseOnTrialIsMarked(t *testing.T) {
	home := t.TempDir()
	f := release.In(home, disk.Ops{})
	old, next := putRelease(t, home, "v1", 3), putRelease(t, home, "v2", 2)
	for _, r := range []release.Release{old, next} {
		if err := f.Use(r.Digest); err != nil {
			t.Fatal(err)
		}
	}
	_, hash, err := code.New()
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[keeper.Step]string{keeper.Asked: "current, on trial", keeper.Confirmed: "current", keeper.Back: "current"} {
		raw, err := json.Marshal(keeper.Record{Change: "chg-1a2b3c4d", Step: step, Old: old.Digest, New: next.Digest, Code: hash})
		if err == nil {
			err = os.MkdirAll(keeper.Folder(home), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(keeper.Folder(home), "record.json"), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(alone(t, home, "release", "list").out), "\n")
		if len(lines) != 3 || !strings.HasSuffix(lines[1], "  "+want) || !strings.HasSuffix(lines[2], "  previous") {
			t.Errorf("at %s: %q", step, lines)
		}
	}
}

func TestAReleaseIsNamedByTheBeginningOfItsDigest(t *testing.T) {
	home := t.TempDir()
	twin := strings.Repeat("ab", 32)
	for _, digest := range []string{twin, twin[:20] + strings.Repeat("c", 44)} { // no programs are needed to be named
		if err := os.MkdirAll(filepath.Join(home, ".state", "releases", digest), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for word, want := range map[string]struct {
		code int
		says string
	}{
		twin[:12]:      {exitUsage, "begins 2 releases: " + twin + ", " + twin[:20]},
		twin[:20]:      {exitUsage, "begins 2 releases: " + twin + ", " + twin[:20]},
		twin[:21]:      {exitError, "release abababababab"}, // it has no card
		"0123":         {exitError, `no release begins with "0123"`},
		"current":      {exitError, "no release is the current one"},
		"CURRENT":      {exitUsage, "no digest"},
		"../../../etc": {exitUsage, "no digest"},
	} {
		if got := alone(t, home, "release", "show", word); got.code != want.code || !strings.Contains(got.err, want.says) || got.out != "" {
			t.Errorf("%q: %+v", word, got)
		}
	}
}

func TestAReleaseThatIsNotWholeIsToldByItsFile(t *testing.T) {
	home := t.TempDir()
	whole, spoilt, silent := putRelease(t, home, "v1", 1), putRelease(t, home, "v2", 2), putRelease(t, home, "v3", 3)
	in := filepath.Join(home, ".state", "releases")
	for _, path := range []string{filepath.Join(in, spoilt.Digest, "sallyport"), filepath.Join(in, silent.Digest, "release.json")} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		disktest.Put(t, path, "other", 0o500)
	}
	if got := alone(t, home, "release", "show", spoilt.Digest[:12]); got.code != exitError || !strings.Contains(got.err, "release "+spoilt.Digest[:12]+" sallyport: changed") || got.out != "" {
		t.Errorf("%+v", got)
	}
	for _, words := range [][]string{{"release", "list"}, {"release", "list", "--json"}} {
		got := alone(t, home, words...)
		if got.code != exitError || !strings.Contains(got.err, silent.Digest[:12]+" release.json") || !strings.Contains(got.out, whole.Digest[:12]) || !strings.Contains(got.out, spoilt.Digest[:12]) {
			t.Errorf("%+v", got)
		}
	}
	if got := alone(t, home, "release", "prune"); got.code != exitDone || !strings.HasPrefix(got.out, "removed "+silent.Digest[:12]) {
		t.Errorf("%+v", got)
	}
}

func TestAShellIsOfferedReleases(t *testing.T) {
	home := t.TempDir()
	r := putRelease(t, home, "v1", 1)
	if err := release.In(home, disk.Ops{}).Use(r.Digest); err != nil {
		t.Fatal(err)
	}
	got := alone(t, home, "__complete", "release", "show", "")
	for _, want := range []string{r.Digest[:12] + "\n", "current\n"} {
		if !strings.Contains(got.out, want) || strings.Contains(got.out, "previous") {
			t.Errorf("%+v", got)
		}
	}
	if got := alone(t, home, "__complete", "release", "show", "current", ""); strings.Contains(got.out, r.Digest[:12]) {
		t.Errorf("%+v", got)
	}
}

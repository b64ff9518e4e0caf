package workspace_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
)

// BenchmarkCheckInAWarmCacheLayer measures `go vet` of 37 files in a sandbox that begins with what the same left on the base, and in turn the
// host's own in its own cache. Each time one file is new.
func BenchmarkCheckInAWarmCacheLayer(b *testing.B) {
	for _, needed := range []string{"bwrap", "go"} {
		if _, err := exec.LookPath(needed); err != nil {
			b.Skip("SKIPPED: " + needed + " is not installed")
		}
	}
	root := filepath.Join(b.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
	files := map[string]string{"go.mod": "module bench\n\ngo 1.24\n"}
	for i := range 37 {
		files[fmt.Sprintf("p%d/p.go", i)] = fmt.Sprintf("package p%d\n\nimport (\n\t\"encoding/json\"\n\t\"net/http\"\n)\n\nfunc F() (int, bool) { return http.StatusOK + %d, json.Valid(nil) }\n", i, i)
	}
	p, head := wt.Project(b, files)
	owner := wt.Self()
	if owner.UID == 0 {
		owner = sandbox.Owner{UID: 64124, GID: 64124}
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	spec := workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: owner}
	profile, err := sandbox.Person{Path: os.Getenv("PATH"), Home: b.TempDir(), Caches: true}.Profile("go")
	if err != nil {
		b.Fatal(err)
	}
	env := append(slices.Clone(profile.Env), "PATH="+strings.Join(append(profile.Dirs, os.Getenv("PATH")), ":"), "HOME="+sandbox.Home, "CGO_ENABLED=0")
	driver, n := bwrap.New(bwrap.Config{Self: self, Root: root}), 0
	vet := func(w workspace.Workspace, cache sandbox.Cache, text string) {
		n++
		said := &strings.Builder{}
		process, err := driver.Start(b.Context(), sandbox.Spec{
			ID: fmt.Sprintf("vet-%d", n), Owner: owner, Tree: w.Tree, Cache: cache, Binds: profile.Binds, Env: env, Stderr: said, Stdout: io.Discard,
			Argv: []string{"sh", "-c", "printf '%s\\n' \"$0\" >> p0/p.go && exec go vet ./...", text},
		})
		if err != nil {
			b.Fatal(err)
		}
		if exit, err := process.Wait(); err != nil || exit.Code != 0 {
			b.Fatal(exit, err, said)
		}
	}
	shown := func(do func(workspace.Workspace)) {
		w, err := m.Materialize(b.Context(), spec, head)
		if err != nil {
			b.Fatal(err)
		}
		do(w)
		if err := m.Discard(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	stock, release, err := m.Stocks.Make(b.Context(), stockID("a", "1"), layer.StockNote{Kind: layer.Checks, Base: head, Made: time.Now()}, owner, layer.Stock{},
		func(r layer.Room) error {
			shown(func(w workspace.Workspace) { vet(w, r.Cache, "") })
			return nil
		})
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	cold := time.Since(began)

	cache := "GOCACHE=" + filepath.Join(b.TempDir(), "gocache")
	host := func(text string) {
		path := filepath.Join(p.Top, "p0/p.go")
		disktest.Put(b, path, files["p0/p.go"]+text+"\n", 0o644)
		cmd := exec.Command("go", "vet", "./...")
		cmd.Dir, cmd.Env = p.Top, append(os.Environ(), cache, "CGO_ENABLED=0", "GOFLAGS=", "GOTOOLCHAIN=local")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	host("")
	var ours, theirs []time.Duration
	b.ResetTimer()
	for i := range b.N {
		text := fmt.Sprintf("// %d", i)
		shown(func(w workspace.Workspace) {
			began := time.Now()
			vet(w, w.Cache(stock), text)
			ours = append(ours, time.Since(began))
		})
		began := time.Now()
		host(text)
		theirs = append(theirs, time.Since(began))
	}
	b.StopTimer()
	for name, took := range map[string][]time.Duration{"ours": ours, "host": theirs} {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/"+name)
		b.ReportMetric(float64(took[0].Microseconds())/1000, "ms-min/"+name)
	}
	b.ReportMetric(float64(ours[len(ours)/2])/float64(theirs[len(theirs)/2]), "ratio")
	b.ReportMetric(float64(ours[0])/float64(theirs[0]), "ratio-min")
	b.ReportMetric(float64(cold.Milliseconds()), "ms/cold")
}

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// stray makes a daemon of this test write a file without naming the operation: the control.
const stray = "SALLYPORT_TEST_STRAY"

// traceDaemon starts a daemon under strace.
func (w *world) traceDaemon(t *testing.T, prefix string, more ...string) *doomed {
	t.Helper()
	need(t, "strace")
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: strace may not trace here: %v %s", err, out)
	}
	argv := []string{"strace", "-f", "-ff", "-qq", "-y", "-s", "0", "--seccomp-bpf", "--decode-pids=pidns", "-e", "trace=" + traced, "-o", prefix, "--"}
	return w.begin(t, append(argv, w.bin, "daemon", "run", "--home", w.home), append(more, disktest.Mark+"=1")...)
}

// TestEveryWriteIsWithinANamedOperation follows a home's first daemon from its start through a whole story: a
// landing, a rollback, a refusal, a cancel and what a person may look at meanwhile.
//
// What a crash loop can stop at is what has a name; here is shown that nothing else is written. What runs in a
// sandbox was begun by sandbox:start, and writes through the workspace's overlay.
func TestEveryWriteIsWithinANamedOperation(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	prefix := filepath.Join(w.dir, "trace")
	d := w.traceDaemon(t, prefix)
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	w.story(t, c)
	w.stop(t, c)
	d.end(t, w.place)

	tr := readTrace(t, prefix, w.repo, w.home)
	names := []string{}
	for name := range tr.names {
		names = append(names, name)
	}
	slices.Sort(names)
	t.Logf("%d writes within %d operations: %q", tr.inside, len(names), names)
	for _, must := range []string{"ref:update", "tree:replace", "index:swap", "db:landed", "sandbox:start", "keeper:start", "checkpoint:import", "db:put-conversation",
		"db:claim-chat", "db:move-message", "db:put-session", "group:folders", "tools:listen"} {
		if tr.names[must] == 0 {
			t.Errorf("the trace does not show %s", must)
		}
	}
	for _, finding := range tr.findings() {
		t.Errorf("outside of every named operation: %s", finding)
	}
}

// story is what a person does in a day.
func (w *world) story(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, w.said())
		}
	}
	_, err := client.Call(ctx, c, api.DoctorShow, api.Nothing{})
	must(err)
	asked, err := w.request(ctx, c)
	must(err)
	w.change = asked.ID
	if at := rest(t, c, w.change, nil); at.State != api.AwaitingApproval {
		t.Fatalf("%s is %s: %s", at.ID, at.State, at.Reason)
	}
	var out strings.Builder
	must(client.Copy(ctx, c, api.ChangeDiff, w.change, &out))
	must(client.Copy(ctx, c, api.ChangeExport, w.change, &out))
	must(client.Copy(ctx, c, api.ChangeTranscript, api.Transcript{Of: w.change}, &out))
	must(approve(ctx, c, w.change))
	if at := rest(t, c, w.change, nil); at.State != api.Finalized {
		t.Fatalf("%s is %s: %s", at.ID, at.State, at.Reason)
	}
	back, err := client.Call(ctx, c, api.ChangeRollback, api.Rollback{Of: w.change, Reason: "it was wrong", Approve: "yes"})
	must(err)
	if at := rest(t, c, back.ID, nil); at.State != api.Finalized {
		t.Fatalf("%s is %s: %s", at.ID, at.State, at.Reason)
	}
	for _, ask := range []func() (api.Begun, error){
		func() (api.Begun, error) { return client.Call(ctx, c, api.GroupCreate, api.NewGroup{Name: "helper"}) },
		func() (api.Begun, error) {
			must(os.WriteFile(filepath.Join(w.home, "groups/helper/AGENTS.md"), []byte("# Ada\n"), 0o600))
			return client.Call(ctx, c, api.GroupCommit, api.CommitGroup{Group: "helper"})
		},
	} {
		begun, err := ask()
		must(err)
		if at := rest(t, c, begun.Change.ID, nil); at.State != api.Finalized {
			t.Fatalf("%s is %s: %s", at.ID, at.State, at.Reason)
		}
	}
	said, err := client.Call(ctx, c, api.ChatSay, api.Say{Group: "echo", Text: "/say hello"})
	must(err)
	await(t, "the answer", func() (bool, error) {
		m, err := client.Call(ctx, c, api.MessageShow, said.ID)
		return m.Status == "completed", err
	})
	refused, err := w.request(ctx, c)
	must(err)
	rest(t, c, refused.ID, nil)
	q, err := client.Call(ctx, c, api.ApprovalShow, refused.ID)
	must(err)
	must(client.Do(ctx, c, api.ApprovalRefuse, api.Reason{Of: q.Approval.ID, Reason: "no"}))
	dropped, err := client.Call(ctx, c, api.ChangeRun, api.Run{Dir: w.repo, Text: "Never ends", Agent: "command", Argv: []string{"sh", "-c", "echo x > half.txt; sleep 600"},
		Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: "later", IncludeDirty: true})
	must(err)
	await(t, "the agent to work", func() (bool, error) {
		d, err := client.Call(ctx, c, api.ChangeShow, dropped.ID)
		return d.Progress != nil && d.Progress.FilesChanged > 0, err
	})
	must(client.Do(ctx, c, api.ChangeCancel, api.Reason{Of: dropped.ID, Reason: "enough"}))
	if at := rest(t, c, dropped.ID, nil); at.State != api.Cancelled {
		t.Fatalf("%s is %s: %s", at.ID, at.State, at.Reason)
	}
}

// TestAStrayWriteIsFound is the control of the test above.
func TestAStrayWriteIsFound(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	if err := os.Mkdir(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(w.dir, "trace")
	d := w.traceDaemon(t, prefix, stray+"=1")
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	w.stop(t, c)
	d.end(t, w.place)
	found := readTrace(t, prefix, w.repo, w.home).findings()
	if len(found) != 3 || !strings.Contains(strings.Join(found, "\n"), filepath.Join(w.home, "stray")) {
		t.Errorf("findings: %q; want that stray was opened and written by the daemon, and removed by its child", found)
	}
}

// writeAstray is what the control does wrong.
func writeAstray(ctx context.Context, home string) error {
	path := filepath.Join(home, "stray")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		return err
	}
	return exec.CommandContext(ctx, "rm", path).Run()
}

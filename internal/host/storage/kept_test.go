package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/store"
)

// prepare makes a workspace, and returns where its files lie.
func (o *owned) prepare(c id.Change, base git.OID) string {
	o.t.Helper()
	if _, err := o.Workspaces.Prepare(o.t.Context(), workspace.Spec{Change: c, Project: o.project, Base: base, Branch: "main", Owner: workspacetest.Self()}); err != nil {
		o.t.Fatal(err)
	}
	return filepath.Join(o.State, "workspaces", string(c))
}

// row is what a report says of a kind.
func row(r Report, k Kind) Row { return r.Rows[slices.Index(kinds, k)] }

// Work that no row tells of has a ref before its workspace goes, after those that it has, and the log says so (SM-135).
func TestTheWorkOfAnUnknownChangeHasARefBeforeItsWorkspaceGoes(t *testing.T) {
	o := newOwned(t)
	o.Author = git.Signature{Name: "sallyport", Email: "sallyport@localhost"}
	for _, before := range []int{0, 2} {
		c := id.NewChange()
		at := o.prepare(c, o.base)
		found, err := filepath.Glob(filepath.Join(at, "*", "a.txt"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%q, %v", found, err)
		}
		disktest.Put(t, found[0], "two\n", 0o600)
		host := o.Workspaces.Host(o.project)
		for n := range before {
			workspacetest.Git(t, host.Path, "update-ref", checkpoint.Ref(c, n+1), string(o.base))
		}
		report, err := o.Collect(t.Context(), ann)
		if err != nil || o.has("workspaces/"+string(c)) || row(report, Workspaces).Gone != 1 {
			t.Errorf("after %d: it is there: %v, %q", before, err, report.Notes)
		}
		ref := checkpoint.Ref(c, before+1)
		if text := workspacetest.Git(t, host.Path, "show", ref+":a.txt"); text != "two" {
			t.Errorf("after %d: %s has %q", before, ref, text)
		}
		o.do(func(tx store.Tx) error {
			all, err := tx.Entries(t.Context(), string(c), 0, 10)
			if len(all) != 1 || all[0].Verb != "kept" || !strings.Contains(all[0].Reason, ref) || all[0].Digests["commit"] == "" {
				t.Errorf("after %d: the log has %+v", before, all)
			}
			return err
		})
	}
}

// What is in the way of keeping work is told, and the workspace stays.
func TestAWorkspaceWhoseWorkCannotBeKeptStays(t *testing.T) {
	o := newOwned(t)
	bare := id.NewChange()
	o.put("workspaces/"+string(bare)+"/upper/a", "x")
	o.put("workspaces/.new-1/upper/a", "x") // half made: it is looked after elsewhere
	o.put("sessions/sh-00009", "a file")
	report, err := o.Collect(t.Context(), ann)
	if err != nil || !o.has("workspaces/"+string(bare)) || row(report, Workspaces).Count != 1 || row(report, Workspaces).Gone != 0 {
		t.Errorf("%+v, %v", row(report, Workspaces), err)
	}
	for c, want := range map[id.Change]string{bare: "its work cannot be given a ref", "sh-00009": "it is not a folder of this home's"} {
		if n := slices.IndexFunc(report.Notes, func(s string) bool { return strings.Contains(s, string(c)) && strings.Contains(s, want) }); n < 0 {
			t.Errorf("of %s it notes %q", c, report.Notes)
		}
	}
}

// A chat's session goes once it has ended long ago, unless the chat goes on with it.
func TestASessionOfAChatGoesWhenTheChatGoesOnUnderAnother(t *testing.T) {
	o := newOwned(t)
	r := &round{Steward: o.Steward, now: time.Now().UTC().Truncate(time.Millisecond)}
	keep := o.Retention.Transcripts
	var chat conversation.Chat
	current := session.Session{ID: id.NewSession("sh")}
	o.do(func(tx store.Tx) error {
		where, err := tx.PutConversation(t.Context(), conversation.Conversation{ID: id.NewConversation(), Platform: "terminal", Address: "1/echo", Kind: conversation.Direct, Created: r.now})
		if err != nil {
			return err
		}
		chat, err = tx.PutChat(t.Context(), conversation.Chat{ID: id.NewChat(), Group: "echo", Conversation: where.ID, Created: r.now})
		chat.Identity = current.ID
		return errors.Join(err, tx.MoveChat(t.Context(), chat))
	})
	ago := func(d time.Duration) *time.Time { at := r.now.Add(-d); return &at }
	for name, c := range map[string]struct {
		of    session.Session
		ended *time.Time
		goes  bool
	}{
		"long ago":                          {session.Session{ID: id.NewSession("sh")}, ago(keep), true},
		"not so long ago":                   {session.Session{ID: id.NewSession("sh")}, ago(keep - time.Hour), false},
		"never":                             {session.Session{ID: id.NewSession("sh")}, nil, false},
		"long ago, and the chat goes on it": {current, ago(2 * keep), false},
	} {
		c.of.Chat, c.of.Attempt, c.of.Agent, c.of.Started, c.of.Ended = chat.ID, 1, "echo", r.now.Add(-3*keep), c.ended
		if goes, err := r.left(t.Context(), c.of); err != nil || goes != c.goes {
			t.Errorf("%s: %v, %v", name, goes, err)
		}
		o.do(func(tx store.Tx) error { return tx.PutSession(t.Context(), c.of) })
		o.put("sessions/"+string(c.of.ID)+"/transcript.jsonl", "{}")
		if err := o.Sweep(t.Context()); err != nil || o.has("sessions/"+string(c.of.ID)) == c.goes {
			t.Errorf("%s: it is there: %t, %v", name, !c.goes, err)
		}
	}
	if goes, err := r.left(t.Context(), session.Session{ID: "sh-00000", Chat: chat.ID, Ended: ago(keep - 1)}); goes || err != nil {
		t.Errorf("a moment before its time it goes: %v", err)
	}
	if _, err := r.left(t.Context(), session.Session{ID: "sh-00000", Chat: "cht-gone0000", Ended: ago(keep)}); err == nil {
		t.Error("a chat that cannot be read is taken for one that goes on")
	}
}

func TestWhatHasAnotherNameThanOursStaysAndIsNoted(t *testing.T) {
	o := newOwned(t)
	for _, name := range []string{"sessions/odd/a", "changes/odd/a", "workspaces/odd/a"} {
		o.put(name, "x")
	}
	unknown := id.NewChange()
	o.put("changes/"+string(unknown)+"/state.md", "---\n")
	report, err := o.Collect(t.Context(), ann)
	if err != nil || len(report.Notes) != 3 || !o.has("sessions/odd/a") || !o.has("changes/odd/a") || !o.has("workspaces/odd/a") {
		t.Errorf("notes: %q, %v", report.Notes, err)
	}
	if o.has("changes/" + string(unknown)) {
		t.Error("the export of an unknown change stays for ever")
	}
}

// What refs hold is estimated where they go; of what this home does not know nothing goes, and a project that is gone has none.
func TestRefsThatGoAreMeasured(t *testing.T) {
	o := newOwned(t)
	host, err := o.Workspaces.Repositories.Open(t.Context(), o.project, o.base)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := o.add(change.Failed, 31*24*time.Hour)
	young, _ := o.add(change.Failed, time.Hour)
	size := int64(200_000)
	work := func(c id.Change) {
		t.Helper()
		blob := strings.Fields(workspacetest.Git(t, host.Path, "hash-object", "-w", o.put("noise/"+string(c), noise(int(size)))))[0]
		entry := o.put("noise/tree", fmt.Sprintf("100644 blob %s\tbig\n", blob))
		tree := workspacetest.Git(t, host.Path, "-c", "alias.mk=!git mktree <"+entry, "mk")
		commit := workspacetest.Git(t, host.Path, "-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", "-p", string(o.base), "-m", "x", tree)
		for n := range 2 {
			workspacetest.Git(t, host.Path, "update-ref", checkpoint.Ref(c, n+1), commit)
		}
	}
	work(old)
	work(young)
	unknown := id.NewChange()
	workspacetest.Git(t, o.project.Top, "update-ref", repository.BaseRef(unknown), string(o.base))
	far := o.project
	far.Top, far.GitDir, far.CommonDir = "/nowhere", "/nowhere/.git", "/nowhere/.git"
	o.bare(far)
	seen, err := o.Look(t.Context())
	if got := row(seen, Refs); err != nil || got.Count != 6 || got.Gone != 3 || got.Freed < size || got.Freed > 2*size || got.Bytes != got.Freed {
		t.Errorf("%+v, %v", got, err)
	}
	if len(seen.Notes) != 1 || !strings.Contains(seen.Notes[0], "what is below "+repository.RefRoot(unknown)+" stays") {
		t.Errorf("notes: %q", seen.Notes)
	}
	r := &round{Steward: o.Steward}
	for name, c := range map[string]change.Row{
		"of no refs":               {ID: unknown, Request: r.rowOf(t, o, old).Request},
		"of a base that is absent": {ID: old, Base: strings.Repeat("1", 40), Request: r.rowOf(t, o, old).Request},
	} {
		if got := r.reachable(t.Context(), c); got != 0 {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
	whole := r.rowOf(t, o, old)
	whole.Base = ""
	if all, own := r.reachable(t.Context(), whole), r.reachable(t.Context(), r.rowOf(t, o, old)); all <= own || own < size {
		t.Errorf("without its base it has %d bytes, and with it %d", all, own)
	}
	o.refs = 0 // they went meanwhile
	report, err := o.Collect(t.Context(), ann)
	if got := row(report, Refs); err != nil || got.Gone != 0 || got.Freed != 0 || len(o.forgot) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	o.refs = 3
	report, err = o.Collect(t.Context(), ann)
	if got := row(report, Refs); err != nil || got.Count != 6 || got.Gone != 3 || len(o.forgot) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

func (r *round) rowOf(t *testing.T, o *owned, c id.Change) (out change.Row) {
	t.Helper()
	o.do(func(tx store.Tx) (err error) { out, err = tx.Change(t.Context(), c); return err })
	return out
}

// noise is text that packs badly.
func noise(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

// What no ref names any more goes from the host's own repositories when a person collects, and by itself only after refs went.
func TestWhatNoRefNamesGoesFromTheHostsRepositories(t *testing.T) {
	o := newOwned(t)
	host, err := o.Workspaces.Repositories.Open(t.Context(), o.project, o.base)
	if err != nil {
		t.Fatal(err)
	}
	loose := func() string {
		t.Helper()
		oid := workspacetest.Git(t, host.Path, "hash-object", "-w", o.put("noise/file", noise(100_000)))
		return filepath.Join(host.Path, "objects", oid[:2], oid[2:])
	}
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	object := loose()
	seen, err := o.Look(t.Context())
	if got := row(seen, Repositories); err != nil || got.Count != 1 || got.Freed < 100_000 || got.Bytes < got.Freed || got.Freed > 200_000 || !there(object) {
		t.Errorf("it sees %+v, %v", got, err)
	}
	if err := o.Sweep(t.Context()); err != nil || !there(object) {
		t.Errorf("a sweep from which no ref went tidies up: %v", err)
	}
	o.Retention.Grace = time.Hour
	if seen, err := o.Look(t.Context()); err != nil || row(seen, Repositories).Freed != 0 {
		t.Errorf("within its grace it would free %+v, %v", row(seen, Repositories), err)
	}
	if _, err := o.Collect(t.Context(), ann); err != nil || !there(object) {
		t.Errorf("it went within its grace: %v", err)
	}
	o.Retention.Grace = 0
	report, err := o.Collect(t.Context(), ann)
	if got := row(report, Repositories); err != nil || there(object) || got.Freed < 100_000 || got.Freed > got.Bytes || len(report.Notes) > 0 {
		t.Errorf("it collected %+v, %v, %q", got, err, report.Notes)
	}
	object = loose()
	o.add(change.Failed, 31*24*time.Hour)
	if err := o.Sweep(t.Context()); err != nil || there(object) {
		t.Errorf("a sweep from which refs went leaves what they named: %v", err)
	}
	r := &round{Steward: o.Steward}
	for grace, want := range map[time.Duration]string{0: "now", time.Second: "1.seconds.ago", 90 * time.Minute: "5400.seconds.ago"} {
		if r.Retention.Grace = grace; r.expiry() != want {
			t.Errorf("a grace of %s is %q", grace, r.expiry())
		}
	}
	// One that git cannot read is told, and the others go on.
	disktest.Put(t, filepath.Join(host.Path, "HEAD"), "?", 0o600)
	report, err = o.Collect(t.Context(), ann)
	if !slices.ContainsFunc(report.Notes, func(s string) bool { return strings.Contains(s, "stays as it is") }) {
		t.Errorf("notes: %q, %v", report.Notes, err)
	}
	if seen, _ := o.Look(t.Context()); row(seen, Repositories).Freed != 0 {
		t.Errorf("of one that git cannot read it sees %+v", row(seen, Repositories))
	}
}

// Layers and caches that are in use stay, and are told from those that go.
func TestLayersAndCachesGoByTheBoundsOfTheirCaches(t *testing.T) {
	o := newOwned(t)
	o.Workspaces = workspace.New(workspace.Config{Root: o.State, Strategy: workspace.Copy, Ops: o.Ops, Cache: workspace.Cache{Keep: time.Nanosecond, QuotaBytes: 1 << 30}})
	used, _ := o.add(change.Working, time.Hour)
	o.prepare(used, o.base)
	left := id.NewChange()
	disktest.Put(t, filepath.Join(o.project.Top, "b.txt"), noise(50_000), 0o600)
	_, next := workspacetest.Commit(t, o.project.Top)
	o.prepare(left, next)
	if err := o.Workspaces.Remove(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	for n, made := range []time.Time{time.Now().Add(-time.Hour), time.Now()} {
		note, err := json.Marshal(layer.StockNote{Kind: layer.Checks, Made: made, Bytes: int64(1000 + n)})
		if err != nil {
			t.Fatal(err)
		}
		o.put(fmt.Sprintf("stock/%s-%s/layer.json", strings.Repeat("a", 32), strings.Repeat(fmt.Sprint(n), 12)), string(note))
	}
	o.Workspaces.Stocks.Keep = time.Hour
	seen, err := o.Look(t.Context())
	if got := row(seen, Layers); err != nil || got.Count != 2 || got.Gone != 1 || got.Freed <= 0 || got.Freed >= got.Bytes {
		t.Errorf("it sees %+v, %v", got, err)
	}
	if got := row(seen, Caches); got.Count != 2 || got.Gone != 1 || got.Freed != 1000 || got.Bytes != 2001 {
		t.Errorf("it sees %+v", got)
	}
	report, err := o.Collect(t.Context(), ann)
	if got, was := row(report, Layers), row(seen, Layers); err != nil || got != was {
		t.Errorf("it collects %+v, and saw %+v, %v", got, was, err)
	}
	if got, was := row(report, Caches), row(seen, Caches); got != was {
		t.Errorf("it collects %+v, and saw %+v", got, was)
	}
	again, err := o.Look(t.Context())
	if err != nil || row(again, Layers).Count != 1 || row(again, Caches).Count != 1 || row(again, Layers).Gone+row(again, Caches).Gone > 0 {
		t.Errorf("left are %+v and %+v, %v", row(again, Layers), row(again, Caches), err)
	}
}

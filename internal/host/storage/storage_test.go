package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/change"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/who/person"
)

// ann owns the home.
var ann = audit.Actor{Kind: "person", Name: "ann", UID: 7, Person: "psn-0000ann0"}

// owned is a home with rows and no daemon.
type owned struct {
	*Steward
	t       *testing.T
	project git.Project
	base    git.OID
	forgot  []id.Change
	refs    int // that a change whose refs are forgotten has
	cleared []id.Change
	stuck   error    // what clearing a workspace meets
	onDisk  []string // operations
}

func newOwned(t *testing.T) *owned {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	state := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	o := &owned{t: t, refs: 1}
	o.project, o.base = workspacetest.Project(t, map[string]string{"a.txt": "one\n"})
	db := sqlitetest.Open(t, filepath.Join(state, "sallyport.db"))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	ops := disk.Ops{Around: func(op string, do func() error) error { o.onDisk = append(o.onDisk, op); return do() }}
	o.Steward = New(Parts{
		DB: db, Owner: person.Owner{ID: "psn-0000ann0", UID: 7, Name: "ann"}, State: state, Changes: o, Ops: ops, Log: slog.New(slog.DiscardHandler),
		Workspaces: workspace.New(workspace.Config{Root: state, Strategy: workspace.Copy, Ops: ops}),
		Retention:  Retention{Grace: -1},
	})
	return o
}

func (o *owned) Ended(_ context.Context, c id.Change, do func(change.Row) error) (bool, error) {
	var row change.Row
	err := o.DB.Read(o.t.Context(), func(tx store.Tx) (err error) { row, err = tx.Change(o.t.Context(), c); return err })
	if err != nil || !row.State.Final() {
		return false, err
	}
	return true, do(row)
}

func (o *owned) ClearWorkspace(_ context.Context, c id.Change, _ bool) (bool, error) {
	o.cleared = append(o.cleared, c)
	return o.stuck == nil, o.stuck
}

func (o *owned) ForgetRefs(_ context.Context, c id.Change, _ audit.Actor) (int, error) {
	o.forgot = append(o.forgot, c)
	return o.refs, nil
}

// add stores a change that has been in a state for so long, with one session and an export.
func (o *owned) add(state change.State, since time.Duration) (id.Change, id.Session) {
	o.t.Helper()
	c, s := id.NewChange(), id.NewSession("sh")
	at := time.Now().Add(-since).UTC().Truncate(time.Millisecond)
	row := change.Row{ID: c, State: state, Created: at, Moved: at, Base: string(o.base), Request: request.Request{
		Kind: request.Edit, Text: "x", Project: o.project, Branch: "main", Head: o.base, By: ann, At: at, Agent: "command", Argv: []string{"true"},
	}}
	err := o.DB.InTx(o.t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.AddChange(o.t.Context(), row), tx.PutSession(o.t.Context(), session.Session{ID: s, Change: c, Agent: "command", Started: at, Attempt: 1}))
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.put("sessions/"+string(s)+"/transcript.jsonl", "{}\n")
	o.put("changes/"+string(c)+"/state.md", "---\n")
	workspacetest.Git(o.t, o.project.Top, "update-ref", repository.BaseRef(c), string(o.base))
	return c, s
}

func (o *owned) put(name, text string) string {
	o.t.Helper()
	path := filepath.Join(o.State, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return path
}

func (o *owned) has(name string) bool {
	_, err := os.Lstat(filepath.Join(o.State, name))
	return !errors.Is(err, fs.ErrNotExist)
}

func TestOnlyWhatHasBeenKeptLongEnoughGoes(t *testing.T) {
	o := newOwned(t)
	old, oldSession := o.add(change.Failed, 31*24*time.Hour)
	young, youngSession := o.add(change.Finalized, 29*24*time.Hour)
	open, openSession := o.add(change.AwaitingApproval, 300*24*time.Hour)

	seen, err := o.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range seen.Rows {
		if want := 1; (row.Kind == Transcripts || row.Kind == Exports || row.Kind == Refs) && (row.Gone != want || row.Count != 3) {
			t.Errorf("%s: %d of %d would go, want 1 of 3", row.Kind, row.Gone, row.Count)
		}
		if row.Kind == Transcripts && (row.Freed <= 0 || row.Bytes < 3*row.Freed) {
			t.Errorf("%d of %d bytes would be freed", row.Freed, row.Bytes)
		}
	}
	if len(o.onDisk) > 0 || len(o.forgot) > 0 {
		t.Errorf("looking did %q and forgot %q", o.onDisk, o.forgot)
	}

	if _, err := o.Collect(t.Context(), audit.Actor{Kind: "person", Name: "bob", UID: 7, Person: "psn-0000bob0"}); !errors.Is(err, person.ErrNotOwner) {
		t.Errorf("somebody else may: %v", err)
	}
	if _, err := o.Collect(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	if len(o.forgot) != 1 || o.forgot[0] != old {
		t.Errorf("the refs of %q went, want those of %s", o.forgot, old)
	}
	for name, want := range map[string]bool{
		"sessions/" + string(oldSession): false, "changes/" + string(old): false,
		"sessions/" + string(youngSession): true, "changes/" + string(young): true,
		"sessions/" + string(openSession): true, "changes/" + string(open): true,
	} {
		if o.has(name) != want {
			t.Errorf("%s is there: %v, want %v", name, !want, want)
		}
	}
}

func TestReleasesAreCountedAndStay(t *testing.T) {
	o := newOwned(t)
	o.put("releases/"+strings.Repeat("ab", 32)+"/sallyport", "a program")
	o.put("releases/.new-1/sallyport", "half a program")
	report, err := o.Collect(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range report.Rows {
		if row.Kind == Releases && (row.Count != 1 || row.Bytes < int64(len("a program")) || row.Gone > 0 || !strings.HasPrefix(row.Keeps, "the newest five")) {
			t.Errorf("%+v", row)
		}
	}
	if !o.has("releases/.new-1/sallyport") || !o.has("releases/"+strings.Repeat("ab", 32)+"/sallyport") {
		t.Error("what is for prune to remove is gone")
	}
}

// A copy from before a change landed goes with its change; those from before a migration, and what is no file of ours, stay.
func TestACopyOfTheDatabaseGoesOnceItsChangeHasEnded(t *testing.T) {
	o := newOwned(t)
	ended, _ := o.add(change.RolledBack, time.Minute)
	trial, _ := o.add(change.InTrial, 300*24*time.Hour)
	stays := map[string]bool{
		"backups/swap-" + string(ended) + ".sqlite": false, "backups/swap-" + string(trial) + ".sqlite": true,
		"backups/swap-" + string(id.NewChange()) + ".sqlite": false, "backups/.new-swap-" + string(trial) + ".sqlite": false,
		"backups/sallyport-schema1-20200101T000000.000Z.db": true, "backups/swap-mine.sqlite": true,
	}
	for name := range stays {
		o.put(name, "rows")
	}
	if seen, err := o.Look(t.Context()); err != nil || row(seen, Backups).Count != 5 {
		t.Errorf("what is half made is taken for a copy: %+v, %v", row(seen, Backups), err)
	}
	report, err := o.Collect(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range stays {
		if o.has(name) != want {
			t.Errorf("%s is there: %v", name, !want)
		}
	}
	for _, row := range report.Rows {
		if row.Kind == Backups && (row.Count != 5 || row.Gone != 2 || row.Bytes == 0) {
			t.Errorf("%+v", row)
		}
	}
}

func TestAnAgentsHomeGoesWithItsTranscriptWhateverIsInIt(t *testing.T) {
	o := newOwned(t)
	_, young := o.add(change.Finalized, 29*24*time.Hour)
	_, old := o.add(change.Failed, 31*24*time.Hour)
	aim := o.put("aim/file", "x")
	for _, s := range []id.Session{young, old} {
		home := filepath.Join(o.State, "sessions", string(s), "home")
		o.put("sessions/"+string(s)+"/home/big", strings.Repeat("x", 1<<20))
		err := errors.Join(os.MkdirAll(filepath.Join(home, "shut", "in"), 0o700), os.Symlink(aim, filepath.Join(home, "link")),
			os.Symlink(filepath.Dir(aim), filepath.Join(home, "shut", "folder")), os.Symlink(home, filepath.Join(home, "shut", "in", "round")))
		if os.Geteuid() == 0 {
			for _, name := range []string{"", "big", "shut", "shut/in"} {
				err = errors.Join(err, os.Lchown(filepath.Join(home, name), 64123, 64123))
			}
		}
		if err = errors.Join(err, os.Chmod(filepath.Join(home, "shut"), 0), os.Chmod(home, 0)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = os.Chmod(home, 0o700), os.Chmod(filepath.Join(home, "shut"), 0o700) })
	}
	seen, err := o.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range seen.Rows {
		if row.Kind == Transcripts && os.Geteuid() == 0 && (row.Bytes < 2<<20 || row.Freed < 1<<20 || row.Freed > row.Bytes/2+1<<16) {
			t.Errorf("%+v", row)
		}
	}
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o.has("sessions/"+string(old)) || !o.has("sessions/"+string(young)+"/home") || !o.has("aim/file") {
		t.Error("the wrong one went, or what a link leads to")
	}
}

func TestWhatNobodyOwnsHasItsGrace(t *testing.T) {
	o := newOwned(t)
	o.Retention.Grace = time.Hour
	o.put("something.part", "x")
	o.put("sessions/sh-00000/transcript.jsonl", "x")
	o.put("another.part", "x")
	another := os.Getuid() == 0 // only root can make one that is another user's
	if another {
		if err := os.Chown(filepath.Join(o.State, "another.part"), 4711, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !o.has("something.part") || !o.has("sessions/sh-00000") {
		t.Error("it went at once")
	}
	o.Retention.Grace = 0
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o.has("something.part") || o.has("sessions/sh-00000") {
		t.Error("it stays for ever")
	}
	if o.has("another.part") != another {
		t.Error("what is another user's is no leaving of ours")
	}
}

func TestNothingGoesAMomentBeforeItsTime(t *testing.T) {
	now, keep := time.Now(), time.Hour
	r := &round{Steward: &Steward{Parts: Parts{Retention: Retention{Grace: keep}}}, now: now, changes: map[id.Change]change.Row{
		"just": {State: change.Failed, Moved: now.Add(-keep)}, "not yet": {State: change.Failed, Moved: now.Add(-keep + 1)}, "open": {State: change.Working},
	}}
	for c, want := range map[id.Change]bool{"just": true, "not yet": false, "open": false, "unknown": false} {
		if r.over(c, keep) != want {
			t.Errorf("%s is over: %t", c, !want)
		}
	}
	if !r.abandoned(now.Add(-keep)) || r.abandoned(now.Add(-keep+1)) {
		t.Error("the grace is another")
	}
}

func TestWhatCannotBeRemovedIsNotedAndTheRestGoes(t *testing.T) {
	o := newOwned(t)
	ended, _ := o.add(change.Failed, 31*24*time.Hour)
	o.put("workspaces/"+string(ended)+"/upper/a.txt", "x")
	o.stuck = errors.New("it is stuck")
	report, err := o.Collect(t.Context(), ann)
	if err != nil || len(o.forgot) != 1 || o.has("changes/"+string(ended)) {
		t.Errorf("the rest stays: %v", err)
	}
	if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "it is stuck") {
		t.Errorf("it notes %q", notes)
	}
	for _, row := range report.Rows {
		if row.Kind == Workspaces && row.Gone != 0 {
			t.Errorf("it says that %d went", row.Gone)
		}
	}
}

// TestOnlyAWorkspaceWhoseChangeHasEndedGoes: work that is under way, and work that no row tells of and no repository can keep, stays.
func TestOnlyAWorkspaceWhoseChangeHasEndedGoes(t *testing.T) {
	o := newOwned(t)
	ended, _ := o.add(change.Failed, time.Hour)
	open, _ := o.add(change.Working, time.Hour)
	unknown := id.NewChange()
	names := []string{"workspaces/" + string(ended), "workspaces/" + string(open), "workspaces/" + string(unknown), "workspaces/odd"}
	for _, name := range names {
		o.put(name+"/upper/a.txt", "x")
	}
	seen, err := o.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range seen.Rows {
		if row.Kind == Workspaces && (row.Count != 3 || row.Gone != 2 || row.Bytes <= 0) {
			t.Errorf("it sees %+v", row)
		}
	}
	if notes := strings.Join(seen.Notes, "\n"); !strings.Contains(notes, "workspaces/odd") {
		t.Errorf("it notes %q", notes)
	}
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(o.cleared) != 1 || o.cleared[0] != ended {
		t.Errorf("the workspaces of %q went, want that of %s", o.cleared, ended)
	}
	for _, name := range names {
		if !o.has(name) {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestRefsThatWereForgottenAreCounted(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		o := newOwned(t)
		o.refs = n
		o.add(change.Failed, 31*24*time.Hour)
		report, err := o.Collect(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range report.Rows {
			if row.Kind == Refs && row.Gone != n {
				t.Errorf("of %d refs %d went", n, row.Gone)
			}
		}
	}
}

func TestOnlyAnOverlayOfOurOwnIsUnmounted(t *testing.T) {
	const state = "/home/ann/.state"
	for line, want := range map[string]string{
		`36 35 0:50 / /home/ann/.state/shown/x rw - overlay overlay rw,lowerdir=/l,upperdir=/home/ann/.state/workspaces/chg-1/upper,workdir=/w`: "/home/ann/.state/shown/x",
		`36 35 0:50 / /home/ann/.state/a\040b rw - overlay overlay rw,upperdir=/home/ann/.state/workspaces/chg-1/upper`:                         "/home/ann/.state/a b",
		`36 35 8:1 / /home/ann/.state/layers rw - ext4 /dev/sdb1 rw`:                                                                            "",
		`36 35 0:50 / /home/ann/.state/layers rw - overlay overlay rw,upperdir=/mnt/upper`:                                                      "",
		`36 35 0:50 / /mnt rw - overlay overlay rw,upperdir=/home/ann/.state/workspaces/chg-1/upper`:                                            "",
		`36 35 0:50 / /home/ann/.state2/x rw - overlay overlay rw,upperdir=/home/ann/.state/workspaces/chg-1/upper`:                             "",
		`garbage`: "",
		`36 35 0:50 /home/ann/.state/x - overlay overlay rw,upperdir=/home/ann/.state/workspaces/chg-1/upper`:   "",
		`36 35 0:50 / /home/ann/.state/x - overlay overlay rw,upperdir=/home/ann/.state/workspaces/chg-1/upper`: "/home/ann/.state/x",
		`36 35 0:50 / /home/ann/.state/x rw - overlay overlay`:                                                  "",
		`36 35 0:50 / /home/ann/.state/x rw - fuse overlay rw,upperdir=/home/ann/.state/workspaces/chg-1/upper`: "",
	} {
		if got, ok := overlayOf(state, line); got != want || ok != (want != "") {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestTheSocketOfADaemonThatCameBackStays(t *testing.T) {
	runtime, err := os.MkdirTemp("", "st") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtime)
	folder := filepath.Join(runtime, "0123456789ab")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	at, _, err := beneath.PlaceOf(folder)
	if err != nil {
		t.Fatal(err)
	}
	s, err := net.Listen("unix", filepath.Join(folder, "daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{WayPrefix + "1", BundlePrefix + "7"} { // what a dead one has left beside changes nothing
		if name[0] == BundlePrefix[0] {
			err = os.WriteFile(filepath.Join(folder, name), nil, 0o600)
		} else {
			err = leaveSocket(filepath.Join(folder, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if gone, err := removeSockets(t.Context(), &Steward{}, at); gone || err != nil {
		t.Errorf("it is gone: %v, %v", gone, err)
	}
	if _, err := os.Lstat(filepath.Join(folder, "daemon.sock")); err != nil {
		t.Error(err)
	}
}

// leaveSocket makes a socket with nobody behind it.
func leaveSocket(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return l.Close()
}

func TestTheFolderOfADeadDaemonGoesWithItsWaysOutAndNothingElse(t *testing.T) {
	runtime, err := os.MkdirTemp("", "st") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtime)
	for n, more := range []string{"", "notes.txt", WayPrefix + "plain"} {
		folder := filepath.Join(runtime, strings.Repeat(string(rune('0'+n)), 12))
		err := errors.Join(os.Mkdir(folder, 0o700), leaveSocket(filepath.Join(folder, "daemon.sock")), leaveSocket(filepath.Join(folder, WayPrefix+"1")),
			os.WriteFile(filepath.Join(folder, BundlePrefix+"7"), nil, 0o600))
		if more != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, more), nil, 0o600))
		}
		at, _, lerr := beneath.PlaceOf(folder)
		if err = errors.Join(err, lerr); err != nil {
			t.Fatal(err)
		}
		gone, err := removeSockets(t.Context(), &Steward{}, at)
		if gone != (more == "") || err != nil {
			t.Errorf("%q: %v, %v", more, gone, err)
		}
	}
}

func TestRefsThatAreNotOursAreNoChanges(t *testing.T) {
	for ref, want := range map[string]string{
		"refs/sallyport/chg-1a2b3c4d/base": "chg-1a2b3c4d", "refs/sallyport-notes/x": "", "refs/sallyport/chg-1a2b3c4d": "", "refs/sallyport/../x/base": "", "refs/heads/chg-1a2b3c4d/base": "",
	} {
		if got, ok := changeOf(ref); ok != (want != "") || ok && string(got) != want {
			t.Errorf("%s is of %q, %v", ref, got, ok)
		}
	}
}

func TestTheGraceIsSaidInWords(t *testing.T) {
	var all []string
	for _, d := range []time.Duration{30 * 24 * time.Hour, time.Hour, 90 * time.Minute, time.Second} {
		all = append(all, days(d))
	}
	if got := strings.Join(all, ", "); got != "30 days, 1 hour, 90 minutes, 1 second" {
		t.Error(got)
	}
}

// What every change adds to is looked at once a workspace goes, not with the next day's sweep.
func TestWhatChangesLeaveIsMadeLessWhenAWorkspaceGoes(t *testing.T) {
	o := newOwned(t)
	merged := make(chan struct{}, 1)
	ops := disk.Ops{Around: func(op string, do func() error) error {
		if op == "repository:merge" {
			select {
			case merged <- struct{}{}:
			default:
			}
		}
		return do()
	}}
	o.Workspaces = workspace.New(workspace.Config{Root: o.State, Strategy: workspace.Copy, Ops: ops})
	ctx, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- o.Run(ctx) }()
	for i := range 33 {
		for _, kind := range []string{"pack", "idx"} { // no packs, but as many
			o.put(fmt.Sprintf("repos/0123456789abcdef.git/objects/pack/pack-%040d.%s", i, kind), "")
		}
	}
	if err := o.Workspaces.Remove(t.Context(), id.NewChange()); err != nil {
		t.Fatal(err)
	}
	<-merged
	end()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

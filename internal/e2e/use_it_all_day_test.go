package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// day is a world in which changes come at once, people decide, and things go wrong.
type day struct {
	*world
	c     *client.Client
	dice  *rand.Rand
	disk  string            // where the home's disk is mounted; "" where none can be
	makes map[string]string // change → the file that only it makes
}

// length is how long the day is: SALLYPORT_SOAK, as `make soak` has it; 0 is one round of each kind.
func length(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SALLYPORT_SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestADayOfUseKeepsEveryInvariant has changes at once, people who approve, refuse, cancel and roll back, daemons that are
// killed, a disk that is full and a gc, in any order. At the end all that holds after any crash holds.
func TestADayOfUseKeepsEveryInvariant(t *testing.T) {
	if !apart(t) {
		return
	}
	seed := disktest.Seed(t)
	d := &day{world: newWorld(t), dice: rand.New(rand.NewPCG(uint64(seed), 0)), makes: map[string]string{}}
	d.mount(t)
	d.configure(t, map[string]string{"sallyport.yaml": "changes: {at_once: 4}\n"})
	d.before, d.paths = look(t, d.repo), map[string]bool{}
	d.c = d.start(t)

	happens := []func(*testing.T){func(*testing.T) {}, d.kill, d.fill, d.collect}
	end := time.Now().Add(length(t))
	rounds := 0
	for ; rounds < len(happens) || time.Now().Before(end); rounds++ {
		what := rounds
		if rounds >= len(happens) {
			what = d.dice.IntN(len(happens))
		}
		d.round(t, happens[what%len(happens)])
		if t.Failed() {
			t.Fatalf("round %d of SALLYPORT_SEED=%d\n%s", rounds, seed, d.said())
		}
		if rounds%20 == 19 {
			d.truthful(t, d.c)
		}
	}

	d.lands(t)
	d.truthful(t, d.c)
	d.onlyWhatLanded(t)
	untouched(t, d.before, look(t, d.repo), d.paths)
	sound(t, filepath.Join(d.repo, ".git"))
	d.stop(t, d.c)
	d.leftNothing(t)
	t.Logf("SALLYPORT_SEED=%d: %d rounds, %d changes", seed, rounds, len(d.makes))
}

// mount gives the home a disk of its own, which can be full; only root can.
func (d *day) mount(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sallydisk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clear(t, dir) })
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=268435456,mode=0700"); err != nil {
		t.Logf("SKIPPED: no tmpfs can be mounted here, so no disk is full: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	d.disk, d.home = dir, filepath.Join(dir, "home")
}

// round has changes come, something happen to them, and people decide.
func (d *day) round(t *testing.T, happens func(*testing.T)) {
	t.Helper()
	var ids []string
	for range 1 + d.dice.IntN(3) {
		ids = append(ids, d.ask(t))
	}
	happens(t)
	for _, id := range ids {
		if at := rest(t, d.c, id, nil); at.State == api.AwaitingApproval {
			d.decide(t, id)
		}
	}
	if id := ids[d.dice.IntN(len(ids))]; d.dice.IntN(2) == 0 {
		d.back(t, id)
	}
}

// ask is for a change that makes one file of its own, slowly enough to be met by what happens.
func (d *day) ask(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("day/%d.txt", len(d.makes))
	script := fmt.Sprintf("mkdir -p day && echo half > %[1]s && sleep 0.%[2]d && echo whole >> %[1]s", name, d.dice.IntN(4))
	ch, err := client.Call(t.Context(), d.c, api.ChangeRun, api.Run{
		Dir: d.repo, Text: "Make " + name, Agent: "command", Argv: []string{"sh", "-c", script},
		Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: []string{"yes", "later"}[d.dice.IntN(2)],
	})
	if err != nil {
		t.Fatalf("ask for %s: %v\n%s", name, err, d.said())
	}
	d.makes[ch.ID], d.paths[name] = name, true
	return ch.ID
}

// lands has one more change come, and a person approve it: after such a day, too, what is wished for lands.
func (d *day) lands(t *testing.T) {
	t.Helper()
	id := d.ask(t)
	at := rest(t, d.c, id, nil)
	if at.State == api.AwaitingApproval {
		if err := approve(t.Context(), d.c, id); err != nil {
			t.Fatal(err)
		}
		at = rest(t, d.c, id, nil)
	}
	if at.State != api.Finalized {
		t.Errorf("at the end of the day %s is %s: %s", id, at.State, at.Reason)
	}
}

// decide is what a person says to what waits for them.
func (d *day) decide(t *testing.T, id string) {
	t.Helper()
	var err error
	switch d.dice.IntN(4) {
	case 0:
		err = client.Do(t.Context(), d.c, api.ChangeCancel, api.Reason{Of: id, Reason: "enough"})
	default:
		err = approve(t.Context(), d.c, id)
	}
	if err != nil && problem.KindOf(err) != problem.Conflict {
		t.Fatalf("decide on %s: %v", id, err)
	}
	rest(t, d.c, id, nil)
}

// back rolls a change back if it has landed.
func (d *day) back(t *testing.T, id string) {
	t.Helper()
	seen, err := client.Call(t.Context(), d.c, api.ChangeShow, id)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Change.State != api.Finalized {
		return
	}
	undo, err := client.Call(t.Context(), d.c, api.ChangeRollback, api.Rollback{Of: id, Reason: "it was wrong", Approve: "yes"})
	if err != nil {
		t.Fatalf("roll %s back: %v", id, err)
	}
	if at := rest(t, d.c, undo.ID, nil); at.State == api.AwaitingApproval {
		d.decide(t, undo.ID)
	}
}

// kill ends the daemon as the kernel would, and begins another, if its keeper has not.
func (d *day) kill(t *testing.T) {
	t.Helper()
	is, err := client.Call(t.Context(), d.c, api.DaemonShow, api.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(is.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the daemon to end", func() (bool, error) {
		reap()
		return errors.Is(unix.Kill(is.PID, 0), unix.ESRCH), nil
	})
	d.c = d.start(t)
}

// fill fills the home's disk while agents work, and makes room again.
func (d *day) fill(t *testing.T) {
	t.Helper()
	if d.disk == "" {
		return
	}
	name := filepath.Join(d.disk, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	_, _ = client.Call(t.Context(), d.c, api.ChangeList, api.Filter{}) // whatever is said on a full disk: nothing may be lost by it
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	d.c = d.start(t)
}

// collect has the home put in order while agents work.
func (d *day) collect(t *testing.T) {
	t.Helper()
	if _, err := client.Call(t.Context(), d.c, api.StorageCollect, api.GC{}); err != nil {
		t.Errorf("gc: %v", err)
	}
}

// onlyWhatLanded checks that the work tree holds the files of what landed and stayed, and no other.
func (d *day) onlyWhatLanded(t *testing.T) {
	t.Helper()
	for id, name := range d.makes {
		seen, err := client.Call(t.Context(), d.c, api.ChangeShow, id)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(d.repo, name))
		switch {
		case seen.Change.State == api.Finalized:
			if err != nil || string(text) != "half\nwhole\n" {
				t.Errorf("%s landed, and %s holds %q, %v", id, name, text, err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			t.Errorf("%s is %s (%s), and %s is there: %q, %v", id, seen.Change.State, strings.TrimSpace(seen.Change.Reason), name, text, err)
		}
	}
}

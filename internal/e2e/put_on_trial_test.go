package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// tried is a world whose repository has a service: what is served is what edit.txt was at the last restart.
type tried struct {
	*world
	served string // path
	starts string // path of a file with one line for each restart
}

func newTried(t *testing.T) *tried {
	t.Helper()
	w := &tried{world: newWorld(t)}
	w.served, w.starts = filepath.Join(w.dir, "served"), filepath.Join(w.dir, "starts")
	w.configure(t, map[string]string{"sallyport.yaml": fmt.Sprintf(
		"targets:\n  - repository: %s\n    restart: cp edit.txt %s && head -n 1 edit.txt >> %s\n    trial: 10s\n", w.repo, w.served, w.starts)})
	return w
}

// row runs SQL on the database of the home; no daemon runs.
func (w *tried) row(t *testing.T, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.home, ".state", "sallyport.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

// shortly makes the trial that an approved change will have as long as a test has patience for.
func (w *tried) shortly(t *testing.T, d time.Duration) {
	t.Helper()
	w.row(t, `UPDATE change SET request = json_set(request, '$.trial', ?) WHERE id = ?`, int64(d), w.change)
}

// afresh makes the trial of the row begin now, as if on a boot of its own, and end in d.
func (w *tried) afresh(t *testing.T, boot string, d time.Duration) {
	t.Helper()
	began := time.Now().UTC().Add(-time.Second)
	w.row(t, `UPDATE trial SET deadman_started_at = ?1, deadman_expires_at = ?1 + ?2, doc = json_set(doc,
		'$.deadman_started_at.boot', ?4, '$.deadman_started_at.wall', ?3, '$.deadman_expires_at.set.boot', ?4,
		'$.deadman_expires_at.set.wall', ?3, '$.deadman_expires_at.in', ?2 * 1000000)`,
		began.UnixMilli(), (d + time.Second).Milliseconds(), began.Format(time.RFC3339Nano), boot)
}

// asked waits until a person is asked to confirm, and returns until when. A short trial may be over by then.
func (w *tried) asked(t *testing.T, c *client.Client) (expires time.Time) {
	t.Helper()
	await(t, w.change+" to be on trial", func() (bool, error) {
		d, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
		if err == nil && api.Final(d.Change.State) && (d.Change.Trial == nil || d.Change.Trial.Reason != "nobody confirmed it in time") {
			return false, fmt.Errorf("it is %s: %s", d.Change.State, d.Change.Reason)
		}
		if err != nil || !api.Final(d.Change.State) && (d.Change.State != api.InTrial || !d.Change.Trial.Asks()) {
			return false, nil
		}
		expires = d.Change.Trial.Expires
		return true, nil
	})
	return expires
}

// toTrial has a change landed and a person asked, by a daemon that this test owns.
func (w *tried) toTrial(t *testing.T) (d *doomed, expires time.Time) {
	t.Helper()
	d = w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	if err := approve(t.Context(), c, w.change); err != nil {
		t.Fatal(err)
	}
	return d, w.asked(t, c)
}

// kill ends a daemon of this test as the kernel would.
func (d *doomed) kill(t *testing.T) {
	t.Helper()
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-d.ended
}

// keepers are the keepers of this home: processes of this test that nobody else would find.
func (w *tried) keepers() []int { return keepersAmong(w.home, children()) }

// keepersAmong are those of some processes that are keepers of a home.
func keepersAmong(home string, all []int) (pids []int) {
	for _, pid := range all {
		if words := commandOf(pid); len(words) > 2 && (words[1] == "start" || words[1] == "watch") && strings.HasPrefix(words[2], home) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// commandOf is what a process was begun as; of one that has ended: nothing.
func commandOf(pid int) []string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(string(raw), "\x00")
}

// killKeepers returns how many it found.
func (w *tried) killKeepers(t *testing.T) (killed int) {
	t.Helper()
	await(t, "the keepers to be gone", func() (bool, error) {
		pids := w.keepers()
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // gone already is as good
		}
		killed += len(pids)
		return len(pids) == 0, nil
	})
	return killed
}

// killBoth ends the daemon and its keepers, so that neither can bring the other back, and returns how many keepers there were.
func (w *tried) killBoth(t *testing.T, d *doomed) (keepers int) {
	t.Helper()
	if err := d.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	keepers = w.killKeepers(t)
	d.kill(t)
	killAll(t) // it may have been starting another keeper, which nobody could see below a process that stood still
	return keepers
}

// death is what ends the daemon of a trial, its keeper or both, while nobody is there.
type death struct {
	name   string
	strike func(w *tried, t *testing.T, d *doomed) (keepers int) // that it met; -1 if it met none of them
	after  func(w *tried, t *testing.T, d *doomed) *client.Client
}

// deaths are all of them. Who comes after is brought by the keeper, or by whoever runs a command.
var deaths = []death{
	{"the daemon is killed", func(_ *tried, t *testing.T, d *doomed) int { d.kill(t); return -1 }, brought},
	{"the keeper is killed", func(w *tried, t *testing.T, _ *doomed) int { return w.killKeepers(t) }, brought},
	{"both are killed, and somebody runs a command", (*tried).killBoth, commanded},
	{"the machine starts anew, and somebody runs a command", (*tried).killBoth, func(w *tried, t *testing.T, d *doomed) *client.Client {
		w.anotherBoot(t)
		return w.start(t)
	}},
	{"the daemon hangs", func(_ *tried, t *testing.T, d *doomed) int {
		if err := d.Process.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		return -1
	}, func(w *tried, t *testing.T, d *doomed) *client.Client {
		<-d.ended // the keeper ends it
		return w.dial(t)
	}},
}

func brought(w *tried, t *testing.T, _ *doomed) *client.Client   { return w.dial(t) }
func commanded(w *tried, t *testing.T, _ *doomed) *client.Client { return w.start(t) }

// dies has a daemon, or its keeper, die in the middle of a trial that ends soon, and returns a client of the one that comes after. begin
// begins such a trial and says when it ends. A machine that is so slow that the trial was over by then has a longer one.
func (x death) dies(t *testing.T, w *tried, begin func(length time.Duration) (d *doomed, expires time.Time)) *client.Client {
	t.Helper()
	for length := 2 * time.Second; length < patience; length *= 4 {
		d, expires := begin(length)
		keepers := x.strike(w, t, d)
		if !time.Now().Before(expires) {
			killAll(t)
			t.Logf("a trial of %s was over before anything could be killed", length)
			continue
		}
		if keepers == 0 {
			t.Error("no keeper watched the trial")
		}
		return x.after(w, t, d)
	}
	t.Fatalf("nothing could be killed within a trial: %s", w.said())
	return nil
}

// lateMax is how long after its deadline a trial may be over that its daemon did not live to see: ten times what it takes.
const lateMax = 2 * time.Minute

// killAll ends whatever this test has left running.
func killAll(t *testing.T) {
	t.Helper()
	await(t, "nothing to run", func() (bool, error) {
		pids := children()
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return len(pids) == 0, nil
	})
}

// dial waits for a daemon that nobody of this test has started.
func (w *tried) dial(t *testing.T) (c *client.Client) {
	t.Helper()
	await(t, "a daemon to be brought back", func() (bool, error) {
		var err error
		c, err = client.Me().Dial(t.Context(), w.home)
		if err != nil {
			return false, nil
		}
		_, err = client.Call(t.Context(), c, api.ChangeShow, w.change)
		return err == nil, nil
	})
	return c
}

// judgeTrial wants old or new, exactly, as the row says, with that version running.
func (w *tried) judgeTrial(t *testing.T, c *client.Client) api.Detail {
	t.Helper()
	at := rest(t, c, w.change, nil)
	d, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
	if err != nil {
		t.Fatal(err)
	}
	now, want := look(t, w.repo), "edited\n"
	switch at.State {
	case api.Finalized:
		w.landed(t, now, w.new, true)
		if d.Change.Trial.Handshake != api.Confirmed {
			t.Errorf("finalized by %+v", d.Change.Trial)
		}
	case api.RolledBack:
		want = strings.Repeat("edit.txt as committed\n", 20)
		if now.tree != w.old {
			t.Errorf("main has the tree %s, not %s", now.tree, w.old)
		}
		holds(t, w.repo, now, w.old, w.paths)
		untouched(t, w.before, now, w.paths)
		sound(t, filepath.Join(w.repo, ".git"))
		if n := strings.TrimSpace(git(t, w.repo, "rev-list", "--count", w.before.head+".."+now.head)); w.before.tree == w.old && n != "2" {
			t.Errorf("%s commits, not one there and one back", n)
		}
		said := strings.TrimSpace(git(t, w.repo, "log", "-1", "--format=%B"))
		why := strings.Replace(d.Change.Trial.Reason, "nobody confirmed it in time", "deadman timeout", 1) // the commit has SM-127's words
		if !strings.Contains(said, ".\n\n"+why+"\n\nSallyport-Change: "+w.change) || !d.Change.Trial.Restored {
			t.Errorf("the commit says %q, the trial %+v", said, d.Change.Trial)
		}
	default:
		t.Fatalf("%s is %s: %s\n%s", w.change, at.State, at.Reason, w.said())
	}
	if is, err := os.ReadFile(w.served); err != nil || string(is) != want {
		t.Errorf("%s, and served is %.40q, %v", at.State, is, err)
	}
	w.truthful(t, c)
	return d
}

// TestATrialEndsAsItsRowSaysWhereverItsDaemonDies is I2, I6 and I7 from the approval to each end of a trial.
func TestATrialEndsAsItsRowSaysWhereverItsDaemonDies(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newTried(t)
	w.toAsked(t)
	w.shortly(t, 400*time.Millisecond)
	w.keep(t, "asked")
	t.Run("from the approval to the way back", func(t *testing.T) {
		w.crashTrial(t, "asked", func() {}, func(ctx context.Context, c *client.Client) error { return approve(ctx, c, w.change) },
			[]string{"db:tried", "target:restart", "db:asked_to_confirm", "db:rollback_decided"})
	})
	w.shortlyAsked(t)
	nothing := func(context.Context, *client.Client) error { return nil }
	t.Run("going back", func(t *testing.T) {
		w.crashTrial(t, "tried", func() { w.afresh(t, "", 0) }, nothing,
			[]string{"db:began_to_roll_back", "tree:replace", "db:restored_the_old_files", "target:restart", "db:rolled_back"})
	})
	minute := func() { w.afresh(t, "", time.Minute) }
	t.Run("confirmed", func(t *testing.T) {
		w.crashTrial(t, "tried", minute, func(ctx context.Context, c *client.Client) error {
			return client.Do(ctx, c, api.ChangeConfirm, api.Confirm{Of: w.change})
		},
			[]string{"db:confirmed", "deadman:disarm"})
	})
	t.Run("rolled back by a person", func(t *testing.T) {
		w.crashTrial(t, "tried", minute, func(ctx context.Context, c *client.Client) error {
			_, err := client.Call(ctx, c, api.ChangeRollback, api.Rollback{Of: w.change, Reason: "no", Approve: "later"})
			return err
		}, []string{"db:rollback_decided", "db:began_to_roll_back"})
	})
}

// askedAgain approves a change whose daemon died before it was on trial: then nothing has landed, and the way is open.
func (w *tried) askedAgain(t *testing.T, c *client.Client) {
	t.Helper()
	if at := rest(t, c, w.change, nil); at.State != api.AwaitingApproval {
		return
	}
	w.landed(t, look(t, w.repo), w.new, false)
	w.truthful(t, c)
	if err := approve(t.Context(), c, w.change); err != nil {
		t.Fatal(err)
	}
}

// shortlyAsked saves a world in which a person is asked, and whose daemon and keeper have died.
func (w *tried) shortlyAsked(t *testing.T) {
	t.Helper()
	w.restore(t, "asked")
	w.shortly(t, 10*time.Minute)
	d, _ := w.toTrial(t)
	if w.killBoth(t, d) == 0 {
		t.Error("no keeper watched the trial")
	}
	w.save(t, "tried")
}

// soon is when nobody answers a trial any more: its end might be faster.
const soon = 20 * time.Second

// crashTrial kills a daemon after each of the named operations, or with SALLYPORT_LONG=1 before and after every one that comes
// once the trial has begun. Somebody who finds the trial still open confirms it.
func (w *tried) crashTrial(t *testing.T, start string, prepare func(), ask func(context.Context, *client.Client) error, names []string) {
	once := func(where string) (seen []string, killed bool) {
		w.restore(t, start)
		prepare()
		log := filepath.Join(w.dir, "names")
		if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		disktest.Put(t, w.served, "edited\n", 0o600) // by the version on trial
		d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home}, disktest.KillAt+"="+where, disktest.KillLog+"="+log)
		if c := d.client(t, w.place); c != nil {
			if err := ask(t.Context(), c); err == nil {
				rest(t, c, w.change, d.gone)
				_ = client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}) // dead already is as good
			} else if problem.KindOf(err) != problem.Unavailable {
				t.Errorf("asked, the daemon said: %v", err)
			}
		}
		d.end(t, w.place)
		w.noKeeper(t, d)
		return operations(t, log), d.killed()
	}
	points := []string{}
	for _, name := range names {
		points = append(points, name+":after")
	}
	if disktest.Long() {
		whole, _ := once("1000000:before")
		for n := range whole {
			points = append(points, fmt.Sprintf("%d:before", n), fmt.Sprintf("%d:after", n))
		}
	}
	reached, failures := 0, 0
	defer func() {
		if 2*reached < len(names) {
			t.Errorf("it died at %d of %q only", reached, names)
		}
	}()
	for _, where := range points {
		if failures == failuresMax {
			return
		}
		ok := t.Run(where, func(t *testing.T) {
			defer func() {
				if t.Failed() { // a daemon that went on would spoil the next point
					killAll(t)
				}
			}()
			seen, killed := once(where)
			if !killed {
				t.Logf("it did not die: its operations are %q", seen)
				return
			}
			reached++
			c := w.start(t)
			if start == "asked" {
				w.askedAgain(t, c)
			} else if at, err := client.Call(t.Context(), c, api.ChangeShow, w.change); err != nil {
				t.Fatal(err)
			} else if at.Change.State == api.InTrial && at.Change.Trial.Asks() && at.Change.Trial.Left() > soon {
				if err := client.Do(t.Context(), c, api.ChangeConfirm, api.Confirm{Of: w.change}); err != nil {
					t.Error(err)
				}
			}
			w.judgeTrial(t, c)
			w.stopUnwatched(t, c)
			w.leftNothing(t)
			if t.Failed() {
				t.Logf("operations were %q\n%s", seen, w.said())
			}
		})
		if !ok {
			failures++
		}
	}
}

// TestNoDeathSavesAChangeOnTrial is SM-924 and SM-137: with nobody there, the old tree and the old version are back by the
// deadline, whoever was killed.
func TestNoDeathSavesAChangeOnTrial(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newTried(t)
	w.toAsked(t)
	w.keep(t, "asked")
	for _, x := range deaths {
		t.Run(x.name, func(t *testing.T) {
			c := x.dies(t, w, func(length time.Duration) (*doomed, time.Time) {
				w.restore(t, "asked")
				w.shortly(t, length)
				return w.toTrial(t)
			})
			d := w.judgeTrial(t, c)
			if took := d.Change.Moved.Sub(d.Change.Trial.Expires); took > lateMax {
				t.Errorf("it was back %s after its deadline", took)
			}
			if d.Change.Trial.Reason != "nobody confirmed it in time" {
				t.Errorf("because of %q", d.Change.Trial.Reason)
			}
			w.stopUnwatched(t, c)
			w.leftNothing(t)
		})
	}
}

// anotherBoot makes everything that was written down look as if it were from before the machine started.
func (w *tried) anotherBoot(t *testing.T) {
	t.Helper()
	w.afresh(t, "00000000-0000-0000-0000-000000000000", 500*time.Millisecond)
	records, err := filepath.Glob(filepath.Join(w.home, ".state", "deadman", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("records %q, %v", records, err)
	}
	armed, err := deadman.Read(records[0])
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), armed.Daemon.Boot, "00000000-0000-0000-0000-000000000000")
	disktest.Put(t, records[0], text, 0o600)
}

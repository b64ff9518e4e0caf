package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// size is how much a load is.
type size struct{ changes, seconds int }

// rate is how many file changes each agent makes a second (SV-101, the maximum).
const rate = 500

// load is whole with SALLYPORT_LONG: ten changes for a minute.
func load() size {
	if disktest.Long() {
		return size{10, 60}
	}
	return size{4, 5}
}

// TestChangesAtOnceEachGetExactlyWhatTheirAgentMade is SV-061, SV-069, SV-095 and SV-101: agents that change hundreds of
// files a second at the same time. Every checkpoint is the tree of one moment, the last one is the tree at the end, and
// nothing is credited to another change.
func TestChangesAtOnceEachGetExactlyWhatTheirAgentMade(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, map[string]string{"sallyport.yaml": "changes: {at_once: 10}\n"})
	base := listed(t, w.repo, w.old)
	c := w.start(t)
	d, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	before := usage(t, d.PID)
	began, l := time.Now(), load()
	ids := make([]string, l.changes)
	gate, open := w.gate(t)
	for i := range ids {
		ids[i] = w.sendTo(t, c, api.Run{Shares: []string{gate}}, "generate", strconv.Itoa(i+1), strconv.Itoa(l.seconds), strconv.Itoa(rate), gate)
	}
	asked := w.askMeanwhile(t, c, ids)
	open()
	for _, id := range ids {
		await(t, id+" to come to rest", slow(l, func() (bool, error) {
			d, err := client.Call(t.Context(), c, api.ChangeShow, id)
			return err == nil && (d.Change.State == api.AwaitingApproval || api.Final(d.Change.State)), err
		}))
	}
	took := time.Since(began)
	used := usage(t, d.PID)
	t.Logf("%d changes of %d s, done in %.1f s; the daemon: %.1f %% of one CPU with all it waited for, %d MiB at the most; asked-for checkpoints: %s",
		l.changes, l.seconds, took.Seconds(), 100*(used.cpu-before.cpu).Seconds()/took.Seconds(), used.peakBytes>>20, asked)
	if stats, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{}); err != nil {
		t.Error(err)
	} else {
		for _, m := range stats.Measures {
			if m.Count > 0 {
				t.Logf("%s: %d, p50 %.0f ms, p95 %.0f ms, longest %.0f ms (%s)", m.Name, m.Count, m.P50MS, m.P95MS, m.MaxMS, m.Verdict)
			}
		}
		t.Logf("alerts: %+v; %d descriptors", stats.Alerts, stats.Descriptors)
	}
	for i, id := range ids {
		t.Run(id, func(t *testing.T) { w.exactly(t, c, id, uint64(i+1), base) })
	}
	w.stop(t, c)
	w.leftNothing(t)
}

// TestAnAgentThatHasNoPlaceWaitsForOne is SV-095: more agents than places, and a place that is given on when one is free.
func TestAnAgentThatHasNoPlaceWaitsForOne(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, map[string]string{"sallyport.yaml": "changes: {at_once: 2}\n"})
	c := w.start(t)
	ids := []string{w.send(t, c, 0, "escape"), w.send(t, c, 0, "escape"), w.send(t, c, 0, "escape")}
	sessions := func() (all int, running map[string]bool) {
		running = map[string]bool{}
		for _, id := range ids {
			d, err := client.Call(t.Context(), c, api.ChangeShow, id)
			if err != nil {
				t.Fatal(err)
			}
			all += len(d.Sessions)
			if len(d.Sessions) > 0 && d.Sessions[0].Ended == nil {
				running[id] = true
			}
		}
		return all, running
	}
	await(t, "two to run and one to wait", func() (bool, error) { // a place is taken before its session is written
		s, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{})
		if err != nil || s.Running != 2 || s.Waiting != 1 {
			return false, err
		}
		_, running := sessions()
		return len(running) == 2, nil
	})
	all, running := sessions()
	if all != 2 || len(running) != 2 {
		t.Errorf("of 2 places, %d are taken, by %v", all, running)
	}
	for id := range running {
		if err := client.Do(t.Context(), c, api.ChangeCancel, api.Reason{Of: id, Reason: "make room"}); err != nil {
			t.Fatal(err)
		}
		break
	}
	await(t, "the third to run", func() (bool, error) {
		all, running := sessions()
		return all == 3 && len(running) == 2, nil
	})
	for _, id := range ids {
		err := client.Do(t.Context(), c, api.ChangeCancel, api.Reason{Of: id, Reason: "enough"})
		if err != nil && problem.KindOf(err) != problem.Conflict { // one is withdrawn already
			t.Error(err)
		}
		if at := rest(t, c, id, nil); at.State != api.Cancelled {
			t.Errorf("%s is %s: %s", id, at.State, at.Reason)
		}
	}
	w.stop(t, c)
	w.leftNothing(t)
}

// slow lets a condition take as long as a load does, on top of patience: it is true for await until then.
func slow(l size, ready func() (bool, error)) func() (bool, error) {
	for end := time.Now().Add(time.Duration(l.seconds) * time.Second); time.Now().Before(end); {
		if done, err := ready(); done || err != nil {
			return func() (bool, error) { return done, err }
		}
		<-time.After(50 * time.Millisecond)
	}
	return ready
}

// asking is how long a person waited for checkpoints that they asked for.
type asking struct{ took []time.Duration }

func (a asking) String() string {
	if len(a.took) == 0 {
		return "none"
	}
	slices.Sort(a.took)
	at := func(percent int) time.Duration {
		return a.took[min(len(a.took)-1, len(a.took)*percent/100)].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d, p50 %s, p95 %s, longest %s", len(a.took), at(50), at(95), at(100))
}

// askMeanwhile has three callers at a time ask each change for a checkpoint (SV-044).
func (w *world) askMeanwhile(t *testing.T, c *client.Client, ids []string) asking {
	t.Helper()
	var all asking
	var mu sync.Mutex
	var callers sync.WaitGroup
	for _, id := range ids {
		await(t, id+" to work", func() (bool, error) {
			_, err := os.Stat(filepath.Join(w.upper(id), newModel(uint64(slices.Index(ids, id)+1)).root))
			return err == nil, nil
		})
		for range 3 {
			callers.Go(func() {
				began := time.Now()
				err := watchedBy(t, func() error { _, err := client.Call(t.Context(), c, api.CheckpointTake, id); return err })
				if err != nil {
					t.Errorf("a checkpoint of %s: %v", id, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					all.took = append(all.took, time.Since(began))
				}
			})
		}
	}
	callers.Wait()
	if len(all.took) == 0 {
		t.Error("no checkpoint was had while the agents worked")
	}
	return all
}

// exactly holds the checkpoints of one change to what its generator made.
func (w *world) exactly(t *testing.T, c *client.Client, id string, seed uint64, base map[string]string) {
	d, err := client.Call(t.Context(), c, api.ChangeShow, id)
	if err != nil || d.Change.State != api.AwaitingApproval {
		t.Fatalf("%+v, %v\n%s", d.Change, err, w.said())
	}
	said := madeOf(t, transcript(t, c, id))
	trees, last := moments(seed, said.changes)
	if said.digest != last.digest() || said.files != len(last.files) {
		t.Fatalf("the generator says %q; its seed makes %d files, %s", said.text, len(last.files), last.digest())
	}
	moment, previous := 0, ""
	var gaps []time.Duration
	for i, cp := range d.Checkpoints {
		if cp.Number != i+1 || cp.Previous != previous {
			t.Errorf("checkpoint %d of %d: number %d, after %q, not %q", i+1, len(d.Checkpoints), cp.Number, cp.Previous, previous)
		}
		if i > 0 {
			gaps = append(gaps, cp.At.Sub(d.Checkpoints[i-1].At))
		}
		previous = cp.ID
		if cp.Status != "valid" {
			t.Errorf("checkpoint %d is %s: %v", cp.Number, cp.Status, cp.Violations)
		}
		digest, strangers := digestOf(t, w.host(t), cp.Commit, last.root, base)
		at, ok := trees[digest]
		if !ok || at < moment {
			t.Errorf("checkpoint %d (%s) is the tree of no moment after change %d", cp.Number, cp.Trigger, moment)
		}
		moment = at
		if len(strangers) > 0 {
			t.Errorf("checkpoint %d has what others did: %q", cp.Number, strangers)
		}
		for _, name := range cp.Files {
			if !strings.HasPrefix(name, last.root+"/") {
				t.Errorf("checkpoint %d credits %q to %s", cp.Number, name, id)
			}
		}
	}
	n := len(d.Checkpoints)
	if n < 2 || d.Checkpoints[n-1].Trigger != "end" {
		t.Fatalf("%d checkpoints", n)
	}
	if digest, _ := digestOf(t, w.host(t), d.Checkpoints[n-1].Commit, last.root, base); digest != said.digest {
		t.Errorf("the last checkpoint has the digest %s, the generator %s", digest, said.digest)
	}
	w.counted(t, id, d.Checkpoints, last)
	t.Logf("%s; %d checkpoints, at the most %s apart", said.text, n, slices.Max(gaps).Round(time.Millisecond))
}

// counted holds the log of file changes to what was made: every file there is has been added, every other one that was
// seen is gone by the log too, and none is another change's (SV-061, SV-062).
func (w *world) counted(t *testing.T, id string, checkpoints []api.Checkpoint, last *model) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.home, ".state", "changes", id, "logs", "file-changes.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{} // path → what happened to it last
	kinds := map[string]int{}
	known := map[string]bool{}
	for _, cp := range checkpoints {
		known[cp.ID] = true
	}
	for line := range strings.Lines(string(raw)) {
		var e struct {
			Timestamp    time.Time `json:"timestamp"`
			EventType    string    `json:"event_type"`
			FilePath     string    `json:"file_path"`
			FileSize     *int64    `json:"file_size"`
			CheckpointID *string   `json:"checkpoint_id"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Timestamp.IsZero() || e.FileSize == nil || !slices.Contains([]string{"add", "change", "unlink"}, e.EventType) {
			t.Fatalf("the line %q: %v", line, err)
		}
		if !strings.HasPrefix(e.FilePath, last.root+"/") || e.CheckpointID != nil && !known[*e.CheckpointID] {
			t.Errorf("the line %q is another change's", line)
		}
		at[e.FilePath] = e.EventType
		kinds[e.EventType]++
	}
	missed, ghosts := 0, 0
	for name := range last.files {
		if at[name] == "" || at[name] == "unlink" {
			missed++
		}
	}
	for name, kind := range at {
		if _, ok := last.files[name]; !ok && kind != "unlink" {
			ghosts++
		}
	}
	if missed > 0 || ghosts > 0 {
		t.Errorf("of %d files the log misses %d, and it has %d that are not there any more", len(last.files), missed, ghosts)
	}
	t.Logf("the log has %v", kinds)
}

// used is what a process has used.
type used struct {
	cpu       time.Duration // with that of the children it waited for
	peakBytes int64
}

func usage(t *testing.T, pid int) used {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var u used
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, ticks := range fields[11:15] { // of 100 a second
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		u.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			u.peakBytes = n << 10
		}
	}
	return u
}

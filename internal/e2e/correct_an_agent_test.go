package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// mendsAt is how many paths mend has touched when it waits: the host looks once all of them stand.
const mendsAt = 3

// mend breaks two rules beside honest work, and does nothing more before it is told so. Then it says what it finds, mends what
// is still broken, and works on.
func mend([]string) error {
	for _, err := range []error{put("ok.txt", "first\n"), put("keep.txt", "broken\n"), put("deep/bad.lock", "not allowed\n")} {
		if err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			Type       string `json:"type"`
			ID         string `json:"checkpoint_id"`
			Action     string `json:"action_taken"`
			Ack        bool   `json:"requires_acknowledgment"`
			Violations []struct{ File, Constraint, Suggestion string }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		if m.Type != "checkpoint_violation" {
			continue
		}
		kept, _ := os.ReadFile("keep.txt")
		_, bad := os.Lstat("deep/bad.lock")
		honest, _ := os.ReadFile("ok.txt")
		fmt.Printf("found %s %q %v %q %d %v\n", m.Action, kept, bad == nil, honest, len(m.Violations), m.Ack)
		fmt.Printf(`{"type":"violation_ack","checkpoint_id":%q,"understood":true,"corrective_action":"I mend both files"}`+"\n", m.ID)
		break
	}
	if err := lines.Err(); err != nil {
		return err
	}
	f, err := os.OpenFile("ok.txt", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("next\n"); err != nil {
		return err
	}
	for _, err := range []error{f.Close(), put("keep.txt", "second\n"), os.RemoveAll("deep/bad.lock"), put("after.txt", "after\n")} {
		if err != nil {
			return err
		}
	}
	return nil
}

// meeting is how one way of supervision meets an agent that breaks rules.
type meeting struct {
	name, strategy string
	found          string // what the agent finds once it is told
	honest         string // ok.txt at the end
}

// TestAnAgentThatBreaksARuleIsToldAndGoesOn is SV-020, SV-022, SV-031, SV-072 and SV-083: what it is told, and what it finds then.
func TestAnAgentThatBreaksARuleIsToldAndGoesOn(t *testing.T) {
	if !apart(t) {
		return
	}
	told(t, "",
		meeting{"nothing goes back", "direct_worktree", `found none "broken\n" true "first\n" 2 true`, "first\nnext\n"},
		meeting{"all goes back", "shadow_workspace", `found reverted "second\n" false "" 2 true`, "next\n"})
}

// TestWhatBreaksARuleGoesBackUnderTheAgentsFeet is SV-025 and the live restore: the agent reads the restored bytes, and what it
// writes next counts.
func TestWhatBreaksARuleGoesBackUnderTheAgentsFeet(t *testing.T) {
	if !apart(t) {
		return
	}
	told(t, ", revert_on_violation: true, shadow_workspace: {promotion_strategy: incremental}",
		meeting{"what breaks a rule goes back", "direct_worktree", `found reverted "second\n" false "first\n" 2 true`, "first\nnext\n"},
		meeting{"what breaks a rule goes back in a shadow", "shadow_workspace", `found reverted "second\n" false "first\n" 2 true`, "first\nnext\n"})
}

func told(t *testing.T, more string, all ...meeting) {
	w := newWorld(t)
	w.configure(t, map[string]string{
		"sallyport.yaml": fmt.Sprintf("interactive: {watchdog_poll_interval_ms: 100, checkpoint_interval_ms: 3600000, max_uncommitted_changes: %d%s}\n", mendsAt, more),
		"policy.yaml":    "forbidden_areas: ['**/*.lock', keep.txt]\n",
	})
	w.before = look(t, w.repo)
	c := w.start(t)
	ids := make([]string, len(all))
	for i, m := range all {
		ch, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{
			Dir: w.repo, Text: m.name, Agent: "command", Argv: []string{w.bin, "agent", "mend", "both"}, Messages: true, Strategy: m.strategy,
			Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: "later",
		})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = ch.ID
	}
	for i, m := range all {
		t.Run(m.name, func(t *testing.T) {
			at := rest(t, c, ids[i], nil)
			d, err := client.Call(t.Context(), c, api.ChangeShow, at.ID)
			if err != nil || at.State != api.AwaitingApproval || len(d.Sessions) != 1 || len(d.Checkpoints) < 2 {
				t.Fatalf("%v: %s (%s), %d sessions, %d checkpoints\n%s\n%s", err, at.State, at.Reason, len(d.Sessions), len(d.Checkpoints), transcript(t, c, at.ID), w.said())
			}
			first, last := d.Checkpoints[0], d.Checkpoints[len(d.Checkpoints)-1]
			if first.Status != "invalid" || first.Trigger != "changes" || !slices.Equal(broken(first), []string{"deep/bad.lock: forbidden_area", "keep.txt: forbidden_area"}) {
				t.Errorf("the first checkpoint (%s) is %s: %q", first.Trigger, first.Status, broken(first))
			}
			if last.Status != "valid" || !slices.Equal(last.Files, []string{"after.txt", "ok.txt"}) {
				t.Errorf("the last checkpoint is %s: %q, %q", last.Status, last.Files, broken(last))
			}
			if is := git(t, w.host(t), "cat-file", "blob", last.Commit+":ok.txt"); is != m.honest {
				t.Errorf("what it wrote next is %q, not %q", is, m.honest)
			}
			said := transcript(t, c, at.ID)
			quoted, _ := json.Marshal(m.found)
			if !strings.Contains(said, strings.Trim(string(quoted), `"`)) {
				t.Errorf("it did not find %s: %s", quoted, said)
			}
			entries, err := client.Call(t.Context(), c, api.AuditList, api.Entries{Change: at.ID, Limit: 1000})
			if err != nil || !slices.ContainsFunc(entries, func(e api.Entry) bool { return e.Verb == "told and acknowledged" }) {
				t.Errorf("the audit says nothing of what it was told: %v", err)
			}
		})
	}
	w.truthful(t, c)
	w.stop(t, c)
	w.leftNothing(t)
	untouched(t, w.before, look(t, w.repo), nil)
}

// turn does a stage of everything that can be done to a tree, waits at each gate, and after the fifth only says what it sees: turn GATE.
func turn(args []string) error {
	wait := func(stage int) {
		for {
			if _, err := os.Stat(filepath.Join(args[0], strconv.Itoa(stage))); err == nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	binary := strings.Repeat("\x00\xff\x01", 30000)
	for stage, all := range [][]func() error{
		{func() error { return put("added.txt", "1\n") }, func() error { return os.Remove("gone.txt") }, func() error { return put("binary.dat", binary) }},
		{func() error { return os.Rename("old.txt", "moved.txt") }, func() error { return os.Chmod("tool.sh", 0o755) }, func() error { return put("new/deep/er/file", "2\n") }},
		{func() error { return put("binary.dat", binary[1:]) }, func() error { return os.RemoveAll("new") }, func() error { return put("new", "a file now\n") }},
		{func() error { return os.RemoveAll("deep") }, func() error { return os.Chmod("tool.sh", 0o644) }, func() error { return os.Remove("wasfile") }, func() error { return put("wasfile/in", "3\n") }},
		{func() error { return os.Rename("moved.txt", "back/old.txt") }, func() error { return put("gone.txt", "again\n") }, func() error { return put("added.txt", "") }},
	} {
		if stage == 4 {
			if err := os.Mkdir("back", 0o755); err != nil {
				return err
			}
		}
		for _, do := range all {
			if err := do(); err != nil {
				return err
			}
		}
		fmt.Println("stage", stage+1)
		wait(stage + 1)
	}
	for stage := 6; stage < 9; stage++ {
		files, err := onDiskBelow(".")
		if err != nil {
			return err
		}
		m := &model{}
		for name, entry := range files {
			if !strings.HasPrefix(name, ".git/") {
				m.add(name, entry, false)
			}
		}
		if err := put(fmt.Sprintf("next-%d", stage), "next\n"); err != nil {
			return err
		}
		fmt.Printf("sees %d %s\n", stage, m.digest())
		wait(stage)
	}
	return nil
}

// TestGoingBackUnderARunningAgentIsByteExact is SV-048, SV-050 and SV-903: from the fifth checkpoint to the second, and on to the
// fourth, over adds, deletes, renames, modes and binaries. The agent sees exactly that, and what it writes next counts.
func TestGoingBackUnderARunningAgentIsByteExact(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, nil)
	gate := filepath.Join(w.dir, "gate")
	if err := os.Mkdir(gate, 0o755); err != nil {
		t.Fatal(err)
	}
	open := func(stage int) {
		t.Helper()
		disktest.Put(t, filepath.Join(gate, strconv.Itoa(stage)), "", 0o644)
	}
	c := w.start(t)
	ch, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{
		Dir: w.repo, Text: "turn", Agent: "command", Argv: []string{w.bin, "agent", "turn", gate}, Shares: []string{gate},
		Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: "later",
	})
	if err != nil {
		t.Fatal(err)
	}
	says := func(what string) {
		t.Helper()
		await(t, "the agent to say "+what, func() (bool, error) {
			d, err := client.Call(t.Context(), c, api.ChangeShow, ch.ID)
			if err != nil || d.Change.State != api.Working || len(d.Sessions) == 0 {
				return api.Final(d.Change.State), err
			}
			return strings.Contains(transcript(t, c, ch.ID), what), nil
		})
	}
	take := func() (cp api.Checkpoint) {
		t.Helper()
		err := watchedBy(t, func() (err error) { cp, err = client.Call(t.Context(), c, api.CheckpointTake, ch.ID); return err })
		if err != nil || cp.Status != "valid" {
			t.Fatalf("%+v, %v\n%s", cp, err, w.said())
		}
		return cp
	}
	var stages []api.Checkpoint
	for stage := 1; stage <= 5; stage++ {
		says(fmt.Sprintf("stage %d", stage))
		stages = append(stages, take())
		if stage < 5 {
			open(stage)
		}
	}
	at := 6
	for _, to := range []api.Checkpoint{stages[1], stages[3], stages[0]} {
		back, err := client.Call(t.Context(), c, api.CheckpointRestore, to.ID)
		if err != nil || back.Tree != to.Tree || back.Status != "valid" {
			t.Fatalf("restored to %s: %+v, %v\n%s", to.ID, back, err, w.said())
		}
		open(at - 1)
		want := &model{}
		tree := listed(t, w.host(t), to.Commit)
		for name, entry := range tree {
			want.add(name, entry, false)
		}
		says(fmt.Sprintf("sees %d ", at))
		if said := transcript(t, c, ch.ID); !strings.Contains(said, fmt.Sprintf("sees %d %s", at, want.digest())) {
			t.Errorf("restored to %s, the agent sees another tree than %s: %s", to.ID, want.digest(), said)
		}
		next := take()
		tree[fmt.Sprintf("next-%d", at)] = "100644 " + blob([]byte("next\n"))
		if is := listed(t, w.host(t), next.Commit); !sameTree(is, tree) {
			t.Errorf("after what it wrote next, the tree is %v, not %v", is, tree)
		}
		at++
	}
	open(at - 1)
	if rested := rest(t, c, ch.ID, nil); rested.State != api.AwaitingApproval {
		t.Errorf("it is %s: %s", rested.State, rested.Reason)
	}
	if d, err := client.Call(t.Context(), c, api.ChangeShow, ch.ID); err != nil || len(d.Sessions) != 1 {
		t.Errorf("%v: the agent was started %d times", err, len(d.Sessions))
	}
	w.truthful(t, c)
	w.stop(t, c)
	w.leftNothing(t)
}

func sameTree(a, b map[string]string) bool {
	for name := range union(a, b) {
		if a[name] != b[name] {
			return false
		}
	}
	return true
}

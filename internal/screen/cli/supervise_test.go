package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/policy"
)

func invalid(n int) api.Checkpoint {
	c := api.Checkpoint{ID: "ckpt-002-0123abcd", Change: "chg-00000001", Number: 2, Status: "invalid", Severity: "error", Trigger: "changes", Files: []string{"a", "b"}, SinceLast: 1}
	for i := range n {
		c.Violations = append(c.Violations, policy.Violation{File: fmt.Sprintf("f%d", i), Constraint: "forbidden_area", Message: "no change may touch it", Suggestion: "leave it"})
	}
	return c
}

func TestRunHandsOnHowTheProgramIsWatched(t *testing.T) {
	d := newDaemon(t)
	d.accepted, d.detail = api.Change{ID: "chg-00000001"}, finalized()
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	disktest.Put(t, plan, "allowed_areas: [src]\nforbidden_areas: [src/gen]\n", 0o600)
	got := d.cli("run", "--request", "x", "--strategy", "shadow_workspace", "--messages", "--execution-mode", "interactive", "--plan", plan, "--forbid", "vendor", "--", "true")
	if r := d.run; got.code != exitDone || r.Strategy != "shadow_workspace" || !r.Messages || r.ExecutionMode != "interactive" || fmt.Sprint(r.Allow, r.Forbid) != "[src] [vendor src/gen]" {
		t.Errorf("exit %d asked %+v\n%s", got.code, d.run, got.err)
	}
	got = d.cli("run", "--request", "x", "--plan", plan, "--allow", "docs", "--", "true")
	if got.code != exitUsage || !strings.Contains(got.err, "--allow and the allowed_areas of --plan") {
		t.Errorf("two lists of what may change: exit %d %s", got.code, got.err)
	}
	disktest.Put(t, plan, "allowed: [src]\n", 0o600)
	got = d.cli("run", "--request", "x", "--plan", plan, "--", "true")
	if got.code != exitUsage || !strings.Contains(got.err, "plan.yaml:1:1: allowed: there is no such key") {
		t.Errorf("a plan with an unknown key: exit %d %s", got.code, got.err)
	}
}

func TestEachCheckpointIsSaidAsItHappensWithWhatWasDone(t *testing.T) {
	d := newDaemon(t)
	d.accepted, d.detail = api.Change{ID: "chg-00000001"}, finalized()
	bad := invalid(7)
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"},
		{Seq: 2, Kind: "checkpoint", Checkpoint: &api.Checkpoint{ID: "ckpt-001-0123abcd", Status: "skipped", Files: []string{"a"}}},
		{Seq: 3, Kind: "checkpoint", Text: "put back: f0", Checkpoint: &bad},
		{Seq: 4, Kind: "state", State: "paused", Change: "chg-00000001", Text: "let me look"},
		{Seq: 5, Kind: "state", State: "working"}}
	home := t.TempDir()
	got := d.cli("--home", home, "run", "--request", "x", "--", "true")
	want := `chg-00000001 checkpoint ckpt-001-0123abcd skipped, 1 file changed
chg-00000001 checkpoint ckpt-002-0123abcd invalid, 2 files changed
chg-00000001   ! f0: forbidden_area: no change may touch it
chg-00000001     leave it
`
	if !strings.Contains(got.err, want) || strings.Contains(got.err, "f5:") {
		t.Errorf("said %s", got.err)
	}
	if !strings.Contains(got.err, "f4: forbidden_area: no change may touch it\nchg-00000001     leave it\nchg-00000001   … and 2 violations more\nchg-00000001   put back: f0\n") {
		t.Errorf("the rest is not counted, or what was done is not said: %s", got.err)
	}
	if !strings.Contains(got.err, "paused: let me look\nchg-00000001 next: sallyport --home "+home+" change resume chg-00000001\n") {
		t.Errorf("a pause without a way on: %s", got.err)
	}
}

func TestTellSaysWhetherItArrivedAndWhatTheAgentSaid(t *testing.T) {
	d := newDaemon(t)
	d.delivery = api.Delivery{Delivered: true, Acknowledged: true, AgentResponse: "I see:\nthe \x1b[31mother"}
	got := d.cli("change", "tell", "chg-00000001", "use", "--force", "now")
	if got.code != exitDone || d.told() != `tell chg-00000001{"text":"use --force now"}` {
		t.Errorf("exit %d told %s %s", got.code, d.told(), got.err)
	}
	if got.out != "chg-00000001 delivered, acknowledged\nthe agent says, in its own words, which nobody checked:\n  > I see:\n  > the \\x1b[31mother\n" {
		t.Errorf("said %q", got.out)
	}
	d.delivery = api.Delivery{Delivered: true}
	if got := d.cli("change", "tell", "chg-00000001", "x"); got.code != exitDone || got.out != "chg-00000001 delivered, not acknowledged\n" {
		t.Errorf("exit %d said %q", got.code, got.out)
	}
	d.delivery = api.Delivery{}
	if got := d.cli("change", "tell", "chg-00000001", "x"); got.code != exitError || got.out != "" || !strings.Contains(got.err, "did not reach the agent of chg-00000001") || !strings.Contains(got.err, "next: sallyport change log chg-00000001") {
		t.Errorf("exit %d said %q %q", got.code, got.out, got.err)
	}
}

func TestAWorkingTreeGoesBackInThreeWays(t *testing.T) {
	d := newDaemon(t)
	d.taken = api.Checkpoint{ID: "ckpt-006-0123abcd", Change: "chg-00000001", Status: "valid", Files: []string{"a"}}
	d.returned = api.Returned{Checkpoint: d.taken, Reverted: []string{"b", "c\n"}, Kept: 3}
	for _, tc := range []struct {
		args      []string
		told, out string
	}{
		{[]string{"--checkpoint", "ckpt-002-0123abcd"}, "restore ckpt-002-0123abcd",
			"the work of chg-00000001 is again what it was at ckpt-002-0123abcd\ncheckpoint ckpt-006-0123abcd valid, 1 file changed\nnext: sallyport change watch chg-00000001\n"},
		{[]string{"chg-00000001", "--file", "b", "--file", "c\n"}, `put back {"paths":["b","c\n"]}`,
			"Reverted 2 files\n  b\n  $'c\\n'\nKept 3 other changes\ncheckpoint ckpt-006-0123abcd valid, 1 file changed\n"},
		{[]string{"chg-00000001", "--smart"}, `put back {"violating":true}`,
			"Reverted 2 files with violations\n  b\n  $'c\\n'\nKept 3 valid changes\ncheckpoint ckpt-006-0123abcd valid, 1 file changed\n"},
	} {
		d.calls = nil
		got := d.cli(append([]string{"rollback"}, tc.args...)...)
		if got.code != exitDone || d.told() != tc.told || got.out != tc.out {
			t.Errorf("%q: exit %d told %s said %q %q", tc.args, got.code, d.told(), got.out, got.err)
		}
		got = d.cli(append([]string{"rollback", "--json"}, tc.args...)...)
		if got.code != exitDone || !json.Valid([]byte(got.out)) || strings.Contains(got.out, "Reverted ") {
			t.Errorf("%q in JSON: exit %d %q", tc.args, got.code, got.out)
		}
	}
}

func TestASessionIsResumedByItsIdentityAndFollowed(t *testing.T) {
	d := newDaemon(t)
	d.accepted, d.detail = api.Change{ID: "chg-00000001", Approve: "yes"}, finalized()
	got := d.cli("resume", "my-agent-1a2b3")
	if got.code != exitDone || d.told() != "resume session my-agent-1a2b3{}" || !strings.Contains(got.out, "landed on main") || !strings.Contains(got.out, "digest 0123456789ab") {
		t.Errorf("exit %d told %s\n%s\n%s", got.code, d.told(), got.out, got.err)
	}
	d.err = problem.Errorf(problem.NotFound, "sallyport change list", "there is no session %q in this home", "my-agent-1a2b3")
	got = d.cli("resume", "my-agent-1a2b3")
	if got.code != exitError || !strings.Contains(got.err, `there is no session "my-agent-1a2b3"`) {
		t.Errorf("exit %d %s", got.code, got.err)
	}
}

// RM-026: where an agent can go on, the end of what is said is how.
// TestASessionThatProposedIsNoFault holds that its signal, by which the host ended it, is not what a person reads.
func TestASessionThatProposedIsNoFault(t *testing.T) {
	at := time.Now()
	ended := at.Add(time.Minute)
	run := api.Session{Started: at, Ended: &ended, Exit: &api.Exit{Signal: "SIGKILL"}, Reason: "it has proposed", Proposed: true}
	if got := exitText(run, api.Submitted, ended); got != "ended after 1m00s: it has proposed" {
		t.Errorf("it reads %q", got)
	}
	if run.Proposed = false; exitText(run, api.Submitted, ended) != "ended by SIGKILL after 1m00s: it has proposed" {
		t.Errorf("another reads %q", exitText(run, api.Submitted, ended))
	}
}

func TestTheEndOfASessionSaysHowToResumeIt(t *testing.T) {
	const hint = "resume: sallyport resume sh-1a2b3\n"
	for state, wanted := range map[string]bool{
		api.Failed: true, api.Cancelled: true, api.Rejected: true, api.Paused: true, api.Blocked: true,
		api.Finalized: false, api.AwaitingApproval: false, api.RolledBack: false, api.RollbackFailed: false,
	} {
		d := newDaemon(t)
		d.accepted = api.Change{ID: "chg-00000001"}
		d.detail = finalized()
		d.detail.Change.State = state
		d.detail.Sessions = []api.Session{{ID: "sh-00000"}, {ID: "sh-1a2b3"}}
		for _, args := range [][]string{{"run", "--request", "x", "--", "true"}, {"change", "watch", "chg-00000001"}} {
			if got := d.cli(args...); strings.HasSuffix(got.err, hint) != wanted {
				t.Errorf("%s, %s: %q", state, args[0], got.err)
			}
		}
		if got := d.cli("change", "show", "chg-00000001"); strings.HasSuffix(got.out, hint) != wanted {
			t.Errorf("%s, show: %q", state, got.out)
		}
		d.detail.Sessions = nil
		if got := d.cli("change", "watch", "chg-00000001"); strings.Contains(got.err, "resume: ") {
			t.Errorf("%s: without a session there is one to resume: %q", state, got.err)
		} else if ended := wanted && api.Final(state); strings.HasSuffix(got.err, "begin again: sallyport change redo chg-00000001\n") != ended {
			t.Errorf("%s: without a session: %q", state, got.err)
		}
	}
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.after = func(string) { // the approval led to a failure
		d.detail.Change.State, d.detail.Sessions = api.Failed, []api.Session{{ID: "sh-1a2b3"}}
	}
	if got := d.cli("approve", "chg-00000001"); !strings.HasSuffix(got.err, hint) {
		t.Errorf("after an approval: %q", got.err)
	}
	d.after, d.detail.Change.State = nil, api.Cancelled
	home := t.TempDir()
	if got := d.cli("--home", home, "change", "cancel", "chg-00000001"); !strings.HasSuffix(got.err, "resume: sallyport --home "+home+" resume sh-1a2b3\n") {
		t.Errorf("after a cancellation: %q", got.err)
	}
}

// A change of what a group runs is asked for anew once it is over, so no command takes it up.
func TestOnlyAnOpenChangeOfAGroupSaysHowToResumeIt(t *testing.T) {
	for state, wanted := range map[string]bool{
		api.Failed: false, api.Cancelled: false, api.Rejected: false, api.Paused: true, api.Blocked: true,
	} {
		d := newDaemon(t)
		d.detail = finalized()
		d.detail.Change.State, d.detail.Change.Kind, d.detail.Change.Group, d.detail.Change.Dev = state, "swap", "echo", "dev-greets"
		d.detail.Sessions = []api.Session{{ID: "echo-1a2b3"}}
		if got := d.cli("change", "watch", "chg-00000001"); strings.HasSuffix(got.err, "resume: sallyport resume echo-1a2b3\n") != wanted {
			t.Errorf("%s: %q", state, got.err)
		}
		d.detail.Sessions = nil
		if got := d.cli("change", "watch", "chg-00000001"); strings.Contains(got.err, "begin again") {
			t.Errorf("%s, without a session: %q", state, got.err)
		}
	}
}

func TestABlockedAgentComesWithAllThatCanBeDone(t *testing.T) {
	d := newDaemon(t)
	d.detail = failed(problem.Refused, "3 checkpoints in a row break the rules; the agent is stopped")
	d.detail.Change.State, d.detail.Change.Next = api.Blocked, "sallyport change resume chg-00000001"
	got := d.cli("change", "watch", "chg-00000001")
	for _, want := range []string{"3 checkpoints in a row", "next: sallyport change resume chg-00000001", "sallyport checkpoint list chg-00000001", "sallyport checkpoint now chg-00000001", "sallyport change cancel chg-00000001"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("%q is not said in %s", want, got.err)
		}
	}
	if got.code != exitRefused {
		t.Errorf("exit %d", got.code)
	}
}

func TestAnAgentIsPausedRecordedAndLetGoOn(t *testing.T) {
	d := newDaemon(t)
	d.taken = invalid(1)
	for _, tc := range []struct {
		args      []string
		told, out string
	}{
		{[]string{"change", "pause", "chg-00000001", "--reason", "wait"}, `pause {"reason":"wait"}`, "sallyport change resume chg-00000001"},
		{[]string{"change", "resume", "chg-00000001"}, "resume chg-00000001", "sallyport change watch chg-00000001"},
		{[]string{"checkpoint", "now", "chg-00000001"}, "checkpoint now chg-00000001", "checkpoint ckpt-002-0123abcd invalid, 2 files changed\n  a\n  b\n  ! f0: forbidden_area"},
		{[]string{"checkpoint", "export", "ckpt-002-0123abcd"}, "export ckpt-002-0123abcd", "/h/.state/changes/chg-00000001/checkpoints/ckpt-002-0123abcd.diff\n"},
		{[]string{"checkpoint", "diff", "ckpt-001-0123abcd", "ckpt-002-0123abcd"}, "diff ckpt-002-0123abcd from=ckpt-001-0123abcd", ""},
		{[]string{"checkpoint", "diff", "ckpt-002-0123abcd"}, "diff ckpt-002-0123abcd ", ""},
	} {
		d.calls = nil
		if got := d.cli(tc.args...); got.code != exitDone || d.told() != tc.told || !strings.Contains(got.out, tc.out) {
			t.Errorf("%q: exit %d told %q said %q %q", tc.args, got.code, d.told(), got.out, got.err)
		}
		if got := d.cli(append(tc.args, "--json")...); got.code != exitDone || !json.Valid([]byte(got.out)) {
			t.Errorf("%q in JSON: exit %d %q", tc.args, got.code, got.out)
		}
	}
}

func TestTheCheckpointsOfAChangeAreALineOfTime(t *testing.T) {
	d := newDaemon(t)
	d.detail.Checkpoints = []api.Checkpoint{
		{ID: "ckpt-001-0123abcd", Status: "valid", Trigger: "interval", Files: []string{"a"}, SinceLast: 1}, invalid(1)}
	got := d.cli("checkpoint", "list", "chg-00000001")
	for _, want := range []string{"ckpt-001-0123abcd  valid, 1 file since the last, 1 in all, as time passed\n", "ckpt-002-0123abcd  invalid (error), 1 file since the last, 2 in all, after many changes\n  ! f0: forbidden_area"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in %s", want, got.out)
		}
	}
}

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/policy"
)

func TestWordsThatAreWrongExitWithUsageAndTheWayOut(t *testing.T) {
	d := newDaemon(t)
	for name, tc := range map[string]struct {
		args []string
		text string // in what is said
		next string
	}{
		"no such command":       {[]string{"frobnicate"}, "frobnicate", "sallyport --help"},
		"no such verb":          {[]string{"change", "frobnicate"}, "frobnicate", "sallyport change --help"},
		"no verb":               {[]string{"approval"}, "list, show", "sallyport approval --help"},
		"no such flag":          {[]string{"status", "--frob"}, "--frob", "sallyport status --help"},
		"too many words":        {[]string{"status", "now"}, "\"now\" is one word too many", "sallyport status --help"},
		"no id":                 {[]string{"change", "export"}, "CHANGE is missing", "sallyport change export --help"},
		"a verb without a noun": {[]string{"tell"}, `there is no command "tell"`, "sallyport change tell --help"},
		"a verb of two nouns":   {[]string{"diff"}, `did you mean change diff or checkpoint diff?`, "sallyport --help"},
		"a verb of many nouns":  {[]string{"remove"}, `did you mean channel remove, person remove, schedule remove, service remove or wiring remove?`, "sallyport --help"},
		"another word for yes":  {[]string{"accept"}, `there is no command "accept"`, "sallyport approve --help"},
		"another word for no":   {[]string{"reject"}, `there is no command "reject"`, "sallyport refuse --help"},
		"another word for back": {[]string{"undo"}, `there is no command "undo"`, "sallyport rollback --help"},
		"the usual list":        {[]string{"list"}, `there is no command "list"`, "sallyport change list --help"},
		"a command mistyped":    {[]string{"chnage"}, `there is no command "chnage"`, "sallyport change --help"},
		"one of two commands":   {[]string{"statsu"}, `there is no command "statsu"; did you mean `, "sallyport --help"},
		"a verb mistyped":       {[]string{"change", "lst"}, `change has no command "lst"`, "sallyport change list"},
		"approval for change":   {[]string{"change", "show", "apr-00000001"}, `"apr-00000001" is the id of an approval`, "sallyport change list"},
		"change for point":      {[]string{"checkpoint", "show", "chg-00000001"}, "chg-00000001", "sallyport checkpoint list chg-00000001"},
		"checkpoint to approve": {[]string{"approve", "ckpt-001-0123abcd"}, "ckpt-001-0123abcd", "sallyport approval list"},
		"an id that is none":    {[]string{"rollback", "../../etc"}, "../../etc", "sallyport change list"},
		"no request":            {[]string{"run", "--", "true"}, "--request", "sallyport run --help"},
		"agent and command":     {[]string{"run", "--agent", "pi", "--request", "x", "--", "true"}, `--agent "pi" and a COMMAND or --replay cannot`, "sallyport run --help"},
		"agent and script":      {[]string{"run", "--agent", "pi", "--request", "x", "--replay", "f"}, `--agent "pi" and a COMMAND or --replay cannot`, "sallyport run --help"},
		"two requests":          {[]string{"run", "--agent", "pi", "--request", "x", "do it"}, "give one of the two", "sallyport run --help"},
		"a request unquoted":    {[]string{"run", "--agent", "pi", "do", "it", "--check", "x"}, `put all of it in quotes: "do it"`, "sallyport run --help"},
		"flags of a command":    {[]string{"run", "sed", "-i", "s/a/b/"}, "a COMMAND comes after --", "sallyport run --help"},
		"a model of a command":  {[]string{"run", "--model", "m", "--request", "x", "--", "true"}, "--model \"m\" is for an agent", "sallyport run --help"},
		"messages to an agent":  {[]string{"run", "--agent", "pi", "--messages", "do it"}, "--messages is for a COMMAND", "sallyport run --help"},
		"no dashes":             {[]string{"run", "--request", "do it", "sed", "-i", "s/a/b/", "my file"}, `"sed"`, "sallyport run --request 'do it' -- sed -i s/a/b/ 'my file'"},
		"both":                  {[]string{"run", "--request", "x", "--replay", "f", "--", "true"}, "--replay", "sallyport run --help"},
		"replay that is not":    {[]string{"run", "--request", "x", "--replay", "/nowhere/f"}, "/nowhere/f", "sallyport run --help"},
		"approve maybe":         {[]string{"run", "--request", "x", "--approve", "maybe", "--", "true"}, "maybe", "sallyport run --help"},
		"ask without terminal":  {[]string{"run", "--request", "x", "--approve", "ask", "--", "true"}, "terminal", "sallyport run --help"},
		"bad duration":          {[]string{"run", "--request", "x", "--timeout", "soon", "--", "true"}, "soon", "sallyport run --help"},
		"refuse without why":    {[]string{"refuse", "chg-00000001"}, "reason", `sallyport refuse chg-00000001 --reason "…"`},
		"no such state":         {[]string{"change", "list", "--state", "nope"}, "awaiting_approval", "sallyport change list --help"},
		"no such shell":         {[]string{"completion", "tcsh"}, "bash, fish", "sallyport completion --help"},
		"no such topic":         {[]string{"help", "nope"}, `"nope"`, "sallyport --help"},
		"no topic of a command": {[]string{"help", "chat", "change"}, `there is no help for "chat change"`, "sallyport chat --help"},
		"no topic of a noun":    {[]string{"help", "change", "frob"}, `there is no help for "change frob"`, "sallyport change --help"},
		"a topic mistyped":      {[]string{"help", "chnage"}, `there is no command "chnage"`, "sallyport change --help"},
		"no time":               {[]string{"run", "--request", "x", "--timeout", "0", "--", "true"}, "--timeout 0s", "sallyport run --help"},
		"strategy that is none": {[]string{"run", "--request", "x", "--strategy", "shadow", "--", "true"}, `"shadow"`, "sallyport run --help"},
		"deterministic command": {[]string{"run", "--request", "x", "--execution-mode", "deterministic", "--", "true"}, "--execution-mode deterministic is refused", "sallyport run --help"},
		"mode that is none":     {[]string{"run", "--request", "x", "--execution-mode", "both", "--", "true"}, `"both"`, "sallyport run --help"},
		"messages to a script":  {[]string{"run", "--request", "x", "--messages", "--replay", os.Args[0]}, "--replay", "sallyport run --help"},
		"plan that is not":      {[]string{"run", "--request", "x", "--plan", "/nowhere/p", "--", "true"}, "the plan /nowhere/p does not exist", "${EDITOR:-vi} /nowhere/p"},
		"deterministic resume":  {[]string{"resume", "sh-1a2b3", "--execution-mode", "deterministic"}, "--execution-mode deterministic is refused", "sallyport resume --help"},
		"change to resume":      {[]string{"resume", "chg-00000001"}, `"chg-00000001" is a change`, "sallyport change resume chg-00000001"},
		"nobody to resume":      {[]string{"resume", "me"}, `"me" is not the identity`, "sallyport change list"},
		"two ways back":         {[]string{"rollback", "chg-00000001", "--smart", "--file", "a"}, "--file and --smart cannot be used together", "sallyport rollback --help"},
		"three ways back":       {[]string{"rollback", "--checkpoint", "ckpt-001-0123abcd", "--smart"}, "--checkpoint and --smart", "sallyport rollback --help"},
		"list and change":       {[]string{"rollback", "--list", "chg-00000001"}, "one word too many", "sallyport rollback --help"},
		"list and smart":        {[]string{"rollback", "--list", "--smart"}, "--list and --smart", "sallyport rollback --help"},
		"repo without list":     {[]string{"rollback", "chg-00000001", "--repo", "."}, "--repo is for --list", "sallyport rollback --help"},
		"change and checkpoint": {[]string{"rollback", "chg-00000001", "--checkpoint", "ckpt-001-0123abcd"}, "one word too many", "sallyport rollback --help"},
		"approve no landing":    {[]string{"rollback", "chg-00000001", "--smart", "--approve", "yes"}, "--approve", "sallyport rollback --help"},
		"reason for no landing": {[]string{"rollback", "--checkpoint", "ckpt-001-0123abcd", "--reason", "x"}, "--reason", "sallyport rollback --help"},
		"change for checkpoint": {[]string{"rollback", "--checkpoint", "chg-00000001"}, "chg-00000001", "sallyport checkpoint list chg-00000001"},
		"no file to return":     {[]string{"rollback", "chg-00000001", "--file", ""}, `--file "" has no value`, "sallyport rollback --help"},
		"nothing to tell":       {[]string{"change", "tell", "chg-00000001"}, "TEXT is missing", "sallyport change tell --help"},
		"nobody to tell":        {[]string{"change", "tell"}, "CHANGE", "sallyport change tell --help"},
		"entry that is none":    {[]string{"audit", "list", "--after", "x"}, `--after "x" is not a whole number`, "sallyport audit list --help"},
		"time behind request":   {[]string{"run", "do it", "--timeout", "soon"}, `--timeout "soon" is not a length of time`, "sallyport run --help"},
		"entries below none":    {[]string{"audit", "list", "--after", "-1"}, "--after -1 is too small", "sallyport audit list --help"},
		"list of none":          {[]string{"change", "list", "--limit", "0"}, "--limit 0 is too small", "sallyport change list --help"},
		"list below none":       {[]string{"change", "list", "--limit", "-1"}, "--limit -1 is too small", "sallyport change list --help"},
		"short digest":          {[]string{"approve", "chg-00000001", "--digest", "0123456789abcdef0123456789abcde"}, "32 characters", "sallyport approval show chg-00000001"},
	} {
		got := d.cli(tc.args...)
		if got.code != exitUsage || got.out != "" || !strings.Contains(got.err, tc.text) || !strings.Contains(got.err, "next: "+tc.next+"\n") {
			t.Errorf("%s: exit %d\nout %q\nerr %q", name, got.code, got.out, got.err)
		}
		if strings.Count(got.err, "sallyport: ") != 1 {
			t.Errorf("%s is said more than once: %q", name, got.err)
		}
		// The same in JSON is one object on standard output, and nothing elsewhere.
		got = d.cli(append([]string{"--json"}, tc.args...)...)
		var e event
		if err := json.Unmarshal([]byte(got.out), &e); err != nil || e.Error == nil || e.Error.Kind != "usage" || *e.Exit != exitUsage || got.err != "" || got.code != exitUsage {
			t.Errorf("%s in JSON: %v exit %d\nout %q\nerr %q", name, err, got.code, got.out, got.err)
		}
	}
	if d.told() != "" {
		t.Errorf("the daemon was asked: %s", d.told())
	}
}

func TestTheExitStatusSaysWhereAChangeCameToRest(t *testing.T) {
	for _, tc := range []struct {
		state string
		kind  problem.Kind
		want  int
	}{
		{api.Finalized, "", exitDone},
		{api.AwaitingApproval, "", exitWaiting},
		{api.AwaitingApproval, problem.Refused, exitRefused}, // landing was refused
		{api.AwaitingApproval, problem.Unavailable, exitError},
		{api.RolledBack, "", exitRolledBack},
		{api.RollbackFailed, problem.Internal, exitError},
		{api.Rejected, "", exitRefused},
		{api.Cancelled, "", exitRefused},
		{api.Failed, problem.Refused, exitRefused},
		{api.Failed, problem.AgentFailed, exitAgentFailed},
		{api.Failed, problem.Internal, exitError},
		{api.Failed, problem.Unavailable, exitError},
		{api.Failed, "", exitError},
		{"novel", "", exitError},
	} {
		if got := exitOf(api.Change{State: tc.state, Problem: string(tc.kind)}); got != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.state, tc.kind, got, tc.want)
		}
	}
	for _, c := range []api.Change{{State: api.Finalized, Outcome: api.NothingToDo}, {State: api.Failed, Problem: "refused", Outcome: api.BaseFailsChecks}} {
		if got := exitOf(c); got != exitOutcomes[c.Outcome] || got == exitDone || got == exitRefused {
			t.Errorf("%s %s: %d", c.State, c.Outcome, got)
		}
	}
}

// landedBefore is a change of which its branch had all when it was to land.
func landedBefore() api.Detail {
	d := finalized()
	d.Landing.Head = d.Landing.Commit
	return d
}

func TestRunFollowsAndTellsTheOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		detail   api.Detail
		code     int
		out, err string
	}{
		"landed":       {finalized(), exitDone, "landed on main as cafe01234567: 3 files, +12 -4", ""},
		"nothing":      {landedBefore(), exitDone, "chg-00000001 ended: main has all of it already, as of cafe01234567, and nothing was landed\n", ""},
		"way back":     {finalized(), exitDone, "roll back: sallyport rollback chg-00000001", ""},
		"refused":      {failed(problem.Refused, `"x" breaks the rule forbidden_area`), exitRefused, "", `"x" breaks the rule forbidden_area`},
		"agent failed": {failed(problem.AgentFailed, "exit status 9"), exitAgentFailed, "", "next: sallyport change log chg-00000001"},
	} {
		d := newDaemon(t)
		d.accepted = api.Change{ID: "chg-00000001", Text: "do", Repo: "/repo", Branch: "main", Uncommitted: []string{"mine.txt", "new\nline"}}
		d.detail = tc.detail
		d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"}, {Seq: 2, Kind: "progress"},
			{Seq: 3, Kind: "checkpoint", Checkpoint: &api.Checkpoint{ID: "ckpt-001-0123abcd", Status: "valid", Files: []string{"a"}}},
			{Seq: 4, Kind: "state", State: tc.detail.Change.State}}
		got := d.cli("run", "--request", "do", "--approve", "yes", "--timeout", "90s", "--share", "data", "--check", "true", "--", "sed", "-i", "--", "x")
		if got.code != tc.code || !strings.Contains(got.out, tc.out) || !strings.Contains(got.err, tc.err) {
			t.Errorf("%s: exit %d\nout %s\nerr %s", name, got.code, got.out, got.err)
		}
		for _, want := range []string{"mine.txt", `$'new\nline'`, "--include-dirty", "chg-00000001 working", "checkpoint ckpt-001-0123abcd valid, 1 file changed"} {
			if !strings.Contains(got.err, want) {
				t.Errorf("%s: %q is not said in %s", name, want, got.err)
			}
		}
		r := d.run
		if r.Dir != "/where/i/stand" || r.Approve != "yes" || r.TimeoutMS != 90_000 || r.Shares[0] != "/where/i/stand/data" || strings.Join(r.Argv, " ") != "sed -i -- x" || r.Home != "/home/me" || r.Path != "/bin" {
			t.Errorf("%s: asked %+v", name, r)
		}
	}
}

func TestWithoutATerminalTheChangeWaitsAndSaysHowToApproveIt(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001"}
	d.detail, d.question = waiting()
	got := d.cli("run", "--request", "do", "--", "true")
	if got.code != exitWaiting || d.run.Approve != "later" {
		t.Errorf("exit %d, approve %q", got.code, d.run.Approve)
	}
	for _, want := range []string{"approve: sallyport approve chg-00000001", "refuse:  sallyport refuse chg-00000001", "new executable: new.sh", "passed go test ./... (1.2s)"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not said in %s", want, got.out)
		}
	}
}

func TestALandingThatWasRefusedIsNotTakenForWaiting(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.detail.Change.Problem, d.detail.Change.Reason, d.detail.Change.Next = "refused", `"a.go" has uncommitted work`, "git -C /repo stash"
	got := d.cli("change", "watch", "chg-00000001")
	if got.code != exitRefused || !strings.Contains(got.err, "uncommitted work") || !strings.Contains(got.err, "next: git -C /repo stash") {
		t.Errorf("exit %d\nout %s\nerr %s", got.code, got.out, got.err)
	}
	if got := d.cli("status"); !strings.Contains(got.out, "next: git -C /repo stash") {
		t.Errorf("status names another way on:\n%s", got.out)
	}
	d.detail.Change.Reason = strings.Repeat("far from the margin, ", 10) + "and the way out"
	if got := d.cli("status"); !strings.Contains(got.out, d.detail.Change.Reason+"\n") {
		t.Errorf("status cuts a reason where no terminal breaks it:\n%s", got.out)
	}
}

func TestWhatShowsAChangeIsNotNamedAsTheNextStepOfItself(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.detail.Change.State, d.detail.Change.Next = api.Failed, "sallyport change show "+d.detail.Change.ID
	if got := d.cli("change", "show", d.detail.Change.ID); got.code != exitDone || strings.Contains(got.out, "next: ") {
		t.Errorf("%+v", got)
	}
	d.detail.Change.Next = "sallyport change log " + d.detail.Change.ID
	if got := d.cli("change", "show", d.detail.Change.ID); !strings.Contains(got.out, "next: sallyport change log ") {
		t.Errorf("%+v", got)
	}
}

func TestApproveSaysYesToExactlyTheDigestItFetched(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.after = func(string) { d.detail = finalized() }
	got := d.cli("approve", "chg-00000001")
	if got.code != exitDone || !strings.Contains(got.out, "landed on main") {
		t.Errorf("exit %d\nout %s\nerr %s", got.code, got.out, got.err)
	}
	if want := `approve {"digest":"0123456789abcdef0123456789abcdef"}`; d.told() != want {
		t.Errorf("told %s", d.told())
	}
	if !strings.Contains(got.err, "make the test pass") {
		t.Errorf("the card was not shown: %s", got.err)
	}
}

func TestApproveWithAnotherDigestThanWasReadDecidesNothing(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	got := d.cli("approve", "chg-00000001", "--digest", "0123456789abcdef0123456789abcdee")
	if got.code != exitRefused || d.told() != "" || !strings.Contains(got.err, "next: sallyport approval show chg-00000001") {
		t.Errorf("exit %d told %q err %s", got.code, d.told(), got.err)
	}
}

func TestWhatWasDecidedIsNotDecidedAgain(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.question.Approval.Decision, d.question.Approval.By = "refused", &api.Actor{Name: "ann"}
	for _, args := range [][]string{{"approve", "apr-00000001"}, {"refuse", "apr-00000001", "--reason", "x"}} {
		got := d.cli(args...)
		if got.code != exitError || d.told() != "" || !strings.Contains(got.err, "refused by ann") {
			t.Errorf("%v: exit %d told %q err %s", args, got.code, d.told(), got.err)
		}
	}
}

func TestRefuseGivesTheReason(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	got := d.cli("refuse", "chg-00000001", "--reason", "wrong file")
	if got.code != exitDone || d.told() != `refuse {"reason":"wrong file"}` || !strings.Contains(got.out, "refused: wrong file") {
		t.Errorf("exit %d told %q out %s", got.code, d.told(), got.out)
	}
}

func TestRollbackFollowsTheChangeThatUndoes(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000002", Kind: "revert"}
	d.detail = finalized()
	d.detail.Change.ID, d.detail.Change.Reverts = "chg-00000002", "chg-00000001"
	got := d.cli("rollback", "chg-00000001", "--approve", "yes", "--reason", "bad")
	if got.code != exitDone || d.told() != `rollback {"reason":"bad","approve":"yes"}` || !strings.Contains(got.out, "chg-00000001 is rolled back") {
		t.Errorf("exit %d told %q out %s err %s", got.code, d.told(), got.out, got.err)
	}
}

func TestJSONIsOneDocumentOrOneALine(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001"}
	d.detail = finalized()
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "finalized"}}
	got := d.cli("run", "--json", "--request", "do", "--", "true")
	var kinds []string
	for line := range strings.Lines(got.out) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds = append(kinds, e.Event)
	}
	if strings.Join(kinds, " ") != "accepted notice result" || got.err != "" || got.code != 0 {
		t.Errorf("%v exit %d err %q", kinds, got.code, got.err)
	}
	for _, args := range [][]string{{"status"}, {"change", "list"}, {"change", "show", "chg-00000001"}, {"approval", "list"}, {"audit", "list"}, {"version"}, {"doctor"}, {"change", "diff", "chg-00000001"}} {
		got := d.cli(append(args, "--json")...)
		if !json.Valid([]byte(got.out)) {
			t.Errorf("%v: %q %q", args, got.out, got.err)
		}
	}
}

func TestAProblemOfTheDaemonIsSaidOnceWithItsNextStep(t *testing.T) {
	d := newDaemon(t)
	d.err = problem.Errorf(problem.Refused, "sallyport change show chg-00000001", "path %q is forbidden", "a\x1b[31m")
	got := d.cli("checkpoint", "list", "chg-00000001")
	if got.code != exitRefused || got.err != "sallyport: path \"a\\x1b[31m\" is forbidden\nnext: sallyport change show chg-00000001\n" {
		t.Errorf("exit %d err %q", got.code, got.err)
	}
	other := filepath.Join(t.TempDir(), "other place")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	got = d.cli("--home", other, "checkpoint", "list", "chg-00000001")
	if !strings.Contains(got.err, "next: sallyport --home '"+other+"' change show chg-00000001\n") {
		t.Errorf("the home is not in the next step: %q", got.err)
	}
}

func TestTextFromElsewhereNeverReachesATerminalAsItIs(t *testing.T) {
	d := newDaemon(t)
	detail, question := waiting()
	for _, card := range []*api.Card{&detail.Proposal.Card, &question.Proposal.Card} {
		card.Title, card.Note, card.AgentSays, card.Branch, card.Repo = hostile, hostile, hostile, hostile, hostile
		card.Files = []api.FileLine{{Path: hostile, From: hostile, Status: hostile, Note: hostile}}
		card.Reach, card.Drift = []string{hostile}, []string{hostile}
		card.Checks = []api.CheckResult{{Command: hostile, Why: hostile, Tail: hostile}}
		card.LeftOver = []api.LeftOver{{Folder: hostile}}
	}
	detail.Change.Text, detail.Change.Reason, detail.Change.Argv, detail.Change.Repo, detail.Change.Problem = hostile, hostile, []string{hostile}, hostile, "refused"
	detail.Change.Next = "sallyport x " + hostile
	detail.Sessions = []api.Session{{ID: hostile, Ended: &time.Time{}, Exit: &api.Exit{Signal: hostile}}}
	detail.Checkpoints = []api.Checkpoint{{ID: "ckpt-001-0123abcd", Files: []string{hostile}, Status: hostile, Severity: hostile, Trigger: hostile,
		Violations: []policy.Violation{{File: hostile, Constraint: hostile, Message: hostile, Suggestion: hostile}}}}
	d.taken, d.delivery = detail.Checkpoints[0], api.Delivery{Delivered: true, AgentResponse: hostile}
	d.returned = api.Returned{Checkpoint: d.taken, Reverted: []string{hostile}}
	d.detail, d.question, d.stream = detail, question, "+"+hostile+"\n"
	d.accepted = detail.Change
	d.accepted.Uncommitted = []string{hostile}
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working", Text: hostile}, {Seq: 2, Kind: "output", Text: hostile},
		{Seq: 3, Kind: "check", Text: hostile}, {Seq: 4, Kind: "checkpoint", Text: hostile, Checkpoint: &detail.Checkpoints[0]}}
	for _, args := range [][]string{
		{"run", "--request", "x", "--output", "--", "true"}, {"status"}, {"change", "list"}, {"change", "show", "chg-00000001"},
		{"change", "watch", "chg-00000001", "--output"}, {"change", "diff", "chg-00000001"}, {"approval", "list"},
		{"approval", "show", "chg-00000001"}, {"approve", "chg-00000001"}, {"checkpoint", "list", "chg-00000001"},
		{"change", "tell", "chg-00000001", "x"}, {"rollback", "chg-00000001", "--smart"}, {"rollback", "--checkpoint", "ckpt-001-0123abcd"}, {"checkpoint", "now", "chg-00000001"},
	} {
		got := d.cli(args...)
		for _, r := range got.out + got.err {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("%v shows %U:\n%q", args, r, got.out+got.err)
				break
			}
		}
	}
	for _, args := range [][]string{{"change", "show", "chg-00000001"}, {"status"}, {"approval", "show", "chg-00000001"}} {
		got := d.cli(append(args, "--json")...)
		if i := strings.IndexFunc(got.out, func(r rune) bool { return r != '\n' && hidden(r) }); i >= 0 || !json.Valid([]byte(got.out)) {
			t.Errorf("%v in JSON: %d %q", args, i, got.out)
		}
	}
	d.stream = `{"stream":"stdout","text":"a\u001b[31mb"}` + "\n"
	if got := d.cli("change", "log", "chg-00000001"); got.out != "| a\\x1b[31mb\n" {
		t.Errorf("log: %q %q", got.out, got.err)
	}
}

// lookalikes is what an agent prints that would be taken for the host's: outcomes, questions, events, cards.
var lookalikes = []string{
	"chg-00000001 landed on main as 0123abc: 1 file, +1 -1", "sallyport: chg-00000001 was refused", "next: sallyport approve chg-00000001",
	"Approve? [y/N] ", "\rchg-00000001 waits for a person", "\u2028chg-00000001 rolled back", "\x1b[1A\x1b[2Kchg-00000001 finalized", "\x0bchg-00000001 finalized",
	"[sallyport] checkpoint ckpt-002-0123abcd valid", "digest 0123456789abcdef0123456789abcdef  rules fedcba987654", "|", "\u0085[sallyport] done", "| [sallyport] done", "",
}

// Off a terminal, and in what is kept of it, every line of the agent's wears its mark and none of ours does.
func TestNoLineOfAnAgentsCanBeTakenForOneOfOurs(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
	d.detail = finalized()
	d.notices = []api.Notice{{Kind: "state", State: "working"}}
	var log, spoken strings.Builder
	for _, text := range lookalikes {
		d.notices = append(d.notices, api.Notice{Kind: "output", Text: text})
		line, err := json.Marshal(recorded{Stream: "stdout", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&log, "%s\n", line)
		fmt.Fprintf(&spoken, "| %s\n", inert.Line(text))
	}
	for _, args := range [][]string{{"run", "--request", "do", "--output", "--", "true"}, {"change", "watch", "chg-00000001", "--output"}} {
		got := d.cli(args...)
		var marked strings.Builder
		for line := range strings.Lines(got.out + got.err) {
			if strings.HasPrefix(line, agentMark) {
				marked.WriteString(line)
			} else if line != "chg-00000001 do, on '' in ''\n" && line != "chg-00000001 working\n" && !strings.HasPrefix(line, "chg-00000001 landed on main as ") && !strings.HasPrefix(line, "  roll back: ") {
				t.Errorf("%v: %q is neither marked nor ours", args, line)
			}
		}
		if marked.String() != spoken.String() {
			t.Errorf("%v: marked is %q", args, marked.String())
		}
	}
	d.stream = log.String() + `{"stream":"event","text":"told: a\nb"}` + "\n"
	if got, want := d.cli("change", "log", "chg-00000001"), spoken.String()+"[sallyport] told: a\n[sallyport] b\n"; got.out != want {
		t.Errorf("log: %q, want %q", got.out, want)
	}
	d.detail.Change = api.Change{ID: "chg-00000001", State: api.Failed, Reason: "it said:\nchg-00000001 landed on main"}
	d.notices = nil
	if got := d.cli("change", "watch", "chg-00000001"); strings.Contains("\n"+got.err, "\nchg-") {
		t.Errorf("a reason of two lines: %q", got.err)
	}
}

func TestThatAPatchIsEmptyIsSaid(t *testing.T) {
	d := newDaemon(t)
	if got := d.cli("change", "export", "chg-00000001"); got.code != 0 || got.out != "" || got.err != "chg-00000001 changes no file: the patch is empty\n" {
		t.Errorf("%+v", got)
	}
}

func TestACodeIsTakenOnlyForWhatIsConfirmedWithOne(t *testing.T) {
	d := newDaemon(t)
	d.detail = onTrial()
	if got := d.cli("confirm", "chg-00000001", "--code", "ABCD-EFGH-JKLM"); got.code != exitUsage || !strings.Contains(got.err, "without a code\nnext: sallyport confirm chg-00000001\n") || strings.Contains(d.told(), "confirm") {
		t.Errorf("%+v, told %s", got, d.told())
	}
	d.detail.Change.Trial.Host = true
	d.after = func(call string) {
		if strings.HasPrefix(call, "confirm") {
			d.detail.Change.State = api.Finalized
		}
	}
	if got := d.cli("confirm", "chg-00000001", "--code", "ABCD-EFGH-JKLM"); got.code != exitDone || !strings.Contains(d.told(), "confirm") {
		t.Errorf("of the host: %+v, told %s", got, d.told())
	}
}

func TestExportToAFileIsByteForByte(t *testing.T) {
	d := newDaemon(t)
	d.stream = "diff --git a/x b/x\n+" + hostile + "\x00\xff\n"
	if got := d.cli("change", "export", "chg-00000001"); got.code != 0 || got.out != d.stream || got.err != "" {
		t.Errorf("exit %d %q", got.code, got.out)
	}
}

func TestThePictureFitsAndNamesWhatIsThereInFull(t *testing.T) {
	var b strings.Builder
	s := sheet{w: &b, width: 80}
	printPicture(s, api.Card{FilesTotal: 45, Added: 9001, Removed: 3, Files: []api.FileLine{
		{Path: "big.go", Status: "changed", Added: 9000, Removed: 1},
		{Path: "small.go", Status: "changed", Added: 1, Removed: 2},
		{Path: strings.Repeat("long/", 40) + "x", Status: "added"},
	}})
	long := strings.Repeat("long/", 40) + "x"
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for _, l := range lines {
		if len([]rune(l)) > 80 && !strings.HasSuffix(l, long) {
			t.Errorf("%d columns: %s", len([]rune(l)), l)
		}
	}
	if !strings.Contains(lines[1], "+-") || !strings.Contains(lines[2], " +-") || !strings.HasSuffix(lines[3], " "+long) || !strings.Contains(lines[5], "42 files more") {
		t.Errorf("%s", b.String())
	}
}

func TestTimesAndSizesReadWell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 350 * time.Millisecond: "350ms", 4200 * time.Millisecond: "4.2s", 9 * time.Second: "9s", 59 * time.Second: "59s",
		72 * time.Second: "1m12s", 2*time.Hour + 3*time.Minute: "2h03m", 76 * time.Hour: "3d04h",
	} {
		if got := duration(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 30: "1 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestADaemonThatGoesAwayLeavesTheWayBack(t *testing.T) {
	d := newDaemon(t)
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"}}
	d.cut = true
	got := d.cli("change", "watch", "chg-00000001")
	if got.code != exitError || !strings.Contains(got.err, "the daemon went away; chg-00000001 goes on") || !strings.Contains(got.err, "next: sallyport change show chg-00000001") {
		t.Errorf("exit %d err %q", got.code, got.err)
	}
}

func TestTheEndOfAPipeIsSaidAsATerminalSaysItUntilItIsHeard(t *testing.T) {
	for in, want := range map[string]string{
		"":             "\x04\x15\x04\x15",
		"exit 7\n":     "exit 7\n\x04\x15\x04\x15",
		"exit 7":       "exit 7\n\x04\x15\x04\x15",
		"two\nlines\n": "two\nlines\n\x04\x15\x04\x15",
	} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(&endOfInput{in: iotest.DataErrReader(strings.NewReader(in))}, got); err != nil || string(got) != want {
			t.Errorf("%q: read %q, %v", in, got, err)
		}
	}
}

func TestAShellsOutputInJSONKeepsCharactersWhole(t *testing.T) {
	var out bytes.Buffer
	h := &heard{app: &app{Program: Program{Out: &out}, json: true}, change: "chg-00000001"}
	for _, b := range []byte("aé€\U0001f600\xff.") {
		if n, err := h.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Notice == nil || e.Notice.Change != "chg-00000001" {
			t.Fatalf("%q: %v", line, err)
		}
		text.WriteString(e.Notice.Text)
	}
	if text.String() != "aé€\U0001f600\ufffd." {
		t.Errorf("got %q", text.String())
	}
}

// TestARollbackThatCameTooLateIsNoSuccess holds that whoever asked for a change on trial to go back hears that it stays.
func TestARollbackThatCameTooLateIsNoSuccess(t *testing.T) {
	d := newDaemon(t)
	d.detail = finalized()
	d.accepted = d.detail.Change
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: api.Finalized}}
	got := d.cli("rollback", d.accepted.ID)
	if got.code != exitError || !strings.Contains(got.err, "was not rolled back: it had been confirmed when you asked") || !strings.Contains(got.out, "roll back: sallyport rollback "+d.accepted.ID) {
		t.Errorf("%+v", got)
	}
}

// TestAHomeThatIsMistypedIsNotMade holds that a home which a word names has to be there, and that the doctor looks at it all the same. What is
// not there yet is made in an empty folder, and where the usual home lies.
func TestAHomeThatIsMistypedIsNotMade(t *testing.T) {
	d := newDaemon(t)
	top := t.TempDir()
	for _, name := range []string{"empty", "papers/2026", "begun/.state", "kept/.state", "project/.git"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	disktest.Put(t, filepath.Join(top, "kept/sallyport.yaml"), "", 0o600)
	for home, said := range map[string]string{
		"empty": "", "begun": "", "kept": "",
		"nowhere": "there is no home at", "papers": "there is no home at", "project": "is a git repository and no home",
	} {
		home = filepath.Join(top, home)
		for _, words := range [][]string{{"change", "list"}, {"daemon", "start"}, {"daemon", "status"}} {
			got := d.cli(append([]string{"--home", home}, words...)...)
			if refused := got.code != exitDone; refused != (said != "") || !strings.Contains(got.err, said) {
				t.Errorf("%s %s: exit %d, %s", home, words, got.code, got.err)
			}
			if said == "there is no home at" && !strings.Contains(got.err, "init "+home+"\n") {
				t.Errorf("%s %s: it says %s", home, words, got.err)
			}
		}
		if got := d.doctor(home, nil); said != "" && !strings.Contains(got.out, "MISSING daemon: ") || !strings.Contains(got.out, said) {
			t.Errorf("the doctor says of %s: %s", home, got.out)
		}
	}
}

// TestTheHomeThatTheVariableNamesIsMadeWhereItsFolderIs holds that SALLYPORT_HOME names a usual home, and that one in a folder that is not there,
// or in one that depends on where one stands, is not made.
func TestTheHomeThatTheVariableNamesIsMadeWhereItsFolderIs(t *testing.T) {
	d := newDaemon(t)
	top := t.TempDir()
	for home, said := range map[string]string{
		filepath.Join(top, "new"): "", filepath.Join(top, "nope/x"): "there is no home at",
		"rel": `SALLYPORT_HOME is "rel"`, "./rel": "an absolute path",
	} {
		d.env = map[string]string{"SALLYPORT_HOME": home}
		got := d.cli("change", "list")
		if refused := got.code != exitDone; refused != (said != "") || !strings.Contains(got.err, said) {
			t.Errorf("%s: %+v", home, got)
		}
	}
}

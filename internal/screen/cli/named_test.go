package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestAnIDCanBeLeftOutWhereOneChangeIsMeant(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.detail.Change.State = api.AwaitingApproval
	whole := d.detail.Change.ID
	d.others = []api.Change{{ID: "chg-zz000002", State: api.Working, Text: "another"}, {ID: "chg-zz000003", State: api.Finalized}}

	if got := d.cli("approval", "show"); got.code != exitDone || !strings.Contains(got.out, whole) {
		t.Errorf("the one that waits is not shown: %+v", got)
	}
	if got := d.cli("refuse", "--reason", "no"); got.code != exitDone || !strings.Contains(d.told(), "refuse ") {
		t.Errorf("the one that waits is not refused: %+v", got)
	}
	if got := d.cli("change", "pause"); !strings.HasPrefix(got.err, "chg-zz000002 another\n") || got.code != exitDone {
		t.Errorf("the one that works is not paused, or not named: %+v", got)
	}

	// Of several none is chosen, and all are named. Where none is, that is said.
	if got := d.cli("change", "shell"); got.code != exitUsage || !strings.Contains(got.err, whole) || !strings.Contains(got.err, "chg-zz000002 (another)") || strings.Contains(got.err, "chg-zz000003") {
		t.Errorf("two are under way: %+v", got)
	}
	if got := d.cli("confirm"); got.code != exitError || !strings.Contains(got.err, "confirm needs a change, and none is on trial") {
		t.Errorf("none is on trial: %+v", got)
	}

	// What has landed and is kept is not guessed.
	if got := d.cli("rollback"); got.code != exitError || !strings.Contains(got.err, "rollback needs a change, and none is on trial; one that has landed has to be named\nnext: sallyport rollback --list\n") {
		t.Errorf("none is on trial: %+v", got)
	}
	if got := d.cli("change", "cancel"); got.code != exitUsage || !strings.Contains(got.err, "2 changes could be meant by cancel") {
		t.Errorf("two are under way: %+v", got)
	}
	if got := d.cli("rollback", "--smart"); got.code != exitDone || !strings.HasPrefix(got.err, "chg-zz000002 another\n") || !strings.Contains(d.told(), `put back {"violating":true}`) {
		t.Errorf("the one that works is not restored: %+v, told %s", got, d.told())
	}
}

// TestOfSeveralChangesThatOfTheRepositoryHereIsMeant holds that who stands in a repository names no change of another one by leaving it out.
func TestOfSeveralChangesThatOfTheRepositoryHereIsMeant(t *testing.T) {
	d := newDaemon(t)
	here := t.TempDir()
	d.dir = filepath.Join(here, "below")
	for _, dir := range []string{filepath.Join(here, ".git"), d.dir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.detail.Change = api.Change{ID: "chg-00000001", State: api.AwaitingApproval, Repo: "/srv/other"}
	if got := d.cli("refuse", "--reason", "no"); got.code != exitError || !strings.Contains(got.err, "no change of this repository is waiting for approval; to mean chg-00000001 (in /srv/other), name it") ||
		strings.Contains(d.told(), "refuse ") {
		t.Errorf("one of another repository is refused: %+v", got)
	}
	if got := d.cli("change", "diff"); !strings.HasPrefix(got.err, "chg-00000001  (in /srv/other)\n") {
		t.Errorf("one of another repository is not looked at: %+v", got)
	}
	d.detail.Change.Group = "echo"
	if got := d.cli("refuse", "--reason", "no"); !strings.HasPrefix(got.err, "chg-00000001 \n") {
		t.Errorf("one of a group is not meant: %+v", got)
	}
	d.detail.Change.Group = ""
	d.others = []api.Change{{ID: "chg-00000002", State: api.AwaitingApproval, Repo: "/srv/another"}}
	if got := d.cli("refuse", "--reason", "no"); got.code != exitUsage || !strings.Contains(got.err, "2 changes could be meant") {
		t.Errorf("none is of here: %+v", got)
	}
	d.others = append(d.others, api.Change{ID: "chg-00000003", State: api.AwaitingApproval, Repo: here})
	if got := d.cli("refuse", "--reason", "no"); !strings.HasPrefix(got.err, "chg-00000003") {
		t.Errorf("one is of here: %+v", got)
	}
	d.others = append(d.others, api.Change{ID: "chg-00000004", State: api.AwaitingApproval, Repo: here})
	if got := d.cli("refuse", "--reason", "no"); got.code != exitUsage || !strings.Contains(got.err, "2 changes of this repository could be meant") || strings.Contains(got.err, "chg-00000001") {
		t.Errorf("two are of here: %+v", got)
	}
}

func TestWhatOnlyLooksTakesTheOneChangeAtWork(t *testing.T) {
	verbs := [][]string{{"change", "watch"}, {"change", "show"}, {"change", "log"}, {"change", "diff"}, {"checkpoint", "list"}}
	waits := func(id string) api.Change { return api.Change{ID: id, State: api.AwaitingApproval} }
	for name, tc := range map[string]struct {
		open []api.Change
		want string
	}{
		"one at work, and two that wait": {[]api.Change{waits("chg-00000002"), waits("chg-00000003")}, "chg-00000001 wish\n"},
		"two at work":                    {[]api.Change{waits("chg-00000002"), {ID: "chg-00000003", State: api.Preparing}}, "3 changes could be meant"},
	} {
		for _, words := range verbs {
			d := newDaemon(t)
			d.detail.Change = api.Change{ID: "chg-00000009", State: api.Finalized}
			d.others = append([]api.Change{{ID: "chg-00000001", State: api.Working, Text: "wish"}}, tc.open...)
			if got := d.cli(words...); !strings.Contains(got.err, tc.want) {
				t.Errorf("%s, %s: %+v", name, words, got)
			}
		}
	}
}

func TestThatNoChangeIsMeantIsSaidInWords(t *testing.T) {
	d := newDaemon(t)
	d.detail.Change = api.Change{ID: "chg-00000001", State: api.Finalized}
	for verb, want := range map[string]string{
		"approve": "approve needs a change, and none is waiting for approval\n",
		"confirm": "confirm needs a change, and none is on trial\n",
		"resume":  "resume needs a change, and none is paused or blocked\n",
		"cancel":  "cancel needs a change, and none is under way\n",
	} {
		words := []string{verb}
		if verb == "resume" || verb == "cancel" {
			words = []string{"change", verb}
		}
		if got := d.cli(words...); got.code != exitError || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

func TestTheChangeOnTrialIsRolledBackAndTheOneUnderWayCancelledWithoutAnID(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.accepted = onTrial(), onTrial().Change
	d.others = []api.Change{{ID: "chg-zz000003", State: api.Finalized}}
	d.after = func(call string) {
		if strings.HasPrefix(call, "rollback ") {
			d.detail.Change.State = api.RolledBack
		}
	}
	if got := d.cli("rollback"); got.code != exitDone || !strings.HasPrefix(got.err, "chg-00000001 make the test pass (in /repo)\n") || !strings.Contains(d.told(), "rollback {") {
		t.Errorf("%+v, told %s", got, d.told())
	}

	d = newDaemon(t)
	d.detail.Change = api.Change{ID: "chg-00000001", State: api.Working}
	d.after = func(call string) {
		if strings.HasPrefix(call, "cancel ") {
			d.detail.Change.State = api.Cancelled
		}
	}
	if got := d.cli("change", "cancel"); got.code != exitDone || !strings.Contains(d.told(), "cancel {") {
		t.Errorf("%+v, told %s", got, d.told())
	}
}

func TestTheBeginningOfAnIDIsEnoughWhereOnlyOneBeginsSo(t *testing.T) {
	d := newDaemon(t)
	d.detail = finalized()
	d.detail.Change.ID = "chg-ab000001"
	d.others = []api.Change{{ID: "chg-zz000002", State: api.Working}, {ID: "chg-zz000003", State: api.Working}}

	for _, word := range []string{"chg-ab", "ab0", "chg-a", "ab000001"} {
		got := d.cli("change", "show", word)
		if short := len(word) < 8; short != (got.code == exitDone) {
			t.Errorf("%s: %+v", word, got)
		}
	}
	if got := d.cli("change", "show", "ab"); got.code != exitUsage {
		t.Errorf("two letters are no beginning: %+v", got)
	}
	if got := d.cli("change", "pause", "zz0"); got.code != exitUsage || !strings.Contains(got.err, `"zz0" begins 2 ids: chg-zz000002, chg-zz000003`) {
		t.Errorf("two begin so: %+v", got)
	}
	_, d.question = waiting()
	for _, d.older = range []bool{false, true} {
		if got := d.cli("approval", "show", "apr-0"); got.code != exitDone {
			t.Errorf("an approval, of an older daemon %t: %+v", d.older, got)
		}
	}
	if got := d.cli("change", "pause", "zzz"); got.code != exitUsage || !strings.Contains(got.err, "no change has an id that begins with \"zzz\"\nnext: sallyport change list\n") {
		t.Errorf("none begins so: %+v", got)
	}
}

package checkpoint_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/path/checkpoint"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/policy"
)

func TestARecordNamesAFewOfVeryManyAndCountsAll(t *testing.T) {
	with := ready(t)
	with.Plan.Forbid = []string{"many/**"}
	wt.Edit(t, with.Workspace, wt.Exec(`mkdir -p many; i=0; while [ $i -lt 1500 ]; do echo $i >many/$i; i=$((i+1)); done; ln -s x zlink; ln -s x zother`))
	taken := take(t, with)
	c := taken.Checkpoint
	if len(taken.Edits) != 1502 || len(taken.Breaking) != 1502 || taken.Whole {
		t.Errorf("%d edits, %d break a rule, whole %v", len(taken.Edits), len(taken.Breaking), taken.Whole)
	}
	if c.Status != checkpoint.Invalid || c.Total() != 1502 || len(c.FilesChanged) != 1000 {
		t.Errorf("%s, %d of %d named", c.Status, len(c.FilesChanged), c.Total())
	}
	last := c.Violations[len(c.Violations)-1]
	if len(c.Violations) != 1001 || last.Message != "502 more violations are not listed" || last.Severity != c.Severity {
		t.Errorf("%d violations, the last is %+v", len(c.Violations), last)
	}
	if !slices.ContainsFunc(c.Violations, func(v policy.Violation) bool { return v.Constraint == policy.Symlink && v.File == "zlink" }) {
		t.Error("a rule that is broken far behind is not named")
	}
}

func TestARecordOfLongPathsIsBoundedInBytes(t *testing.T) {
	with := ready(t)
	wt.Edit(t, with.Workspace, wt.Exec(`d=$(printf 'd%.0s' $(seq 1 200))/$(printf 'e%.0s' $(seq 1 200)); mkdir -p $d; i=0; while [ $i -lt 400 ]; do echo $i >$d/$i; i=$((i+1)); done`))
	c := take(t, with).Checkpoint
	if size := len(strings.Join(c.FilesChanged, "")); c.Total() != 400 || size > 64<<10 || len(c.FilesChanged) < 100 {
		t.Errorf("%d of %d named, in %d bytes", len(c.FilesChanged), c.Total(), size)
	}
}

func TestWhatIsNotScannedInTimeIsAViolationAndNoError(t *testing.T) {
	with := ready(t)
	with.ScanTimeMax = time.Nanosecond
	wt.Edit(t, with.Workspace, wt.Write("new", strings.Repeat("word ", 1000)), wt.Write("more", "x"))
	c := take(t, with).Checkpoint
	if got := broken(c); c.Status != checkpoint.Invalid || !slices.Equal(got, []string{"more not_scanned", "new not_scanned"}) {
		t.Errorf("%s, %q", c.Status, got)
	}
}

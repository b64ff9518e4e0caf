package change

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// all is every state a change can be stored in.
var all = []State{Requested, Preparing, Working, Paused, Blocked, Submitted, AwaitingApproval, Landing, InTrial,
	Finalized, RolledBack, RollbackFailed, Rejected, Cancelled, Failed}

func TestAMoveThatIsNotInTheTableCannotHappen(t *testing.T) {
	for _, from := range all {
		for _, e := range []Event{Accepted, Prepared, Computed, Pause, Block, Resume, Ended, Unchanged, Proposed, Approved, Asked, Held, Landed, Undone, Stuck, Tried, Kept, TakenBack, Reverted, Refused, Cancel, Returned, Fail, "made up"} {
			to, err := from.Next(e)
			want, listed := moves[from][e]
			switch {
			case listed && (err != nil || to != want):
				t.Errorf("%s by %s: %s, %v; want %s", from, e, to, err, want)
			case !listed && (!errors.Is(err, ErrMoved) || to != from || !strings.Contains(err.Error(), string(e))):
				t.Errorf("%s by %s: %s, %v; want a refusal that names both", from, e, to, err)
			}
		}
	}
}

// Law 6: whatever was accepted ends visibly. From every state that the reconciler works on
// there is a way to an end, and every state that it leaves alone is an end or a person's turn.
func TestEveryStateHasAnEndInReach(t *testing.T) {
	ends := func(s State) bool { return s.Final() || s == AwaitingApproval || s == Paused || s == Blocked }
	for from := range moves {
		seen := map[State]bool{}
		todo := []State{from}
		reached := false
		for len(todo) > 0 {
			s := todo[0]
			todo = todo[1:]
			if seen[s] {
				continue
			}
			seen[s] = true
			reached = reached || ends(s)
			for _, to := range moves[s] {
				todo = append(todo, to)
			}
		}
		if !reached {
			t.Errorf("%s never ends", from)
		}
		if !from.Due() && !ends(from) {
			t.Errorf("%s is nobody's turn", from)
		}
		if from.Due() && from.Final() {
			t.Errorf("%s is an end that is worked on", from)
		}
	}
}

// Law 5: there is one way to land, and it goes through an approval.
func TestOnlyAnApprovalLeadsToLanding(t *testing.T) {
	for from, by := range moves {
		for e, to := range by {
			if to == Landing && (from != AwaitingApproval || e != Approved) {
				t.Errorf("%s leads from %s to landing", e, from)
			}
			if to == Finalized && from != Landing && from != InTrial && from != RollbackFailed && e != Unchanged {
				t.Errorf("%s finalizes %s, which did not land", e, from)
			}
			if to == InTrial && e != Tried {
				t.Errorf("%s puts %s on trial, which has not landed", e, from)
			}
			if e == TakenBack && from != InTrial && from != RollbackFailed {
				t.Errorf("%s is taken back without a trial", from)
			}
		}
	}
}

func TestDocsDrawTheStates(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The states of a change\n\nPrinted from `internal/path/change/state.go` by `make docs`.\n\n")
	b.WriteString("| from | event | to |\n|---|---|---|\n")
	for _, from := range all {
		for _, e := range slices.Sorted(maps.Keys(moves[from])) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", from, e, moves[from][e])
		}
	}
	b.WriteString("\n```mermaid\nstateDiagram-v2\n    [*] --> requested\n")
	for _, from := range all {
		for _, e := range slices.Sorted(maps.Keys(moves[from])) {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, moves[from][e], e)
		}
	}
	b.WriteString("```\n")
	const path = "../../../docs/states/change.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		disktest.Put(t, path, b.String(), 0o644)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the code says (%v): run `make docs`", path, err)
	}
}

func TestAStateIsSaidInWords(t *testing.T) {
	for _, s := range all {
		if words := s.Words(); words == "" || strings.Contains(words, "_") {
			t.Errorf("%s is said as %q", s, words)
		}
	}
	for s, want := range map[State]string{
		Working: "working", AwaitingApproval: "waiting for approval", InTrial: "on trial", RollbackFailed: "in a rollback that failed",
	} {
		if got := s.Words(); got != want {
			t.Errorf("%s is said as %q, want %q", s, got, want)
		}
	}
}

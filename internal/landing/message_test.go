package landing_test

import (
	"testing"

	"sallyport/internal/git"
	"sallyport/internal/landing"
)

func messageOf(summary, body, approver, agent string) string {
	return landing.Message{Verb: "swap", Change: "chg-x", Summary: summary, Body: body, Approver: approver, Agent: agent}.String()
}

func TestMessagesNameWhatWhyAndWho(t *testing.T) {
	swap := landing.Message{Verb: "swap", Change: "chg-1", Summary: "mend it", Body: "mend it", Approver: "ann", Agent: "sed"}
	if got, want := swap.String(), "swap chg-1: mend it\n\nChange-Id: chg-1\nApproved-by: ann\nAgent: sed\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	back := landing.Message{Verb: "rollback", Change: "chg-2", Subject: "chg-1", Summary: "it broke", Approver: "ann"}
	if got, want := back.String(), "rollback chg-1: it broke\n\nChange-Id: chg-2\nReverts: chg-1\nApproved-by: ann\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestInverseOfInverseIsTheSame(t *testing.T) {
	edits := []git.Edit{{Path: "a", New: git.Entry{Mode: git.File, OID: "1"}}, {Path: "b", Old: git.Entry{Mode: git.Symlink, OID: "2"}}}
	back := landing.Inverse(edits)
	if !back[0].New.Absent() || back[0].Old != edits[0].New || back[1].New != edits[1].Old {
		t.Errorf("%v", back)
	}
	if again := landing.Inverse(back); again[0] != edits[0] || again[1] != edits[1] {
		t.Errorf("%v", again)
	}
}

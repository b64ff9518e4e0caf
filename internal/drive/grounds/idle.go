package grounds

import (
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
)

// Idled ends a change whose agent changed nothing.
func Idled(row change.Row, cp checkpoint.Checkpoint) ledger.Move {
	return ledger.Move{
		Event: change.Unchanged, By: audit.Host, Subject: string(cp.ID), Verb: "checked", Outcome: change.NothingToDo,
		Reason: unchanged(cp), Next: "sallyport change log " + string(row.ID), Digests: map[string]string{"tree": string(cp.Tree)},
	}
}

// unchanged says what an agent did that changed nothing.
func unchanged(cp checkpoint.Checkpoint) string {
	files := 0
	for _, l := range cp.LeftOver {
		files += l.Files
	}
	if files == 0 {
		return "nothing to do: the agent changed nothing"
	}
	return fmt.Sprintf("nothing to do: the agent wrote only files that the repository ignores (%d of them; --include-ignored GLOB takes such files along)", files)
}

package group

import (
	"context"
	"fmt"

	"sallyport/internal/base/git"
)

// stageAgent answers in a rehearsal: it needs no account and no network.
const stageAgent = "echo"

// Stage makes the commit that a home is rehearsed on: what a commit of the home has, but for its groups. One is there, made of the
// template, whose agent needs no account; so nobody's files are shown, and there is somebody to answer. No branch has it.
//
// Errors: problem.Refused if the template cannot be copied.
func Stage(ctx context.Context, host git.Dir, commit git.OID, by By) (git.OID, error) {
	mine, err := copyTemplate(ctx, host, commit, Beginning{Folder: First, Agent: stageAgent})
	if err != nil {
		return "", err
	}
	staged, err := upon(ctx, host, commit, append([]git.Write{{Path: groupsFolder}}, mine...), "What is rehearsed\n", by)
	if err != nil {
		return "", fmt.Errorf("make the files of a rehearsal of %.12s: %w", commit, err)
	}
	return staged, nil
}

package group

import (
	"context"
	"fmt"

	"sallyport/internal/base/git"
)

// overlaid is what of a group stands in the place of the template's where its agent changes it.
var overlaid = []string{runnerFolder, skillsFolder}

// What of the host's own a dev agent sees another of, or none (SM-030). No change may have such a path, so nothing of it lands.
const (
	envFile     = ".env"
	stateFolder = ".state"
	dummyEnv    = "# This is a dummy: no value of the home is shown here.\n"
)

// Overlay makes the commit that a change of what a group runs is worked on: a commit of the home with the group's runner and skills at
// the template's paths (SM-027 to SM-029), a dummy .env and no .state. A group without skills has none there. Nothing else differs, and no
// branch has it.
//
// Doing it twice is doing it once. Errors: problem.NotFound if the home has no such group; problem.Refused if it cannot run.
func Overlay(ctx context.Context, host git.Dir, head git.OID, folder Folder, by By) (git.OID, error) {
	tree, err := FindTree(ctx, host, head, folder)
	if err != nil {
		return "", err
	}
	found, err := host.Lookup(ctx, tree, overlaid)
	if err != nil {
		return "", fmt.Errorf("read the group %s at %.12s: %w", folder, head, err)
	}

	writes := make([]git.Write, len(overlaid))
	for i, name := range overlaid {
		switch e := found[i]; {
		case e.Absent() && name == runnerFolder:
			return "", folder.refuse(name, "it is missing, and says how the group's agent runs")
		case !e.Absent() && e.Mode != git.Folder: // a link would show the agent another folder
			return "", folder.refuse(name, "it must be a folder")
		}
		writes[i] = git.Write{Path: templateFolder + "/" + name, Mode: found[i].Mode, OID: found[i].OID}
	}
	writes = append(writes, git.Write{Path: envFile, Mode: git.File, Data: git.Bytes([]byte(dummyEnv))}, git.Write{Path: stateFolder})
	commit, err := upon(ctx, host, head, writes, "What the group "+string(folder)+" runs, in the place of the template\n", by)
	if err != nil {
		return "", fmt.Errorf("make the base of a change of the group %s: %w", folder, err)
	}
	return commit, nil
}

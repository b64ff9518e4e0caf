// Package group says what an agent group is: files in a home's git repository.
//
// A group is a folder below groups/: AGENTS.md, runner/ and skills/, copied once from the home's template/ and its own
// from then on. What a session of the group runs is the tree that a commit has there, one object, and never the live
// folder. So everything here is read from the object store, but for FindHandEdits, which compares the live folder with
// a commit.
//
// Nothing here moves a branch or writes a file of a person. What is to be committed becomes a Draft, a commit in the
// host's repository, and package landing brings it to the person's: by its journal, with its refusals, and with a way
// back after any crash. A hand edit lands like anything else; the files stand in the work tree already.
package group

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
)

// Where things are in a home, and in a group.
const (
	groupsFolder   = "groups"
	templateFolder = "template"

	instructionsFile = "AGENTS.md"
	runnerFolder     = "runner"
	skillsFolder     = "skills"
	runnerFile       = runnerFolder + "/" + config.RunnerFile
	templateRunner   = templateFolder + "/" + runnerFile
	ignoreFile       = ".gitignore"
	promptsFolder    = runnerFolder + "/prompts"
	hooksFolder      = runnerFolder + "/hooks"
)

// copied is what a group has from the template.
var copied = []string{instructionsFile, runnerFolder, skillsFolder}

// Limits. Reaching one is a refusal that names it.
const (
	groupsMax   = 1_000    // of one home
	FilesMax    = 5_000    // files and folders of one group
	promptsMax  = 32       // prompts of one group
	textMax     = 64 << 10 // bytes of a prompt, a runner.yaml, an AGENTS.md
	hookMax     = 1 << 20  // bytes of a hook
	editsMax    = 2_000    // hand edits that are committed at once
	handFileMax = 16 << 20 // bytes of a file that is committed by hand
	handMax     = 32 << 20 // bytes of all of them
)

// Folder is the name of a group, and of its folder below groups/.
type Folder string

// Host is what stands for a group where the host itself speaks; no group can be called so.
const Host Folder = "host"

// First is the group that every home begins with: it needs no account.
const First Folder = "echo"

const folderMax = 32

var folderForm = pattern.Of(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// reserved are words that mean something else where a group can be named.
var reserved = []string{"all", "home", "host", "none", "self", templateFolder}

// ParseFolder reads a name of a group. Errors: problem.Usage.
func ParseFolder(text string) (Folder, error) {
	switch {
	case len(text) > folderMax || !folderForm().MatchString(text):
		return "", problem.Errorf(problem.Usage, "sallyport group list",
			"%q is no name of a group; one has small letters, digits and single dashes, at most %d in all", inert.Short(text, 60), folderMax)
	case slices.Contains(reserved, text):
		return "", problem.Errorf(problem.Usage, "sallyport group list", "no group can be called %q: the word means something else here", text)
	}
	return Folder(text), nil
}

// ChooseFolder makes a folder's name of what a person calls a group: one that none of the others has.
func ChooseFolder(name string, others []Folder) Folder {
	slug := id.Slug(name)
	for n := 1; ; n++ {
		try := slug
		if n > 1 {
			end := fmt.Sprintf("-%d", n)
			try = strings.TrimSuffix(slug[:min(len(slug), folderMax-len(end))], "-") + end
		}
		if folder, err := ParseFolder(try); err == nil && !slices.Contains(others, folder) {
			return folder
		}
	}
}

// path is where a group lies in its home.
func (f Folder) path() string { return groupsFolder + "/" + string(f) }

// Holds reports whether a path of a home lies in the group's folder.
func (f Folder) Holds(path string) bool { return strings.HasPrefix(path, f.path()+"/") }

// List returns the groups that a commit of a home has, in order. What lies beside them and is none is returned as odd.
func List(ctx context.Context, d git.Dir, commit git.OID) (groups []Folder, odd []string, err error) {
	names, err := d.Names(ctx, commit, groupsFolder)
	if err != nil {
		return nil, nil, fmt.Errorf("list the groups at %.12s: %w", commit, err)
	}
	for name, e := range names {
		folder, err := ParseFolder(name)
		if err != nil || e.Mode != git.Folder {
			odd = append(odd, name)
			continue
		}
		groups = append(groups, folder)
	}
	if len(groups) > groupsMax {
		return nil, nil, problem.Errorf(problem.Refused, d.Command("ls-tree "+string(commit)+" groups/"),
			"the home has %d groups; %d is the limit", len(groups), groupsMax)
	}
	slices.Sort(groups)
	slices.Sort(odd)
	return groups, odd, nil
}

// FindTree returns the tree that a commit of a home has for a group: all that its sessions run, as one object. Errors: problem.NotFound.
func FindTree(ctx context.Context, d git.Dir, commit git.OID, folder Folder) (git.OID, error) {
	found, err := d.Lookup(ctx, commit, []string{folder.path()})
	if err != nil {
		return "", fmt.Errorf("find the group %s at %.12s: %w", folder, commit, err)
	}
	if found[0].Mode != git.Folder {
		return "", problem.Errorf(problem.NotFound, "sallyport group list", "there is no group %q in the home as it is committed", folder)
	}
	return found[0].OID, nil
}

package group

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
)

//go:embed all:template
var template embed.FS

// Beginning is a group that is to be made.
type Beginning struct {
	Folder Folder
	Agent  config.RunnerAgent // "" = the one that the template names
}

// By is who makes a commit, and the ref of the host's that keeps it.
type By struct {
	Ref       string // under refs/sallyport/
	Author    git.Signature
	Committer git.Signature
}

// Draft is a commit of the host's repository that stands on no branch yet. Package landing brings its edits to a person's.
type Draft struct {
	Base    git.OID // that the edits are relative to
	Commit  git.OID // Base with the edits
	Edits   []git.Edit
	Message string
	Unseen  bool // it changes more than whoever asks for it has been shown: they are to see its card
}

// NewHome returns the files of a new home: its configuration, the template, and the groups that it begins with, copied from it.
func NewHome(groups []Beginning) ([]config.File, error) {
	files := config.NewHome()
	err := fs.WalkDir(template, templateFolder, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := template.ReadFile(p)
		if err != nil {
			return err
		}
		files = append(files, config.File{Name: p, Text: string(text)})
		for _, g := range groups {
			mine := text
			if p == templateRunner {
				if mine, err = nameAgent(text, g.Agent); err != nil {
					return err
				}
			}
			files = append(files, config.File{Name: path.Join(g.Folder.path(), p[len(templateFolder)+1:]), Text: string(mine)})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make the files of a home: %w", err)
	}
	return files, nil
}

// MakeHome commits the files of a new home, the first commit of its branch.
func MakeHome(ctx context.Context, d git.Dir, files []config.File, by By) (git.Commit, error) {
	in := git.Import{Ref: by.Ref, Message: "Make a home for agents\n", Author: by.Author, Committer: by.Committer}
	for _, f := range files {
		in.Writes = append(in.Writes, git.Write{Path: f.Name, Mode: git.File, Data: git.Bytes([]byte(f.Text))})
	}
	return d.Import(ctx, "home:import", in)
}

// ErrNoTemplate says that a home has nothing that a group could be copied from; Complete drafts that.
var ErrNoTemplate = problem.New(problem.Refused, "the home has no template that is committed")

// Create drafts a new group: a copy of the template as a commit of the home has it (SM-010, SM-011, SM-014). Errors: problem.Conflict
// if there is such a group; problem.Refused if the template cannot be copied.
func Create(ctx context.Context, host git.Dir, base git.OID, g Beginning, by By) (Draft, error) {
	found, err := host.Lookup(ctx, base, []string{g.Folder.path()})
	if err != nil {
		return Draft{}, fmt.Errorf("look for the group %s at %.12s: %w", g.Folder, base, err)
	}
	if !found[0].Absent() {
		return Draft{}, problem.Errorf(problem.Conflict, "sallyport group show "+string(g.Folder), "there is a group %q already", g.Folder)
	}
	writes, err := copyTemplate(ctx, host, base, g)
	if err != nil {
		return Draft{}, err
	}
	return commit(ctx, host, base, writes, "Make the group "+string(g.Folder)+"\n", by)
}

// copyTemplate returns what makes a group of the template as a commit of the home has it.
func copyTemplate(ctx context.Context, host git.Dir, base git.OID, g Beginning) ([]git.Write, error) {
	paths := []string{templateRunner}
	for _, name := range copied {
		paths = append(paths, templateFolder+"/"+name)
	}
	found, err := host.Lookup(ctx, base, paths)
	if err != nil {
		return nil, fmt.Errorf("read the template at %.12s: %w", base, err)
	}
	if !isFile(found[0]) {
		return nil, problem.Case(ErrNoTemplate, "sallyport init --help",
			"no group can be made: the home has no %s that is committed, which a group is copied from", templateRunner)
	}
	var writes []git.Write
	for i, name := range copied {
		if e := found[i+1]; !e.Absent() {
			writes = append(writes, git.Write{Path: path.Join(g.Folder.path(), name), Mode: e.Mode, OID: e.OID})
		}
	}
	if g.Agent == "" {
		return writes, nil
	}

	text, err := readText(ctx, host, templateRunner, found[0].OID)
	if err == nil {
		text, err = nameAgent(text, g.Agent)
	}
	if err != nil {
		return nil, err
	}
	return append(writes, git.Write{Path: path.Join(g.Folder.path(), runnerFile), Mode: git.File, Data: git.Bytes(text)}), nil
}

// commit makes the commit of a draft.
func commit(ctx context.Context, host git.Dir, base git.OID, writes []git.Write, message string, by By) (Draft, error) {
	made, err := upon(ctx, host, base, writes, message, by)
	if err != nil {
		return Draft{}, err
	}
	edits, err := host.EditsMax(ctx, base, made, FilesMax)
	if err != nil {
		return Draft{}, fmt.Errorf("read what was made of %.12s: %w", base, err)
	}
	return Draft{Base: base, Commit: made, Edits: edits, Message: message}, nil
}

// upon makes a commit of what is written upon a base, and has the ref of by's name it.
func upon(ctx context.Context, host git.Dir, base git.OID, writes []git.Write, message string, by By) (git.OID, error) {
	made, err := host.Import(ctx, "group:commit", git.Import{
		Ref: by.Ref, From: base, Parents: []git.OID{base}, Writes: writes, Message: message, Author: by.Author, Committer: by.Committer,
	})
	return made.OID, err
}

// readText reads a small file, which has a name in messages.
func readText(ctx context.Context, d git.Dir, name string, oid git.OID) (text []byte, err error) {
	err = d.Blobs(ctx, []git.OID{oid}, func(_ git.OID, size int64, r io.Reader) error {
		if size > textMax {
			return problem.Errorf(problem.Refused, "sallyport group list", "%s has %d bytes; %d is the limit", name, size, textMax)
		}
		text, err = io.ReadAll(r)
		return err
	})
	return text, err
}

var agentLine = pattern.Of(`(?m)^agent:.*$`)

// nameAgent has a runner.yaml name another agent; "" leaves it. The rest of the text stays as a person wrote it.
func nameAgent(text []byte, agent config.RunnerAgent) ([]byte, error) {
	const name, mend = templateRunner, "sallyport group list"
	if agent == "" {
		return text, nil
	}
	lines := agentLine().FindAllIndex(text, -1)
	if len(lines) == 0 {
		return nil, problem.Errorf(problem.Refused, mend, "%s has no line that begins with agent:, and one is needed to name another agent", name)
	}
	text = slices.Concat(text[:lines[0][0]], []byte("agent: "+agent), text[lines[0][1]:])
	r, err := config.ParseRunner(name, mend, bytes.Clone(text))
	if err == nil && r.Agent != agent {
		err = problem.Errorf(problem.Refused, mend, "%s cannot be made to name the agent %s", name, agent)
	}
	return text, err
}

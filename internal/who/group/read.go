package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
)

// Hooks are the programs of a group that are run, by name.
var Hooks = []string{"on-start", "on-message", "before-send"}

// Group is one group as a tree has it.
type Group struct {
	Folder       Folder
	Tree         git.OID
	Runner       config.Runner
	Instructions *File  // AGENTS.md; nil if there is none
	Prompts      []File // of runner/prompts, by name
	Hooks        []File // of runner/hooks, in the order of Hooks
	Skills       []Skill
}

// File is one file of a group.
type File struct {
	Path      string // from the group's folder
	OID       git.OID
	SizeBytes int64
}

// Hooked reports whether a group has a hook.
func (g Group) Hooked(name string) bool {
	return slices.ContainsFunc(g.Hooks, func(f File) bool { return path.Base(f.Path) == name })
}

// Read reads a group from its tree, whole or not at all. Errors: problem.Refused for what a group cannot have, by its path,
// for a runner.yaml with line and key.
func Read(ctx context.Context, d git.Dir, folder Folder, tree git.OID) (Group, error) {
	files, err := list(ctx, d, folder, tree)
	if err != nil {
		return Group{}, err
	}
	g := Group{Folder: folder, Tree: tree}
	if err := g.sort(files); err != nil {
		return Group{}, err
	}
	if err := g.measure(ctx, d, files); err != nil {
		return Group{}, err
	}
	return g, nil
}

// list returns every file of a tree.
func list(ctx context.Context, d git.Dir, folder Folder, tree git.OID) (map[string]git.Entry, error) {
	all, err := d.EditsMax(ctx, emptyLike(tree), tree, FilesMax)
	if errors.Is(err, git.ErrFar) {
		return nil, folder.refuse("", "it has more than %d files and folders", FilesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("read the group %s: %w", folder, err)
	}
	files := map[string]git.Entry{}
	for _, e := range all {
		files[e.Path] = e.New
	}
	return files, nil
}

// refuse says what a group cannot have; at is a path in it, "" for the group.
func (f Folder) refuse(at, format string, args ...any) error {
	return problem.Errorf(problem.Refused, f.show(), "the group %s cannot run: %s: %s", f, inert.Path(path.Join(f.path(), at)), fmt.Sprintf(format, args...))
}

// show is the command that shows a person the group.
func (f Folder) show() string { return "sallyport group drift " + string(f) }

var promptForm = pattern.Of(`^[a-z0-9][a-z0-9._-]{0,63}\.md$`)

// sort finds the prompts, the hooks and the instructions among the files.
func (g *Group) sort(files map[string]git.Entry) error {
	for p, e := range files {
		if e.Mode == git.Submodule {
			return g.Folder.refuse(p, "it is a submodule")
		}
		if isSkill(p) && isFile(e) {
			g.Skills = append(g.Skills, Skill{Name: path.Base(path.Dir(p)), Path: p[len(skillsFolder)+1:]})
		}
		in, name := path.Split(p)
		switch {
		case p == skillsFolder, p == hooksFolder, p == promptsFolder: // what a link leads to would be run, or shown, and be told of by another name
			return g.Folder.refuse(p, "it must be a folder")
		case p == instructionsFile:
			g.Instructions = &File{Path: p, OID: e.OID}
		case in == promptsFolder+"/":
			g.Prompts = append(g.Prompts, File{Path: p, OID: e.OID})
			if !promptForm().MatchString(name) || !isFile(e) {
				return g.Folder.refuse(p, "a prompt is an ordinary file whose name ends in .md")
			}
		case in == hooksFolder+"/" && slices.Contains(Hooks, name):
			g.Hooks = append(g.Hooks, File{Path: p, OID: e.OID})
			if e.Mode != git.Executable {
				return g.Folder.refuse(p, "a hook is an ordinary file that may be executed (chmod +x)")
			}
		case in == hooksFolder+"/" && !strings.HasSuffix(name, ".md"):
			return g.Folder.refuse(p, "there is no such hook; the hooks are %s", strings.Join(Hooks, ", "))
		}
	}
	if len(g.Prompts) > promptsMax {
		return g.Folder.refuse(promptsFolder, "there are %d prompts; %d is the limit", len(g.Prompts), promptsMax)
	}
	if len(g.Skills) > skillsMax {
		return g.Folder.refuse(skillsFolder, "there are %d skills; %d is the limit", len(g.Skills), skillsMax)
	}
	slices.SortFunc(g.Skills, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(g.Prompts, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(g.Hooks, func(a, b File) int {
		return slices.Index(Hooks, path.Base(a.Path)) - slices.Index(Hooks, path.Base(b.Path))
	})
	for _, p := range []string{runnerFile, instructionsFile} {
		if e, there := files[p]; there && !isFile(e) {
			return g.Folder.refuse(p, "it must be an ordinary file")
		}
	}
	if files[runnerFile].Absent() {
		return g.Folder.refuse(runnerFile, "it is missing, and says how the group's agent runs")
	}
	return nil
}

// Skills returns the names of a group's skills, in order: what is named in its folder of them. Read says whether the group can run.
func Skills(ctx context.Context, d git.Dir, tree git.OID) ([]string, error) {
	names, err := d.Names(ctx, tree, skillsFolder)
	if err != nil {
		return nil, fmt.Errorf("list the skills of %.12s: %w", tree, err)
	}
	var all []string
	for name, e := range names {
		if e.Mode == git.Folder {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, nil
}

func isFile(e git.Entry) bool { return e.Mode == git.File || e.Mode == git.Executable }

// measure reads the runner.yaml, what the host looks into (how large each file is, and whether a text is one), and what skills say of themselves.
func (g *Group) measure(ctx context.Context, d git.Dir, files map[string]git.Entry) error {
	var looked []*File
	if g.Instructions != nil {
		looked = append(looked, g.Instructions)
	}
	for i := range g.Prompts {
		looked = append(looked, &g.Prompts[i])
	}
	for i := range g.Hooks {
		looked = append(looked, &g.Hooks[i])
	}
	looked = append(looked, &File{Path: runnerFile, OID: files[runnerFile].OID})
	oids := make([]git.OID, len(looked))
	for i, f := range looked {
		oids[i] = f.OID
	}
	for _, s := range g.Skills {
		oids = append(oids, files[skillsFolder+"/"+s.Path].OID)
	}

	at := -1
	return d.Blobs(ctx, oids, func(_ git.OID, size int64, r io.Reader) error {
		at++
		if at >= len(looked) {
			return g.Skills[at-len(looked)].describe(r)
		}
		f := looked[at]
		f.SizeBytes = size
		hook := path.Dir(f.Path) == hooksFolder
		most := int64(textMax)
		if hook {
			most = hookMax
		}
		if size > most {
			return g.Folder.refuse(f.Path, "it has %d bytes; %d is the limit", size, most)
		}
		if hook {
			return nil
		}

		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("read %s of the group %s: %w", f.Path, g.Folder, err)
		}
		if f.Path == runnerFile {
			g.Runner, err = config.ParseRunner(path.Join(g.Folder.path(), runnerFile), g.Folder.show(), text)
			return err
		}
		if !utf8.Valid(text) {
			return g.Folder.refuse(f.Path, "it is not UTF-8")
		}
		return nil
	})
}

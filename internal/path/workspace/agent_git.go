package workspace

import (
	"fmt"
	"os"
	"path/filepath"

	"sallyport/internal/base/git"
	"sallyport/internal/path/repository"
	"sallyport/internal/port/sandbox"
)

// shownObjects is where the view of a base is seen inside a sandbox.
const shownObjects = sandbox.ObjectsRoot + "/0"

// agentGitConfig is the agent's own git: it may do what it likes with it, and nobody else
// reads it. Only whole seconds and sizes of files are compared, because the index was
// made on the layer and is used on a copy of it.
const agentGitConfig = `[core]
	repositoryFormatVersion = %d
	fileMode = true
	bare = false
	checkStat = minimal
	trustCtime = false
	hooksPath = /dev/null
	fsmonitor = false
[gc]
	auto = 0
[maintenance]
	auto = false
[user]
	name = agent
	email = agent@localhost
%s`

// Unlock takes away the locks that the agent's git has left in its own directory. Only between sessions: then nobody holds them, and
// the next would wait for them in vain.
func (m *Manager) Unlock(w Workspace) error {
	left, err := repository.Locks(w.Tree.GitDir)
	if err != nil {
		return fmt.Errorf("find the locks of the agent's git: %w", err)
	}
	for _, lock := range left {
		if err := m.ops.Do("workspace:unlock", lock.Unlink); err != nil {
			return err
		}
	}
	return nil
}

// makeAgentGit fills the git directory that an agent sees as its own: a branch at a commit, no
// remote, no hook, the objects of the view of base. Names of branches never become file names.
func (m *Manager) makeAgentGit(dir string, host git.Dir, spec Spec, commit git.OID) error {
	version, extensions := 0, ""
	if len(commit) == 64 {
		version, extensions = 1, "[extensions]\n\tobjectFormat = sha256\n"
	}
	head, refs := string(commit)+"\n", ""
	if repository.PlainBranch(spec.Branch) {
		head, refs = "ref: refs/heads/"+spec.Branch+"\n", fmt.Sprintf("%s refs/heads/%s\n", commit, spec.Branch)
	}
	shallow, err := repository.ViewShallow(host, spec.Base)
	if err != nil {
		return err
	}
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, text string }{
		{"HEAD", head},
		{"packed-refs", refs},
		{"config", fmt.Sprintf(agentGitConfig, version, extensions)},
		{"objects/info/alternates", shownObjects + "\n"},
		{"shallow", string(shallow)},
		{"info/attributes", repository.OwnAttributes}, // the files are the bytes that git stores
	} {
		if f.text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

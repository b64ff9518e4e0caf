package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/disk"
)

// Signing is how commits are signed in a repository: with which program, as its owner's own configuration says.
type Signing struct {
	Format  string // openpgp, ssh or x509
	program string
	command string // that says which key, for ssh; "" = none
	key     string // "" = that of who commits
	home    string // of the owner
}

// signMax is how long a program may take to sign: somebody may have to type, or touch, something.
const signMax = 30 * time.Second

// signers are the programs that git signs with, by format.
var signers = map[string]string{"openpgp": "gpg", "ssh": "ssh-keygen", "x509": "gpgsm"}

// Signing returns how commits are to be signed here, nil if they are not (commit.gpgsign). A program counts where the owner's or
// the system's configuration names it. One that the repository's own configuration names is never run: whoever packed a
// repository would say what runs on this machine. The same goes for a file of configuration, and a program, in a work tree of it.
func (p Project) Signing(ctx context.Context, home string) (*Signing, error) {
	home = p.home(home)
	all, err := p.configuration(ctx, home)
	if err != nil {
		return nil, fmt.Errorf("read how commits are signed in %q: %w", p.Top, err)
	}
	tops := p.tops()
	set, own := map[string]string{}, map[string]bool{}
	for _, s := range all {
		key := strings.ToLower(s.key)
		if key != "commit.gpgsign" && key != "user.signingkey" && !strings.HasPrefix(key, "gpg.") {
			continue
		}
		theirs := s.scope == "global" || s.scope == "system"
		set[key], own[key] = s.text(), theirs && len(below(tops, p.origin(s.origin))) == 0
	}
	if !isTrue(set["commit.gpgsign"]) {
		return nil, nil
	}
	s := &Signing{Format: set["gpg.format"], key: set["user.signingkey"], home: home}
	if s.Format == "" {
		s.Format = "openpgp"
	}
	s.program = signers[s.Format]
	if s.program == "" {
		return nil, fmt.Errorf("gpg.format is %q, which is none of openpgp, ssh and x509", s.Format)
	}
	names := []string{"gpg." + s.Format + ".program"}
	if s.Format == "openpgp" {
		names = []string{"gpg.program", "gpg.openpgp.program"}
	}
	for _, name := range append(names, "gpg.ssh.defaultkeycommand") {
		switch value := set[name]; {
		case value == "":
		case !own[name]:
			return nil, fmt.Errorf("the repository's own configuration, or a file in its work tree, sets %s, and the host runs no program that a repository names: set it in yours (git config --global %s …)", name, name)
		case name == "gpg.ssh.defaultkeycommand":
			s.command = value
		default:
			s.program = value
		}
	}
	if s.Format == "ssh" && s.key == "" && s.command == "" {
		return nil, errors.New("no key is named for signing with ssh: git config --global user.signingKey FILE")
	}
	if err := p.signsOutside(tops, s); err != nil {
		return nil, err
	}
	return s, nil
}

// signsOutside refuses to sign by what lies in a work tree of the repository, by whatever links it is named. git runs a program as it is
// named, blanks and all, and takes the words of a command apart.
func (p Project) signsOutside(tops []string, s *Signing) error {
	inside := func(name string) []string {
		path := expand(name, s.home)
		switch {
		case filepath.IsAbs(path):
		case strings.Contains(path, "/"):
			path = p.Top + "/" + path
		default:
			found, err := exec.LookPath(path)
			if err != nil || !filepath.IsAbs(found) {
				return nil
			}
			path = found
		}
		return below(tops, path)
	}
	named, found := s.program, inside(s.program)
	if words := strings.Fields(s.command); len(found) == 0 && len(words) > 0 {
		named, found = s.command, append(p.paths(tops, "", s.command, s.home, ""), inside(words[0])...)
		if whole := expand(s.command, s.home); filepath.IsAbs(whole) {
			found = append(found, below(tops, whole)...)
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("commits would be signed with %q, which is %q in the repository's work tree, and the host runs no program that a repository holds: keep it elsewhere, and name it there (git config --global gpg.%s.program …)", named, found[0], s.Format)
	}
	return nil
}

// isTrue reads a truth value as git does.
func isTrue(value string) bool { return truth(value) == "true" }

// truth writes a truth value as git does, true or false; what is none stays as it is.
func truth(value string) string {
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return "true"
	case "false", "no", "off", "":
		return "false"
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	switch {
	case err != nil:
		return value
	case n == 0:
		return "false"
	}
	return "true"
}

// Sign makes a commit again, with a signature: as the repository's owner, by their program. It returns the new one, whose tree,
// parent, people and words are the same.
func (p Project) Sign(ctx context.Context, ops disk.Ops, s Signing, c Commit, in Import) (OID, error) {
	made, err := p.sign(ctx, ops, s, c.Tree, in, nil)
	if err != nil {
		return "", err
	}
	d := p.Common(ops)
	if tree, err := d.Tree(ctx, made); err != nil || tree != c.Tree {
		return "", errors.Join(err, fmt.Errorf("the signed commit %s has the tree %s, not %s", made, tree, c.Tree))
	}
	return made, nil
}

// TrySigning signs a commit that goes nowhere, so that what stands in the way is known before it is needed.
func (p Project) TrySigning(ctx context.Context, ops disk.Ops, s Signing, who Person) error {
	var dir string
	err := ops.Do("sign:try", func() (err error) {
		if dir, err = os.MkdirTemp("", "sallyport-sign-"); err == nil && os.Geteuid() == 0 {
			err = os.Chown(dir, int(p.UID), int(p.GID))
		}
		return err
	})
	if dir != "" {
		defer func() { _ = ops.Do("sign:tried", func() error { return os.RemoveAll(dir) }) }()
	}
	if err != nil {
		return fmt.Errorf("make a folder to try signing in: %w", err)
	}
	who.Author.At, who.Committer.At = time.Now(), time.Now()
	_, err = p.sign(ctx, ops, s, EmptyTree(p.ObjectFormat), Import{Author: who.Author, Committer: who.Committer, Message: "a try\n"},
		[]string{"GIT_OBJECT_DIRECTORY=" + dir})
	return err
}

func (p Project) sign(ctx context.Context, ops disk.Ops, s Signing, tree OID, in Import, env []string) (OID, error) {
	ctx, done := context.WithTimeoutCause(ctx, signMax, fmt.Errorf("%s did not sign within %s", s.program, signMax))
	defer done()
	args := []string{"commit-tree", "-S", "-F", "-"}
	for _, parent := range in.Parents {
		args = append(args, "-p", string(parent))
	}
	date := func(s Signature) string { return fmt.Sprintf("@%d +0000", s.At.Unix()) }
	env = append(env,
		"GIT_AUTHOR_NAME="+plain(in.Author.Name), "GIT_AUTHOR_EMAIL="+plain(in.Author.Email), "GIT_AUTHOR_DATE="+date(in.Author),
		"GIT_COMMITTER_NAME="+plain(in.Committer.Name), "GIT_COMMITTER_EMAIL="+plain(in.Committer.Email), "GIT_COMMITTER_DATE="+date(in.Committer))
	if int(p.UID) == os.Geteuid() { // who started us is who signs
		for _, name := range []string{"SSH_AUTH_SOCK", "GNUPGHOME", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"} {
			if value := os.Getenv(name); value != "" {
				env = append(env, name+"="+value)
			}
		}
	}
	config := []string{ // of each the last word, so that the repository's is none
		"gpg.format=" + s.Format, "gpg.program=" + s.program, "gpg." + s.Format + ".program=" + s.program, "i18n.commitEncoding=UTF-8",
	}
	// The folder that it runs in may have a configuration that was not read: that of another work tree.
	config = append(config, "gpg.ssh.defaultKeyCommand="+cmp.Or(s.command, "false"))
	if s.key != "" {
		config = append(config, "user.signingKey="+s.key)
	}
	out, err := p.Common(ops).Do(ctx, "sign:commit", Cmd{
		Args: append(args, string(tree)), Env: env, Home: s.home, Stdin: strings.NewReader(in.Message), Config: config,
	})
	if err != nil {
		return "", err
	}
	return OID(strings.TrimSpace(string(out))), nil
}

package git_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
)

// owned runs a program with a home folder of its own.
func owned(t *testing.T, home string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// needs skips a test by the name of the tool that is absent.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed", tool)
		}
	}
}

// repository is an empty one, with a home folder of its own for its owner.
func repository(t *testing.T) (p git.Project, home string, config func(args ...string)) {
	t.Helper()
	needs(t, "git")
	dir, home := t.TempDir(), t.TempDir()
	owned(t, home, "git", "init", "-q", dir)
	p, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return p, home, func(args ...string) { owned(t, home, append([]string{"git", "-C", dir, "config"}, args...)...) }
}

// signed is a repository, and a home folder whose configuration signs with a key of its own.
func signed(t *testing.T) (p git.Project, home string, config func(args ...string)) {
	t.Helper()
	needs(t, "ssh-keygen")
	p, home, config = repository(t)
	owned(t, home, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(home, "key"))
	config("--global", "gpg.format", "ssh")
	config("--global", "user.signingkey", filepath.Join(home, "key"))
	config("--global", "commit.gpgsign", "true")
	return p, home, config
}

func TestACommitIsSignedAsItsOwnersConfigurationSays(t *testing.T) {
	p, home, config := signed(t)
	config("--global", "user.name", "Ann <ann>")
	config("user.email", "ann@example.org") // in the repository's own
	config("committer.name", "Builder")
	who, err := p.Person(t.Context(), home)
	if err != nil || who.Author.Address() != "Ann ann <ann@example.org>" || who.Committer.Address() != "Builder <ann@example.org>" {
		t.Errorf("who commits: %+v, %v", who, err)
	}
	s, err := p.Signing(t.Context(), home)
	if err != nil || s == nil || s.Format != "ssh" {
		t.Fatalf("signing: %+v, %v", s, err)
	}
	tried := t.TempDir()
	t.Setenv("TMPDIR", tried)
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err != nil {
		t.Errorf("a try: %v", err)
	}
	if left, err := os.ReadDir(tried); err != nil || len(left) > 0 {
		t.Errorf("a try has left %v, %v", left, err)
	}
	who.Author.At, who.Committer.At = time.Unix(1700000000, 0), time.Unix(1700000000, 0)
	in := git.Import{Ref: "refs/sallyport/x/landings/1", Message: "words\n", Author: who.Author, Committer: who.Committer}
	base, err := p.Common(disk.Ops{}).Import(t.Context(), "import", in)
	if err != nil {
		t.Fatal(err)
	}
	in.Parents = []git.OID{base.OID}
	c, err := p.Common(disk.Ops{}).Import(t.Context(), "import", in)
	if err != nil {
		t.Fatal(err)
	}
	plain := body(t, p, c.OID)
	made, err := p.Sign(t.Context(), disk.Ops{}, *s, c, in)
	if err != nil {
		t.Fatal(err)
	}
	text := body(t, p, made)
	before, rest, _ := strings.Cut(text, "gpgsig ")
	_, after, _ := strings.Cut(rest, "-----END SSH SIGNATURE-----\n")
	if before+after != plain || after == "" {
		t.Errorf("signed is\n%s\nunsigned was\n%s", text, plain)
	}
	host, err := git.InitBare(t.Context(), disk.Ops{}, filepath.Join(t.TempDir(), "host"), p.ObjectFormat)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Adopt(t.Context(), "adopt", p.Common(disk.Ops{}), made); err != nil {
		t.Errorf("the host keeps it: %v", err)
	}
	config("commit.gpgsign", "false")
	if s, err := p.Signing(t.Context(), home); s != nil || err != nil {
		t.Errorf("the repository's no: %+v, %v", s, err)
	}
}

func body(t *testing.T, p git.Project, commit git.OID) string {
	t.Helper()
	out, err := p.Common(disk.Ops{}).Run(t.Context(), git.Cmd{Args: []string{"cat-file", "commit", string(commit)}})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Who started us reaches their agent of keys, and the key is the one that was read.
func TestWhatSignsReachesItsOwnersAgent(t *testing.T) {
	p, home, config := signed(t)
	s, err := p.Signing(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	config("user.signingkey", "/nonexistent/key") // since
	t.Setenv("SSH_AUTH_SOCK", "/run/of/ann")
	t.Setenv("GNUPGHOME", "")
	dir, _ := slowGit(t, "commit-tree", "env > env; exec \"$git\" \"$@\"")
	who := git.Person{Author: git.Signature{Name: "a", Email: "a@b"}, Committer: git.Signature{Name: "a", Email: "a@b"}}
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || !strings.Contains(string(env), "SSH_AUTH_SOCK=/run/of/ann\n") || strings.Contains(string(env), "GNUPGHOME=") {
		t.Errorf("it signs with %q, %v", env, err)
	}
}

func TestNoOpenPGPProgramThatARepositoryNamesSigns(t *testing.T) {
	p, home, config := repository(t)
	config("--global", "commit.gpgsign", "true")
	for _, name := range []string{"gpg.program", "gpg.openpgp.program"} {
		config(name, "/usr/bin/true")
		if s, err := p.Signing(t.Context(), home); err == nil || !strings.Contains(err.Error(), "sets "+name) {
			t.Errorf("the repository's %s: %+v, %v", name, s, err)
		}
		config("--unset", name)
		config("--global", name, "/usr/bin/true")
		if s, err := p.Signing(t.Context(), home); err != nil || s.Format != "openpgp" {
			t.Errorf("the owner's %s: %+v, %v", name, s, err)
		}
	}
}

// What is in .git/config came with the repository: it may say that commits are signed, never by which program.
func TestNoProgramThatARepositoryNamesSigns(t *testing.T) {
	trap := filepath.Join(t.TempDir(), "ran")
	for _, key := range []string{"gpg.ssh.program", "gpg.ssh.defaultKeyCommand"} {
		p, home, config := signed(t)
		config(key, "touch "+trap+";")
		if s, err := p.Signing(t.Context(), home); err == nil || !strings.Contains(err.Error(), "git config --global") {
			t.Errorf("%s: %+v, %v", key, s, err)
		}
	}
	p, home, config := signed(t)
	s, err := p.Signing(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "evil")
	disktest.Put(t, program, "#!/bin/sh\ntouch "+trap+"\n", 0o755)
	config("gpg.ssh.program", program) // between the look and the signing
	config("gpg.program", program)
	who := git.Person{Author: git.Signature{Name: "a", Email: "a@b"}, Committer: git.Signature{Name: "a", Email: "a@b"}}
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("it ran")
	}
	config("--unset", "gpg.ssh.program")
	config("--global", "user.signingkey", filepath.Join(home, "none"))
	if s, err = p.Signing(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err == nil {
		t.Error("it was signed without a key")
	}
}

// What lies in the work tree is the repository's, by whatever path the owner's configuration leads there.
func TestNoProgramOfTheWorkTreeSigns(t *testing.T) {
	for name, set := range map[string]func(top string, config func(...string)){
		"an included file": func(top string, config func(...string)) {
			disktest.Put(t, filepath.Join(top, "common"), "[gpg \"ssh\"]\n\tprogram = /usr/bin/true\n", 0o644)
			config("--global", "include.path", "~/dot/common")
		},
		"a program": func(_ string, config func(...string)) { config("--global", "gpg.ssh.program", "~/dot/signer") },
		"a program, a link": func(_ string, config func(...string)) {
			config("--global", "gpg.ssh.program", "~/link")
		},
		"a program whose name has blanks": func(top string, config func(...string)) {
			config("--global", "gpg.ssh.program", filepath.Join(top, "my signer"))
		},
		"a program in a folder whose name looks like an option": func(_ string, config func(...string)) {
			config("--global", "gpg.ssh.program", "~/my -dot/signer")
		},
		"a program that is found": func(top string, config func(...string)) {
			if err := errors.Join(os.Mkdir(filepath.Join(top, "bin"), 0o755), os.WriteFile(filepath.Join(top, "bin/ssh-signer"), []byte("#!/bin/sh\n"), 0o755)); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", filepath.Join(top, "bin")+":"+os.Getenv("PATH"))
			config("--global", "gpg.ssh.program", "ssh-signer")
		},
		"a program by a path from the repository": func(_ string, config func(...string)) { config("--global", "gpg.ssh.program", "tools/signer") },
		"a command that is found": func(top string, config func(...string)) {
			if err := errors.Join(os.Mkdir(filepath.Join(top, "bin"), 0o755), os.WriteFile(filepath.Join(top, "bin/ssh-key"), []byte("#!/bin/sh\n"), 0o755)); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", filepath.Join(top, "bin")+":"+os.Getenv("PATH"))
			config("--global", "gpg.ssh.defaultKeyCommand", "ssh-key --first")
		},
		"a command's script": func(_ string, config func(...string)) {
			config("--global", "gpg.ssh.defaultKeyCommand", "sh ~/dot/key.sh")
		},
	} {
		p, home, config := signed(t)
		for from, to := range map[string]string{filepath.Join(home, "dot"): p.Top, filepath.Join(home, "my -dot"): p.Top, filepath.Join(home, "link"): filepath.Join(p.Top, "signer")} {
			if err := os.Symlink(to, from); err != nil {
				t.Fatal(err)
			}
		}
		set(p.Top, config)
		if s, err := p.Signing(t.Context(), home); err == nil || !strings.Contains(err.Error(), "work tree") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// TestAProgramWhoseNameHasBlanksSigns holds that a name is taken as git takes it: none of its words is looked for in the work tree.
func TestAProgramWhoseNameHasBlanksSigns(t *testing.T) {
	p, home, config := signed(t)
	tool := filepath.Join(home, "my tools/the signer")
	real, err := exec.LookPath("ssh-keygen")
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(tool), 0o755), os.WriteFile(tool, []byte("#!/bin/sh\nexec "+real+" \"$@\"\n"), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	config("--global", "gpg.ssh.program", tool)
	s, err := p.Signing(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	who := git.Person{Author: git.Signature{Name: "a", Email: "a@b"}, Committer: git.Signature{Name: "a", Email: "a@b"}}
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err != nil {
		t.Error(err)
	}
}

// git signs in the folder that all work trees share, whose own configuration is the main work tree's: it came with the repository too.
func TestNoProgramOfAnotherWorkTreesConfigurationSigns(t *testing.T) {
	main, home, config := signed(t)
	trap, side := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "side")
	config("extensions.worktreeConfig", "true")
	for _, args := range [][]string{
		{"-c", "commit.gpgsign=false", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "base"},
		{"worktree", "add", "-q", "-b", "side", side},
	} {
		cmd := exec.Command("git", append([]string{"-C", main.Top}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	p, err := git.Open(t.Context(), side)
	if err != nil {
		t.Fatal(err)
	}
	who := git.Person{Author: git.Signature{Name: "a", Email: "a@b"}, Committer: git.Signature{Name: "a", Email: "a@b"}}
	signs := func(by string, able bool) {
		t.Helper()
		s, err := p.Signing(t.Context(), home)
		if err != nil || s == nil {
			t.Fatalf("%s: %+v, %v", by, s, err)
		}
		if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); (err == nil) != able {
			t.Errorf("%s: %v", by, err)
		}
		if _, err := os.Stat(trap); err == nil {
			t.Errorf("%s: a program that the repository names ran", by)
		}
	}
	program := filepath.Join(t.TempDir(), "evil")
	disktest.Put(t, program, "#!/bin/sh\ntouch "+trap+"\n", 0o755)
	config("--worktree", "gpg.ssh.program", program)
	config("--worktree", "gpg.ssh.defaultKeyCommand", program)
	signs("with a key of its owner's", true)

	config("--global", "--unset", "user.signingkey")
	config("--global", "gpg.ssh.defaultKeyCommand", "touch "+filepath.Join(home, "asked"))
	signs("with a command of its owner's that names no key", false)
	if _, err := os.Stat(filepath.Join(home, "asked")); err != nil {
		t.Error("its owner's command did not run")
	}

	config("--global", "--unset", "gpg.ssh.defaultKeyCommand")
	if s, err := p.Signing(t.Context(), home); err == nil {
		t.Errorf("without a key of its owner's: %+v", s)
	}
}

// sealed is a repository whose owner signs with OpenPGP, by a key that nobody else has.
func sealed(t *testing.T) (p git.Project, home string, config func(args ...string)) {
	t.Helper()
	needs(t, "gpg", "gpgconf", "gpg-agent")
	p, _, _ = repository(t)
	home, err := os.MkdirTemp("/tmp", "gpg") // the agent's socket has a short name only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		owned(t, home, "gpgconf", "--kill", "gpg-agent")
		os.RemoveAll(home)
	})
	t.Setenv("GNUPGHOME", "") // that of who runs the tests
	owned(t, home, "gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Ann <ann@example.org>", "ed25519", "sign", "never")
	config = func(args ...string) { owned(t, home, append([]string{"git", "-C", p.Top, "config"}, args...)...) }
	config("--global", "commit.gpgsign", "true")
	return p, home, config
}

func TestACommitIsSignedWithOpenPGP(t *testing.T) {
	p, home, config := sealed(t)
	at := git.Signature{Name: "Ann", Email: "ann@example.org", At: time.Unix(1700000000, 0)}
	who := git.Person{Author: at, Committer: at}
	s, err := p.Signing(t.Context(), home)
	if err != nil || s == nil || s.Format != "openpgp" {
		t.Fatalf("signing: %+v, %v", s, err)
	}
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err != nil {
		t.Fatalf("a try: %v", err)
	}
	in := git.Import{Ref: "refs/sallyport/x/landings/1", Message: "words\n", Author: at, Committer: at}
	c, err := p.Common(disk.Ops{}).Import(t.Context(), "import", in)
	if err != nil {
		t.Fatal(err)
	}
	made, err := p.Sign(t.Context(), disk.Ops{}, *s, c, in)
	if err != nil {
		t.Fatal(err)
	}
	if text := body(t, p, made); !strings.Contains(text, "\ngpgsig -----BEGIN PGP SIGNATURE-----\n") {
		t.Errorf("it is not signed:\n%s", text)
	}
	owned(t, home, "git", "-C", p.Top, "verify-commit", string(made))

	config("--global", "user.signingkey", "nobody@example.org")
	if s, err = p.Signing(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err == nil {
		t.Error("it was signed with a key that is not there")
	}
}

// What cannot be done is said when it is tried, before anybody is asked.
func TestAFormatThatCannotSignIsSaidAtTheTry(t *testing.T) {
	p, home, config := repository(t)
	config("--global", "commit.gpgsign", "true")
	config("--global", "gpg.format", "sigstore")
	if s, err := p.Signing(t.Context(), home); err == nil || !strings.Contains(err.Error(), `"sigstore"`) {
		t.Errorf("a format that git has not: %+v, %v", s, err)
	}

	config("--global", "gpg.format", "x509")
	config("--global", "gpg.x509.program", filepath.Join(home, "gpgsm"))
	s, err := p.Signing(t.Context(), home)
	if err != nil || s.Format != "x509" {
		t.Fatalf("signing: %+v, %v", s, err)
	}
	who := git.Person{Author: git.Signature{Name: "a", Email: "a@b"}, Committer: git.Signature{Name: "a", Email: "a@b"}}
	if err := p.TrySigning(t.Context(), disk.Ops{}, *s, who); err == nil || !strings.Contains(err.Error(), "gpgsm") {
		t.Errorf("without its program: %v", err)
	}
}

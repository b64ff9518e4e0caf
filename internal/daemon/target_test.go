package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/target"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/who/person"
)

// ground is what targets stand on, with a repository of one file.
type ground struct {
	targets
	t    *testing.T
	repo string
	home string
}

var ann = audit.Actor{Kind: "person", Name: "ann", UID: 1234, Person: "psn-0000ann0"}

func newGround(t *testing.T) *ground {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	g := &ground{t: t, repo: filepath.Join(dir, "repo"), home: home, targets: targets{
		settings: config.Look(home), owner: person.Owner{ID: ann.Person, UID: ann.UID, Name: ann.Name}, host: target.Host{Changes: filepath.Join(dir, "changes")},
		spaces: workspace.New(workspace.Config{Root: filepath.Join(dir, "state"), Strategy: workspace.Copy}),
	}}
	for _, name := range []string{"repo", "home", "state"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g.db = sqlitetest.Open(t, filepath.Join(dir, "db"))
	t.Cleanup(func() { g.db.Close() })
	g.git("init", "-q", "-b", "main")
	return g
}

func (g *ground) git(words ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", g.repo, "-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, words...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", words, err, out)
	}
	return strings.TrimSpace(string(out))
}

// says commits a .sallyport.yaml and returns the commit.
func (g *ground) says(text string) git.OID {
	g.t.Helper()
	writeFile(g.t, filepath.Join(g.repo, config.RepositoryFile), []byte(text), 0o600)
	g.git("add", "-A")
	g.git("commit", "-q", "--allow-empty", "-m", "words")
	return git.OID(g.git("rev-parse", "HEAD"))
}

// of is what counts for a change that is based on commit.
func (g *ground) of(commit git.OID) (restart, unproven string) {
	g.t.Helper()
	p, err := git.Open(g.t.Context(), g.repo)
	if err != nil {
		g.t.Fatal(err)
	}
	host, err := g.spaces.EnsureRepository(g.t.Context(), p, commit)
	if err != nil {
		g.t.Fatal(err)
	}
	tg, unproven, err := g.Of(g.t.Context(), host, p, commit)
	if err != nil {
		g.t.Fatal(err)
	}
	return tg.Restart, unproven
}

// digest is that of what is proposed at HEAD.
func (g *ground) digest() string {
	g.t.Helper()
	w, err := g.Target(g.t.Context(), g.repo)
	if err != nil || w.Proposed == nil {
		g.t.Fatalf("%+v, %v", w, err)
	}
	return w.Proposed.Digest()
}

const words = "target: {restart: systemctl restart app, probe: {http: 'http://localhost:80/', healthy: 3s}, trial: 1m}\n"

func TestOnlyExactlyTheWordsThatAreTrustedCount(t *testing.T) {
	g := newGround(t)
	first := g.says(words)
	if restart, unproven := g.of(first); restart != "" || !strings.Contains(unproven, "nobody trusts") || !strings.Contains(unproven, "sallyport target show --repo "+g.repo) {
		t.Fatalf("counts untrusted: %q, %q", restart, unproven)
	}
	w, err := g.Trust(t.Context(), g.repo, g.digest()[:digestMin], ann)
	if err != nil || !w.Trusted() {
		t.Fatalf("%+v, %v", w, err)
	}
	if restart, unproven := g.of(first); restart != "systemctl restart app" || unproven != "" {
		t.Fatalf("trusted, and not taken: %q, %q", restart, unproven)
	}
	// The same words in another spelling are the same; each other character or number is not.
	if restart, _ := g.of(g.says("target:\n  trial: 60s\n  probe: {healthy: 3s, http: \"http://localhost:80/\"}\n  restart: 'systemctl restart app'\n")); restart == "" {
		t.Error("the order of keys voids a trust")
	}
	for name, change := range map[string][2]string{
		"a blank": {"restart app", "restart  app"}, "a letter": {"restart app", "restart App"}, "another address": {":80/", ":81/"}, "healthy for less": {"3s", "2s"},
		"a shorter trial": {"1m", "59s"}, "a limit that is named": {"healthy: 3s", "healthy: 3s, timeout: 5s"}, "no restart": {"restart: systemctl restart app, ", ""},
		"a letter that looks alike": {"app", "аpp"},
	} {
		if restart, unproven := g.of(g.says(strings.Replace(words, change[0], change[1], 1))); restart != "" || unproven == "" {
			t.Errorf("%s counts: %q, %q", name, restart, unproven)
		}
	}
	// A base from before is judged by the words there, whatever stands at HEAD now.
	if restart, _ := g.of(first); restart != "systemctl restart app" {
		t.Errorf("the base's words are %q", restart)
	}
	if restart, unproven := g.of(g.says("# nothing\n")); restart != "" || unproven != "" {
		t.Errorf("nothing is proposed: %q, %q", restart, unproven)
	}
	if err := g.Distrust(t.Context(), g.repo, ann); err != nil {
		t.Fatal(err)
	}
	if restart, unproven := g.of(first); restart != "" || unproven == "" {
		t.Errorf("counts after it was taken back: %q, %q", restart, unproven)
	}
	err = g.db.Read(t.Context(), func(tx store.Tx) error {
		all, err := tx.Entries(t.Context(), "", 0, 0)
		if len(all) != 2 || all[0].Verb != "trusted target" || all[0].Actor != ann || all[0].Subject != "target:"+g.repo || len(all[0].Digests["target"]) != 64 ||
			all[0].Digests["commit"] != string(first) || all[1].Verb != "distrusted target" || all[1].Digests["target"] != all[0].Digests["target"] {
			t.Errorf("the audit says %+v", all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTheOwnerTrustsAndOnlyWhatTheyRead(t *testing.T) {
	g := newGround(t)
	g.says(words)
	digest := g.digest()
	for name, test := range map[string]struct {
		by     audit.Actor
		digest string
		want   problem.Kind
	}{
		"another":       {audit.Actor{Kind: "person", Name: "bob", UID: 1234, Person: "psn-0000bob0"}, digest, problem.Denied},
		"an agent":      {audit.Actor{Kind: "agent", Name: "ann", UID: 1234, Person: ann.Person}, digest, problem.Denied},
		"other words":   {ann, strings.Repeat("0", 64), problem.Conflict},
		"too short":     {ann, digest[:11], problem.Usage},
		"too long":      {ann, digest + "0", problem.Usage},
		"no digits":     {ann, strings.ToUpper(digest[:12]) + "G", problem.Usage},
		"nothing":       {ann, "", problem.Usage},
		"an other part": {ann, digest[1:], problem.Conflict},
	} {
		if _, err := g.Trust(t.Context(), g.repo, test.digest, test.by); problem.KindOf(err) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := g.Distrust(t.Context(), g.repo, audit.Actor{Kind: "person", Name: "bob", UID: 1234, Person: "psn-0000bob0"}); problem.KindOf(err) != problem.Denied {
		t.Errorf("another takes it back: %v", err)
	}
	if err := g.Distrust(t.Context(), g.repo, ann); problem.KindOf(err) != problem.NotFound {
		t.Errorf("nothing is taken back: %v", err)
	}
	if w, err := g.Target(t.Context(), g.repo); err != nil || w.Trust != nil {
		t.Errorf("%+v, %v", w, err)
	}
	g.says("# nothing\n")
	if _, err := g.Trust(t.Context(), g.repo, digest, ann); problem.KindOf(err) != problem.NotFound {
		t.Errorf("nothing is proposed: %v", err)
	}
}

func TestTheHomesWordCountsOverWhatARepositoryProposes(t *testing.T) {
	g := newGround(t)
	commit := g.says(words)
	if _, err := g.Trust(t.Context(), g.repo, g.digest(), ann); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(g.repo), "link")
	if err := os.Symlink(g.repo, link); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ repository, want string }{
		"its work tree": {g.repo, "mine"}, "a link to it": {link, "mine"}, "another": {g.repo + "2", "systemctl restart app"}, "the folder above": {filepath.Dir(g.repo), "systemctl restart app"},
	} {
		file := filepath.Join(g.home, config.SallyportFile)
		writeFile(t, file, fmt.Appendf(nil, "targets:\n- {repository: %s, restart: mine}\n", test.repository), 0o600)
		if restart, unproven := g.of(commit); restart != test.want || unproven != "" {
			t.Errorf("%s: %q, %q", name, restart, unproven)
		}
		_, err := g.Trust(t.Context(), g.repo, g.digest(), ann)
		if (problem.KindOf(err) == problem.Conflict) != (test.want == "mine") {
			t.Errorf("%s: trusting says %v", name, err)
		}
	}
}

func TestANotificationSaysAllOnItsInputAndInItsEnvironment(t *testing.T) {
	home := t.TempDir()
	told := filepath.Join(t.TempDir(), "told")
	says := func(command string) {
		t.Helper()
		writeFile(t, filepath.Join(home, config.SallyportFile), fmt.Appendf(nil, "notify:\n  command: |\n    %s\n", command), 0o600)
	}
	tell := teller{home: home, settings: config.Look(home), secrets: secret.Default()}
	note := ledger.Note{Change: "chg-00000001", Kind: ledger.NoteTrial, Text: "back\nwith \x1b[31m", Next: "sallyport confirm chg-00000001"}
	if err := tell.Tell(t.Context(), note); !errors.Is(err, ledger.ErrNobody) {
		t.Errorf("nobody is named: %v", err)
	}
	says(`cat >` + told + `; echo "$SALLYPORT_CHANGE $SALLYPORT_KIND|$SALLYPORT_TEXT|$SALLYPORT_NEXT|$PWD" >>` + told)
	if err := tell.Tell(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(told)
	text := "back\nwith \\x1b[31m"
	if want := text + "\nchg-00000001 trial|" + text + "|sallyport --home " + home + " confirm chg-00000001|" + home + "\n"; string(raw) != want || err != nil {
		t.Errorf("told %q, %v\nwant %q", raw, err, want)
	}
	says("echo ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi; exit 5")
	if err := tell.Tell(t.Context(), note); err == nil || errors.Is(err, ledger.ErrNobody) || !strings.HasSuffix(err.Error(), "exit status 5: [secret: github-token]") {
		t.Errorf("a failure is %v", err)
	}
	says("sleep 60")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, errors.New("the daemon stops"))
	defer cancel()
	if err := tell.Tell(ctx, note); err == nil || !strings.Contains(err.Error(), "the daemon stops") {
		t.Errorf("got %v", err)
	}
	says(`echo again >>` + told)
	if err := tell.Tell(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(home, config.SallyportFile), []byte("notify: [\n"), 0o600)
	if err := tell.Tell(t.Context(), note); err != nil {
		t.Errorf("by a file that does not load: %v", err)
	}
	if raw, err := os.ReadFile(told); err != nil || !strings.HasSuffix(string(raw), "again\nagain\n") {
		t.Errorf("what loaded last does not go on: %q, %v", raw, err)
	}
}

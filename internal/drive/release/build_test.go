package release_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/keeper"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// withSource gives a home the source of its host.
func withSource(h *drivetest.Home, files map[string]string) {
	h.T.Helper()
	for name, text := range files {
		at := filepath.Join(h.Repo, name)
		disktest.Put(h.T, at, text, 0o644)
	}
	h.Git("add", "-A")
	h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "the source")
}

var source = map[string]string{"src/go.mod": "module x\n", "src/Makefile": "build:\n\ttrue\n", "src/scripts/pack": "as before\n", "src/main.go": "package main\n"}

// outOf is where what a build makes goes.
func outOf(spec sandbox.Spec) string {
	i := slices.IndexFunc(spec.Own, func(b sandbox.Bind) bool { return b.Target == "/workspace/src/bin" && b.Writable })
	return spec.Own[i].Source
}

func compiles(t *testing.T, spec sandbox.Spec, schema int) int {
	if err := os.WriteFile(filepath.Join(outOf(spec), "sallyport"), []byte("what was built"), 0o755); err != nil {
		t.Error(err)
	}
	fmt.Fprintf(spec.Stdout, "compiling { a package }\n{\n  \"build\": \"home-1\",\n  \"schema\": %d\n}\n", schema)
	return 0
}

// TestAChangeOfTheSourceIsBuiltByWhatBuiltItBefore holds SM-064 and SM-913: what a change makes of the build itself judges no change.
func TestAChangeOfTheSourceIsBuiltByWhatBuiltItBefore(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		withSource(h, source)
		s, _ := staged(h, "src/scripts/pack", func(int) (rehearsal.Report, int) { return well(), 0 })
		var pack, home, env string
		s.makes = func(spec sandbox.Spec) int {
			raw, _ := os.ReadFile(filepath.Join(spec.Tree.Dir, "src/scripts/pack"))
			pack, home, env = string(raw), spec.Tree.GitDir, strings.Join(spec.Env, "\n")
			return compiles(t, spec, 8)
		}
		c, _ := s.Begin()
		p := s.Show(c, s.Offer(c)).Proposal
		got := p.Card.Host
		if pack != "as before\n" || home != "" || strings.Contains(env, "HTTPS_PROXY") {
			t.Errorf("it was built by %q, with %q and %s", pack, home, env)
		}
		all, err := s.host.Releases().List()
		if err != nil || len(all) != 1 || all[0].Build != "home-1" || all[0].Schema != 8 || all[0].Source != string(p.Commit) {
			t.Fatalf("there are %+v, %v", all, err)
		}
		if got == nil || got.Release != all[0].Digest || got.Build != "home-1" || !got.Quiet() || got.Was != 7 || !slices.Contains(p.Card.Banner, "rollback may be lossy if migration is non-reversible") {
			t.Errorf("the card says %+v, %q", got, p.Card.Banner)
		}
		if err := proposal.Verify(*p); err != nil {
			t.Error(err)
		}
		other := *p
		card := *got
		card.Release = "another"
		if other.Card.Host = &card; other.Sum() == p.Digest {
			t.Error("a yes to this card covers another release")
		}
		if about, _, _ := p.Tell("echo"); !strings.Contains(about, "the host runs by release "+all[0].Digest[:12]+" (build home-1), and its database goes from schema 7 to 8") {
			t.Errorf("the card in a conversation says\n%s", about)
		}
	})
}

// TestASourceThatGoesBackDoesNotTakeItsReleaseAlong: what was built of it runs on, and whoever is asked for the way back reads so.
func TestASourceThatGoesBackDoesNotTakeItsReleaseAlong(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		withSource(h, source)
		s, _ := staged(h, "src/scripts/pack", func(int) (rehearsal.Report, int) { return well(), 0 })
		s.makes = func(spec sandbox.Spec) int { return compiles(t, spec, 7) }
		k := drivetest.Keep(h)
		c, end := s.Begin()
		chg := s.Offer(c)
		d := s.Show(c, chg)
		time.Sleep(time.Minute)
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Marked: true, Typed: d.Proposal.Card.Typed}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.Is(c, chg, change.InTrial)
		end()

		k.Moves(keeper.Ready, nil)
		c, _ = s.Begin()
		time.Sleep(10 * time.Second)
		c.RecordDelivery(chg)
		time.Sleep(time.Second)
		if err := c.Confirm(gittest.Context(t), chg, h.By(), drivetest.RightCode); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.Is(c, chg, change.Finalized)

		back := s.Is(c, h.Undo(c, chg, request.Ask), change.AwaitingApproval).Proposal.Card
		want := fmt.Sprintf("the host goes on by the release that it runs by, and so do sandboxes by its image: sallyport upgrade has it run by another, such as the one before %.12s", d.Proposal.Card.Host.Release)
		if !slices.Contains(back.Then, want) || back.Host != nil {
			t.Errorf("the card says %q, and of the host %+v", back.Then, back.Host)
		}
	})
}

// TestNothingIsBuiltOfWhatIsNoSource holds SM-913: a change brings along no other file of make's, nothing that stands for what its source makes,
// and a build sees no group.
func TestNothingIsBuiltOfWhatIsNoSource(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		withSource(h, source)
		files := map[string]string{"src/main.go": "package main // changed\n"}
		brought := []string{"src/GNUmakefile", "src/.cache/00/00-a", "src/bin/sallyport"}
		for _, path := range brought {
			files[path] = "other\n"
		}
		s, _ := stagedMore(h, files, func(int) (rehearsal.Report, int) { return well(), 0 })
		s.makes = func(spec sandbox.Spec) int {
			for _, path := range append(brought, "groups") {
				if _, err := os.Lstat(filepath.Join(spec.Tree.Dir, path)); err == nil {
					t.Errorf("%s is there", path)
				}
			}
			if raw, err := os.ReadFile(filepath.Join(spec.Tree.Dir, "src/main.go")); string(raw) != files["src/main.go"] {
				t.Errorf("main.go is %q, %v", raw, err)
			}
			return compiles(t, spec, 7)
		}
		c, _ := s.Begin()
		if got := s.Show(c, s.Offer(c)).Proposal.Card.Host; got == nil || got.Build != "home-1" {
			t.Errorf("the card says %+v", got)
		}
	})
}

// TestABuildThatFailsGoesBackToItsAgent holds that it is told why, a missing module by its name.
func TestABuildThatFailsGoesBackToItsAgent(t *testing.T) {
	without := map[string]string{"src/go.mod": "module x\n", "src/main.go": "package main\n"}
	for name, b := range map[string]struct {
		files map[string]string
		makes func(t *testing.T, spec sandbox.Spec) int
		why   string
	}{
		"it does not compile": {source, func(_ *testing.T, spec sandbox.Spec) int {
			fmt.Fprintln(spec.Stderr, "main.go:3: undefined: x")
			return 2
		}, "it ended with status 2; its last lines: main.go:3: undefined: x"},
		"a module of go.mod is missing": {source, func(_ *testing.T, spec sandbox.Spec) int {
			fmt.Fprintln(spec.Stderr, "go: downloading example.org/mod v1.2.3\nmain.go:3:2: module lookup disabled by GOPROXY=off")
			return 1
		}, "it needs a module, which is not among the Go modules of this machine: run `cd "},
		"a secret is printed": {source, func(_ *testing.T, spec sandbox.Spec) int {
			fmt.Fprintln(spec.Stderr, "one\ntwo\nthree\nkey ghp_"+strings.Repeat("aB3dE6gH9j", 4)[:36])
			return 1
		}, "its last lines: two | three | key [secret: github-token]"},
		"a module is missing": {source, func(_ *testing.T, spec sandbox.Spec) int {
			fmt.Fprintln(spec.Stderr, "main.go:3:2: example.org/mod@v1.2.3: module lookup disabled by GOPROXY=off")
			return 1
		}, "it needs example.org/mod@v1.2.3, which is not among the Go modules of this machine"},
		"a module is in no go.mod": {source, func(_ *testing.T, spec sandbox.Spec) int {
			fmt.Fprintln(spec.Stderr, "main.go:3:2: no required module provides package example.org/mod/part; to add it:")
			return 1
		}, "it needs example.org/mod/part, which"},
		"nothing says how": {without, nil, "the home has no src/Makefile before the change"},
		"it is no program": {source, func(t *testing.T, spec sandbox.Spec) int {
			status := compiles(t, spec, 7)
			if err := os.Chmod(filepath.Join(outOf(spec), "sallyport"), 0o644); err != nil {
				t.Error(err)
			}
			return status
		}, "what was built cannot be kept as a release"},
		"it says not what it is": {source, func(_ *testing.T, _ sandbox.Spec) int { return 0 }, "what was built does not say what it is"},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				withSource(h, b.files)
				s, troupe := staged(h, "src/main.go", func(int) (rehearsal.Report, int) { return well(), 0 })
				built := 0
				s.makes = func(spec sandbox.Spec) int {
					if built++; built > 1 {
						return compiles(t, spec, 7)
					}
					return b.makes(t, spec)
				}
				s.Converse(drivetest.SwapChat)
				c, _ := s.Begin()
				chg := s.Propose(c)
				d := s.Is(c, chg, change.Working)
				if said := s.Said(); len(said) == 0 || !strings.Contains(said[0], "sallyport builds and rehearses it, which may take minutes; its card comes after that") {
					t.Errorf("the conversation says %q", said)
				}
				told := troupe.Told()
				if last := told[len(told)-1]; len(s.specs) > 0 || !strings.Contains(last, "build of the host") || !strings.Contains(last, b.why) {
					t.Errorf("after %d rehearsals its agent hears %q", len(s.specs), last)
				}
				if checks := d.Proposal.Card.Checks; len(checks) != 1 || checks[0].OK {
					t.Errorf("the card says %+v", checks)
				}
				if all, err := s.host.Releases().List(); err != nil || len(all) > 0 {
					t.Errorf("there are releases %+v, %v", all, err)
				}
			})
		})
	}
}

// TestABuildThatFailsNamesWhatTheMachineLacks holds that a tool which is not there is told before a module, and that nobody is told to
// allow what is allowed.
func TestABuildThatFailsNamesWhatTheMachineLacks(t *testing.T) {
	bare := t.TempDir()
	git, err := exec.LookPath("git")
	if err == nil {
		err = os.Symlink(git, filepath.Join(bare, "git"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]struct {
		path       string
		registries bool
		has, not   string
	}{
		"a tool":                       {bare, false, "; the build needs make, which is not installed", "registries: true"},
		"a module":                     {os.Getenv("PATH"), false, "registries: true", "needs make"},
		"a module that it may fetch":   {os.Getenv("PATH"), true, "; its last lines: main.go:3:2: example.org/mod@v1.2.3: module lookup disabled", "; it needs"},
		"a tool where it may fetch it": {bare, true, "; the build needs make", "; it needs"},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				withSource(h, source)
				s, troupe := staged(h, "src/main.go", func(int) (rehearsal.Report, int) { return well(), 0 })
				s.host.registries = b.registries
				h.Parts.Network = &drivetest.Ways{}
				s.makes = func(spec sandbox.Spec) int {
					fmt.Fprintln(spec.Stderr, "main.go:3:2: example.org/mod@v1.2.3: module lookup disabled by GOPROXY=off")
					return 1
				}
				c, _ := s.Begin()
				t.Setenv("PATH", b.path)
				chg := s.Propose(c)
				s.Is(c, chg, change.Working)
				told := troupe.Told()
				if last := told[len(told)-1]; !strings.Contains(last, b.has) || strings.Contains(last, b.not) {
					t.Errorf("its agent hears %q", last)
				}
			})
		})
	}
}

// TestWithoutSourceNothingIsBuilt holds that a home without the source of its host goes on by what runs.
func TestWithoutSourceNothingIsBuilt(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "src/notes.md", func(int) (rehearsal.Report, int) { return well(), 0 })
		c, _ := s.Begin()
		if got := s.Show(c, s.Offer(c)).Proposal.Card.Host; got == nil || got.Release != "" || got.Build != "now" {
			t.Errorf("the card says %+v", got)
		}
	})
}

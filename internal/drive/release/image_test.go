package release_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/release"
	"sallyport/internal/path/change"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

const ofStandIn = "FROM scratch\nFROM Debian:12 AS other\nFROM registry.example.org:5000/base@sha256:0123 \nfrom --platform=linux/amd64 debian:12\nFROM $BASE\nFROM -evil\n# FROM comment\n"

// builds has a host build images, each of which holds what its Dockerfile says.
func (s *stage) builds(t *testing.T, more func(spec sandbox.Spec) int) (count *int) {
	t.Helper()
	s.host.builder = release.Builder{Owner: sandbox.Owner{UID: 0x78000000, GID: 0x78000000}}
	if os.Geteuid() != 0 {
		s.host.builder.Owner = sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	}
	count = new(int)
	others := s.makes
	s.makes = func(spec sandbox.Spec) int {
		if !strings.Contains(spec.Argv[2], "buildah bud") {
			return others(spec)
		}
		*count++
		if more != nil {
			if status := more(spec); status != 0 {
				return status
			}
		}
		text, err := os.ReadFile(filepath.Join(spec.Tree.Dir, "image/Dockerfile"))
		work := spec.Own[slices.IndexFunc(spec.Own, func(b sandbox.Bind) bool { return b.Target == "/build" && b.Writable })].Source
		if err = errors.Join(err, os.MkdirAll(filepath.Join(work, "root/usr"), 0o755), os.WriteFile(filepath.Join(work, "root/usr/file"), text, 0o644),
			os.WriteFile(filepath.Join(work, "env"), []byte("PATH=/usr/lib/own/bin:/workspace\n"), 0o644)); err != nil {
			t.Error(err)
		}
		return 0
	}
	return count
}

func rehearsed(int) (rehearsal.Report, int) { return well(), 0 }

// TestAnImageIsBuiltOfWhatAChangeHasOfItAndIsPartOfTheRelease holds SM-067 and SM-105.
func TestAnImageIsBuiltOfWhatAChangeHasOfItAndIsPartOfTheRelease(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		withSource(h, map[string]string{"src/secret.go": "package main\n", "go.mod": "module x\n", "groups/other/words.md": "private\n"})
		s, _ := stagedMore(h, map[string]string{"image/Dockerfile": ofStandIn, "image/list.txt": "ffmpeg\n"}, rehearsed)
		var saw []string
		count := s.builds(t, func(spec sandbox.Spec) int {
			if !spec.Range || spec.Owner != s.host.builder.Owner || spec.Egress != "" || len(spec.Binds)+len(spec.Mounts) > 0 || spec.Tree.GitDir != "" {
				t.Errorf("it is built in %+v", spec)
			}
			saw = names(t, spec.Tree.Dir)
			return 0
		})
		var started sandbox.Spec
		s.starts = func(spec sandbox.Spec) int { started = spec; time.Sleep(1234 * time.Millisecond); return 0 }
		c, _ := s.Begin()
		p := s.Show(c, s.Offer(c)).Proposal
		if want := []string{"go.mod", "image/Dockerfile", "image/list.txt"}; !slices.Equal(saw, want) || *count != 1 {
			t.Errorf("it is built %d times, of %q", *count, saw)
		}
		if want := []string{"Debian:12", "registry.example.org:5000/base@sha256:0123", "debian:12"}; !slices.Equal(s.host.bases, want) {
			t.Errorf("it stands on %q", s.host.bases)
		}
		got := p.Card.Host
		releases, err := s.host.Releases().List()
		images, err2 := s.host.Images().List()
		if err := errors.Join(err, err2); err != nil || len(releases) != 1 || len(images) != 1 {
			t.Fatalf("%+v, %+v, %v", releases, images, err)
		}
		if r := releases[0]; got == nil || got.Release != r.Digest || r.Image != images[0].Digest || r.Build != "now" || r.Schema != 7 {
			t.Errorf("the card says %+v of %+v", got, releases[0])
		}
		if spec := started; spec.Image != s.host.Images().Root(images[0].Digest) || spec.Range || spec.Egress != "" || len(spec.Binds)+len(spec.Mounts)+len(spec.Own) > 0 ||
			images[0].Path != "/usr/lib/own/bin:/workspace" || !slices.ContainsFunc(spec.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=/usr/lib/own/bin:/usr/") }) {
			t.Errorf("it is tried in %+v", spec)
		}
		if !slices.Contains(got.Rehearsed, "a sandbox starts from its image, and a shell and git run there (1.23s)") {
			t.Errorf("it was rehearsed: %q", got.Rehearsed)
		}
		about, _, _ := p.Tell("echo")
		if words := fmt.Sprintf("sandboxes of groups start from image %.12s (3 files, 0 MiB), in the place of this machine's own programs", images[0].Digest); !strings.Contains(about, words) {
			t.Errorf("the card in a conversation lacks %q:\n%s", words, about)
		}
		if left, err := os.ReadDir(h.Parts.Settings.Rehearsals); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v", left, err)
		}
	})
}

// TestWhatWasBuiltOnceOfTheSameIsNotBuiltAgain holds SM-105, and that a change of something else builds none.
func TestWhatWasBuiltOnceOfTheSameIsNotBuiltAgain(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "image/Dockerfile", rehearsed)
		count := s.builds(t, nil)
		c, _ := s.Begin()
		first := s.Show(c, s.Offer(c)).Proposal.Card.Host
		second := s.Show(c, s.Offer(c)).Proposal.Card.Host
		if *count != 1 || first == nil || second == nil || first.Release == "" || first.Release != second.Release {
			t.Errorf("it was built %d times: %+v, %+v", *count, first, second)
		}
	})
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		withSource(h, map[string]string{"image/Dockerfile": "FROM scratch\n"})
		s, _ := staged(h, "docs/page.md", rehearsed)
		s.host.image = strings.Repeat("a", 64)
		count := s.builds(t, nil)
		c, _ := s.Begin()
		if got := s.Show(c, s.Offer(c)).Proposal.Card.Host; *count != 0 || got.Release != "" || got.StartsFrom != "" {
			t.Errorf("it was built %d times: %+v", *count, got)
		}
	})
}

// TestAReleaseThatWasApprovedIsNotMadeAnew holds SM-913 where the branch has moved: what lands is the release that somebody read about. No image
// is built in the place of its own, and its own is of nothing else than what lands.
func TestAReleaseThatWasApprovedIsNotMadeAnew(t *testing.T) {
	for name, row := range map[string]struct {
		changes, moves string
		tried, images  int
		state          change.State
		reason         string
	}{
		"elsewhere":                               {"image/Dockerfile", "docs/else.md", 2, 1, change.InTrial, ""},
		"in what its image is built of":           {"image/Dockerfile", "image/list.txt", 1, 1, change.AwaitingApproval, "what it is built of has moved on main"},
		"in what no image of its own is built of": {"src/main.go", "image/list.txt", 2, 0, change.InTrial, ""},
	} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			withSource(h, source)
			s, _ := staged(h, row.changes, rehearsed)
			s.host.image = strings.Repeat("a", 64)
			s.makes = func(spec sandbox.Spec) int { return compiles(t, spec, 7) }
			drivetest.Keep(h)
			count, starts := s.builds(t, nil), 0
			s.starts = func(sandbox.Spec) int { starts++; return 0 }
			d := s.landsMoved(t, row.moves)
			if d.Change.State != row.state || !strings.Contains(d.Change.Reason, row.reason) || len(s.specs) != row.tried || *count != row.images || starts != row.images {
				t.Errorf("%s: after %d rehearsals, %d builds and %d starts it is %s: %s", name, len(s.specs), *count, starts, d.Change.State, d.Change.Reason)
			}
		})
	}
}

// TestAHomeWithoutADockerfileStartsFromTheMachineAgain holds that a change is the way out of an image, too.
func TestAHomeWithoutADockerfileStartsFromTheMachineAgain(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "image/notes.md", rehearsed)
		s.host.image = strings.Repeat("a", 64)
		count := s.builds(t, nil)
		c, _ := s.Begin()
		got := s.Show(c, s.Offer(c)).Proposal.Card.Host
		if *count != 0 || got == nil || got.Release == "" || got.StartsFrom != "sandboxes of groups start from this machine's own programs again, and from no image" {
			t.Errorf("it was built %d times: %+v", *count, got)
		}
	})
}

// TestACardSaysWhyNoImageIsBuilt holds SM-067 and SM-105 where none can be: nobody approves a Dockerfile for what it does not do.
func TestACardSaysWhyNoImageIsBuilt(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "image/Dockerfile", rehearsed)
		s.host.builder.Why = "buildah is not installed here"
		c, _ := s.Begin()
		p := s.Show(c, s.Offer(c)).Proposal
		about, _, _ := p.Tell("echo")
		if got := p.Card.Host; got == nil || got.Release != "" || !strings.Contains(about, "no image is built of image/Dockerfile: buildah is not installed here") {
			t.Errorf("the card says %+v:\n%s", got, about)
		}
	})
}

// TestNoImageIsBuiltWhereNothingHoldsABuild: that is known once one is to start.
func TestNoImageIsBuiltWhereNothingHoldsABuild(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "image/Dockerfile", rehearsed)
		count := s.builds(t, nil)
		h.Cage.Refuse = func(start int) error {
			if start == 2 { // after the agent
				return sandbox.ErrUnheld
			}
			return nil
		}
		c, _ := s.Begin()
		p := s.Show(c, s.Offer(c)).Proposal
		about, _, _ := p.Tell("echo")
		if got := p.Card.Host; *count > 0 || got == nil || got.Release != "" || !strings.Contains(about, "no image is built of image/Dockerfile: this machine has no control groups") {
			t.Errorf("%d are built, and the card says %+v:\n%s", *count, got, about)
		}
	})
}

// TestAnImageThatDoesNotBuildGoesBackToItsAgent holds SM-913: nobody is asked, and the agent hears what was printed.
func TestAnImageThatDoesNotBuildGoesBackToItsAgent(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, troupe := staged(h, "image/Dockerfile", rehearsed)
		s.builds(t, func(spec sandbox.Spec) int {
			fmt.Fprintln(spec.Stderr, "STEP 1/2: FROM debian:12\nError: creating build container: debian:12: image not known")
			return 125
		})
		c, _ := s.Begin()
		d := s.Is(c, s.Propose(c), change.Working)
		if len(d.Proposal.Card.Checks) != 1 || d.Proposal.Card.Checks[0].OK {
			t.Errorf("its card says %+v", d.Proposal.Card)
		}
		told := troupe.Told()
		for _, words := range []string{"build of image/Dockerfile", "status 125, at step 1/2 (FROM debian:12): creating build container: debian:12: image not known; it stands on", "host: {build: {images: [NAME]}}"} {
			if last := told[len(told)-1]; !strings.Contains(last, words) {
				t.Errorf("its agent does not hear %q: %q", words, last)
			}
		}
	})
}

// TestADockerfileThatThisMachineWouldSearchForIsNotBuilt: for each image that it names, this machine is asked out here, by root.
func TestADockerfileThatThisMachineWouldSearchForIsNotBuilt(t *testing.T) {
	many := ""
	for n := range 21 {
		many += fmt.Sprintf("FROM base%d\n", n)
	}
	for text, words := range map[string]string{
		many: "image/Dockerfile stands on more than 20 images",
		"FROM scratch\n" + strings.Repeat("#\n", 512<<10): "image/Dockerfile has more than 1024 KiB",
	} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			s, troupe := stagedMore(h, map[string]string{"image/Dockerfile": text}, rehearsed)
			count := s.builds(t, func(sandbox.Spec) int { return 0 })
			c, _ := s.Begin()
			s.Is(c, s.Propose(c), change.Working)
			if *count > 0 || len(s.host.bases) > 0 {
				t.Errorf("it is built %d times, of %q", *count, s.host.bases)
			}
			told := troupe.Told()
			if last := told[len(told)-1]; !strings.Contains(last, words) {
				t.Errorf("its agent does not hear %q: %.300q", words, last)
			}
		})
	}
}

// TestAnImageInWhichNoAgentCouldWorkGoesBackToItsAgent: it hears which of what every agent needs is missing.
func TestAnImageInWhichNoAgentCouldWorkGoesBackToItsAgent(t *testing.T) {
	const noShell, noGit = "agents need a shell: have image/Dockerfile", "agents need git: have image/Dockerfile"
	for name, try := range map[string]struct {
		prints     string
		says, lack string
	}{
		"a shell that does not run": {"sh: no such library", "its /bin/sh does not run in a sandbox that starts from it: it ended with status 127; " + noShell, noGit},
		"no git":                    {"a shell runs here\nsh: git: not found", "a shell runs in a sandbox that starts from it, and git does not: it ended with status 127; " + noGit, noShell},
		"no shell":                  {"", `no sandbox starts from it by /bin/sh: start "/bin/sh": no such file; ` + noShell, noGit},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				s, troupe := staged(h, "image/Dockerfile", rehearsed)
				s.builds(t, nil)
				s.starts = func(spec sandbox.Spec) int {
					fmt.Fprintln(spec.Stderr, try.prints)
					return 127
				}
				if try.prints == "" {
					h.Cage.Refuse = func(start int) error {
						if start == 3 { // after the agent and the build
							return problem.Errorf(problem.NotFound, "", "start %q: no such file", "/bin/sh")
						}
						return nil
					}
				}
				c, _ := s.Begin()
				s.Is(c, s.Propose(c), change.Working)
				told := troupe.Told()
				if last := told[len(told)-1]; !strings.Contains(last, try.says) || !strings.Contains(last, try.prints) || strings.Contains(last, try.lack) {
					t.Errorf("its agent does not hear %q: %q", try.says, last)
				}
			})
		})
	}
}

// TestABuildThatLeavesALinkHasBuiltNothing: shown in the place of the machine's programs it would lead anywhere.
func TestABuildThatLeavesALinkHasBuiltNothing(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, troupe := staged(h, "image/Dockerfile", rehearsed)
		s.builds(t, nil)
		s.makes = func(spec sandbox.Spec) int {
			if err := os.Symlink("/etc", filepath.Join(spec.Own[0].Source, "root")); err != nil {
				t.Error(err)
			}
			return 0
		}
		c, _ := s.Begin()
		s.Is(c, s.Propose(c), change.Working)
		if told := troupe.Told(); !strings.Contains(told[len(told)-1], "what was built is no root file system") {
			t.Errorf("its agent hears %q", told)
		}
	})
}

// names lists the files below a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rest, _ := filepath.Rel(dir, path)
			all = append(all, rest)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

package release_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// of returns the mode and the owner of a file.
func of(t *testing.T, path string) (mode fs.FileMode, uid uint32) {
	t.Helper()
	is, err := os.Lstat(path)
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	return is.Mode(), is.Sys().(*syscall.Stat_t).Uid
}

// TestABuildReachesRegistriesOnlyWhereTheHomeLetsIt: it is shut off from all else, and its way is closed behind it.
func TestABuildReachesRegistriesOnlyWhereTheHomeLetsIt(t *testing.T) {
	for _, lets := range []bool{false, true} {
		for _, path := range []string{"src/main.go", "image/Dockerfile"} {
			t.Run(fmt.Sprint(path, lets), func(t *testing.T) {
				drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
					withSource(h, source)
					s, _ := staged(h, path, rehearsed)
					s.host.registries = lets
					ways := &drivetest.Ways{}
					h.Parts.Network = ways
					var spec sandbox.Spec
					s.makes = func(is sandbox.Spec) int {
						spec = is
						if mode, uid := of(t, outOf(spec)); mode.Perm() != 0o700 || uid != spec.Owner.UID {
							t.Errorf("what it makes goes to a folder of %d, %v", uid, mode)
						}
						return compiles(t, spec, 7)
					}
					s.builds(t, func(is sandbox.Spec) int {
						spec = is
						for _, at := range []string{spec.Tree.Dir, filepath.Join(spec.Tree.Dir, "image/Dockerfile"), filepath.Join(spec.Own[0].Source, "base")} {
							if _, uid := of(t, at); uid != spec.Owner.UID {
								t.Errorf("%s is of %d, and not the builder's", at, uid)
							}
						}
						return 0
					})
					c, _ := s.Begin()
					if got := s.Show(c, s.Offer(c)).Proposal.Card.Host; got == nil || got.Release == "" {
						t.Fatalf("the card says %+v", got)
					}
					var opened []live.Outgoing
					for _, o := range ways.Opened {
						if o.Fetch {
							opened = append(opened, o)
						}
					}
					if (len(opened) == 1) != lets || (spec.Egress != "") != lets || lets && (!opened[0].Setup || opened[0].Check) {
						t.Errorf("it reaches out by %q, opened for %+v", spec.Egress, opened)
					}
					if n, closed := ways.Counts(); n != closed {
						t.Errorf("of %d ways %d are closed", n, closed)
					}
					if line := spec.Argv[2]; strings.Contains(line, "buildah") && (strings.Contains(line, "--pull=missing") != lets || strings.Contains(line, "--pull=never") == lets) {
						t.Errorf("it is built by %q", line)
					}
				})
			})
		}
	}
}

// TestABuildLeavesNothingBehind, however it ends: not its tree, not its place, and no ref.
func TestABuildLeavesNothingBehind(t *testing.T) {
	for _, path := range []string{"src/main.go", "image/Dockerfile"} {
		for _, status := range []int{0, 2, 3} { // 3: no sandbox starts from what is built
			if status == 3 && path != "image/Dockerfile" {
				continue
			}
			t.Run(fmt.Sprint(path, status), func(t *testing.T) {
				drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
					withSource(h, source)
					s, _ := staged(h, path, rehearsed)
					var trees []string
					saw := func(spec sandbox.Spec) int {
						trees = append(trees, spec.Tree.Dir)
						if status == 3 && spec.Image == "" {
							return 0
						}
						return status
					}
					s.makes = func(spec sandbox.Spec) int {
						if status := saw(spec); status != 0 {
							return status
						}
						return compiles(t, spec, 7)
					}
					s.builds(t, saw)
					s.starts = func(spec sandbox.Spec) int {
						if _, uid := of(t, spec.Tree.Dir); uid != spec.Owner.UID {
							t.Errorf("it starts in a folder of %d", uid)
						}
						return saw(spec)
					}
					c, _ := s.Begin()
					chg := s.Propose(c)
					row := s.Show(c, chg).Change
					if (row.State == change.AwaitingApproval) != (status == 0) || len(trees) == 0 {
						t.Fatalf("after %d builds it is %s: %s", len(trees), row.State, row.Reason)
					}
					for _, spec := range s.specs {
						trees = append(trees, spec.Tree.Dir, spec.Own[0].Source)
					}
					for _, tree := range trees {
						if _, err := os.Lstat(tree); err == nil {
							t.Errorf("it left %s", tree)
						}
					}
					if left, err := os.ReadDir(h.Parts.Settings.Rehearsals); err != nil || len(left) > 0 {
						t.Errorf("it left %v, %v", left, err)
					}
					commits, refs := hosted(t, filepath.Dir(h.Repo))
					for _, ref := range refs {
						if strings.HasSuffix(ref, "/build") || strings.HasSuffix(ref, "/rehearsal") {
							t.Errorf("it left %s", ref)
						}
					}
					created := fmt.Sprint(row.Created.Unix())
					built := slices.Index(commits, "What is built "+created+" "+created)
					if made := path == "src/main.go"; (built >= 0) != made {
						t.Errorf("of %s, among the commits are %q", created, commits)
					}
				})
			})
		}
	}
}

// hosted returns the commits, and the refs, of all bare repositories below a folder.
func hosted(t *testing.T, folder string) (commits, refs []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if _, err := os.Lstat(filepath.Join(path, "HEAD")); err != nil {
			return nil
		}
		git := func(args ...string) []string {
			out, err := exec.Command("git", append([]string{"--git-dir=" + path}, args...)...).Output()
			if err != nil {
				t.Errorf("git %q: %v", args, err)
			}
			return strings.Split(strings.TrimSpace(string(out)), "\n")
		}
		for _, line := range git("cat-file", "--batch-check", "--batch-all-objects") {
			if f := strings.Fields(line); len(f) == 3 && f[1] == "commit" {
				commits = append(commits, git("show", "-s", "--format=%s %at %ct", f[0])...)
			}
		}
		refs = append(refs, git("for-each-ref", "--format=%(refname)")...)
		return fs.SkipDir
	})
	if err != nil {
		t.Error(err)
	}
	return commits, refs
}

// TestARehearsalHasRoomForAMigration: it may write all of the database anew.
func TestARehearsalHasRoomForAMigration(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "docs/page.md", func(int) (rehearsal.Report, int) { return well(), 0 })
		c, _ := s.Begin()
		chg := s.Offer(c)
		spec := s.specs[0]
		if spec.ID != "rehearsal-"+string(chg) || spec.Dir != "/" || spec.Range || spec.Image != "" || spec.Home != "" {
			t.Errorf("it is rehearsed in %+v", spec)
		}
		if want := sandbox.Defaults.DiskBytes + 4*int64(len("a copy")); spec.Limits.DiskBytes != want {
			t.Errorf("it may write %d bytes, not %d", spec.Limits.DiskBytes, want)
		}
	})
}

// TestWhatIsNotDoneForABuildIsTriedAgain: nothing is built on it, nobody is asked, and no agent hears of it.
func TestWhatIsNotDoneForABuildIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		path, op string
		nth      int
	}{
		"where the programs go":         {"src/main.go", "rehearsal:place", 2},
		"what an image is built of":     {"image/Dockerfile", "rehearsal:place", 2},
		"whose an image's tree is":      {"image/Dockerfile", "rehearsal:own", 1},
		"whose a sandbox's folder is":   {"image/Dockerfile", "rehearsal:own", 2},
		"a place for the programs":      {"src/main.go", "rehearsal:place", 1},
		"a place for what is rehearsed": {"docs/page.md", "rehearsal:place", 1},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				withSource(h, source)
				s, troupe := staged(h, c.path, rehearsed)
				built, did := 0, 0
				s.makes = func(spec sandbox.Spec) int { built++; return compiles(t, spec, 7) }
				count := s.builds(t, nil)
				s.starts = func(sandbox.Spec) int { built++; return 0 }
				h.Parts.Ops.Around = func(op string, do func() error) error {
					if op == c.op {
						if did++; did >= c.nth {
							return errors.New("no power")
						}
					}
					return do()
				}
				daemon, _ := s.Begin()
				chg := s.Propose(daemon)
				if st := s.Show(daemon, chg).Change.State; st == change.AwaitingApproval || st == change.Working || len(troupe.Told()) != 1 || did < c.nth {
					t.Errorf("after %d operations it is %s, and its agent was told %q", did, st, troupe.Told())
				}
				if built > 0 || len(s.specs) > 0 || *count > 0 && name != "whose a sandbox's folder is" {
					t.Errorf("%d and %d were built, and %d rehearsed", built, *count, len(s.specs))
				}
			})
		})
	}
}

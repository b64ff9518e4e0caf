package view_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/session"
)

// A person amends and collects as they like: the base is the host's, and what lands is brought again if it was taken away.
func TestNothingOfAChangeIsInTheProjectBeforeItLands(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Forbidding(session.Supervision{Strategy: session.Shadow, Promotion: session.Incremental})
		h.Acts(func(s *drivetest.Scene, after func(time.Duration) bool) {
			s.Write("docs/new.md", "a secret\n")
			after(40 * time.Second)
			s.Write("page.txt", "new\n")
		})
		collect := func() {
			h.Git("reflog", "expire", "--expire=now", "--all")
			h.Git("gc", "-q", "--prune=now")
		}
		collected := 0
		h.Parts.Lander = &landing.Lander{Host: h.Parts.Workspaces.EnsureRepository, Ops: disk.Ops{Around: func(op string, do func() error) error {
			err := do()
			if op == "desk:commit" {
				collected++
				collect()
			}
			return err
		}}}
		secret := git.OID(strings.TrimSpace(func() string {
			oid, err := git.HashBlob("sha1", int64(len("a secret\n")), strings.NewReader("a secret\n"))
			if err != nil {
				t.Fatal(err)
			}
			return string(oid)
		}()))
		clean := func(when string) {
			t.Helper()
			if refs := h.Git("for-each-ref", "--format=%(refname)"); strings.TrimSpace(refs) != "refs/heads/main" {
				t.Errorf("%s the refs are %q", when, refs)
			}
			all := h.Git("cat-file", "--batch-check", "--batch-all-objects")
			if strings.Contains(all, string(secret)) {
				t.Errorf("%s the project has what an invalid checkpoint held", when)
			}
		}

		before := h.Git("cat-file", "--batch-check", "--batch-all-objects")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(3 * time.Minute)
		d := h.Is(c, chg, change.AwaitingApproval)
		if !slices.Contains(drivetest.Statuses(d), "interval invalid") || !strings.Contains(h.Kept(c, 1, chg, "docs/new.md"), "a secret") {
			t.Fatalf("the host has not kept it: %q", drivetest.Statuses(d))
		}
		if now := h.Git("cat-file", "--batch-check", "--batch-all-objects"); now != before {
			t.Errorf("the project had\n%s\nand has\n%s", before, now)
		}
		clean("while it waits")

		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--amend", "-m", "amended")
		collect()
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		clean("afterwards")
		if collected == 0 {
			t.Error("nothing was collected while it landed")
		}
		if page := h.Git("show", "main:page.txt"); page != "new" {
			t.Errorf("what landed is %q", page)
		}
		h.Git("fsck", "--full", "--strict")
	})
}

// What a project holds already is no matter of a change, and shown all the same with what is beside it.
func TestADifferenceIsShownWithoutSecrets(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Commits("page.txt", "by ghp_"+"9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi\n", "Use it")
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Is(c, chg, change.AwaitingApproval)
		var shown strings.Builder
		if err := c.Diff(gittest.Context(t), chg, &shown); err != nil || !strings.HasSuffix(shown.String(), "\n-by [secret: github-token]\n+two\n") {
			t.Errorf("%q, %v", shown.String(), err)
		}
	})
}

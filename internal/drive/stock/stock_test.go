package stock_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/request"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

// kitchen is a home whose sandboxes can be shown overlays, and notes what each of them found and was for.
type kitchen struct {
	*drivetest.Home
	mu    sync.Mutex
	runs  []string // "<what> <files in its caches> <files over its base>"
	fail  string   // part of a command that fails
	says  string   // what it says then
	page  string   // what an agent changes; "" = page.txt
	dirty bool     // whether uncommitted files go along
	lost  string   // path that a setup writes and git does not ignore, where fail is "stray"
}

func newKitchen(h *drivetest.Home) *kitchen {
	k := &kitchen{Home: h, says: "404 not found", lost: "stray.txt"}
	for name, text := range map[string]string{".gitignore": "node_modules/\n", "package-lock.json": "1\n"} {
		k.write(name, text)
	}
	state := filepath.Join(h.Parts.Home, "state")
	h.Parts.Workspaces = workspace.New(workspace.Config{Root: state, Strategy: workspace.Overlay})
	h.Cage.Program = func(spec sandbox.Spec, _ <-chan struct{}) int { return k.cook(spec) }
	return k
}

// write commits a file of the person's.
func (k *kitchen) write(name, text string) {
	k.T.Helper()
	if err := os.WriteFile(filepath.Join(k.Repo, name), []byte(text), 0o644); err != nil {
		k.T.Fatal(err)
	}
	k.Git("add", "-A")
	k.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", name)
}

// cook is every program: it notes what it finds, and leaves its mark in the caches and in node_modules. An agent changes the page too.
func (k *kitchen) cook(spec sandbox.Spec) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	what, _, _ := strings.Cut(spec.ID, "-")
	if spec.Argv[0] == "true" {
		what = "agent"
		putIn(k.T, filepath.Join(spec.Tree.Upper, cmp.Or(k.page, "page.txt")), spec.ID)
		if k.fail == "lock" {
			putIn(k.T, filepath.Join(spec.Tree.Upper, "package-lock.json"), spec.ID)
		}
	}
	k.runs = append(k.runs, what+" "+files(k.T, spec.Cache.Layers...)+" "+files(k.T, over(spec.Tree.Layers, "node_modules")...))
	if spec.Cache.Upper != "" {
		putIn(k.T, filepath.Join(spec.Cache.Upper, "by-"+what), "")
	}
	putIn(k.T, filepath.Join(spec.Tree.Upper, "node_modules", "by-"+what), "")
	if what == "setup" && k.fail == "stray" {
		putIn(k.T, filepath.Join(spec.Tree.Upper, k.lost), "")
	}
	if k.fail != "" && strings.Contains(strings.Join(spec.Argv, " "), k.fail) {
		_, _ = spec.Stdout.Write([]byte("first\n" + k.says + "\n"))
		return 1
	}
	return 0
}

func putIn(t *testing.T, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}

// over are folders of a name in layers.
func over(layers []string, name string) (all []string) {
	for _, l := range layers {
		all = append(all, filepath.Join(l, name))
	}
	return all
}

// files are the names in folders together; none are there for one that is not.
func files(t *testing.T, folders ...string) string {
	seen := map[string]bool{}
	for _, f := range folders {
		entries, err := os.ReadDir(f)
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		for _, e := range entries {
			seen[e.Name()] = true
		}
	}
	return "[" + strings.Join(slices.Sorted(maps.Keys(seen)), " ") + "]"
}

// order requests a change with a check, waits until it rests, and returns what ran meanwhile.
func (k *kitchen) order(c *control.Controller, setup ...string) (id.Change, []string) {
	k.T.Helper()
	k.mu.Lock()
	k.runs = nil
	k.mu.Unlock()
	r, err := c.TakeRequest(k.T.Context(), request.Request{
		By: k.By(), Text: "x", Project: git.Project{Top: k.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later,
		Profiles: []string{"go"}, Checks: []string{"vet"}, Setup: setup, IncludeDirty: k.dirty,
	}, nil)
	if err != nil {
		k.T.Fatal(err)
	}
	k.Show(c, r.Change.ID) // rests
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.Change.ID, slices.Sorted(slices.Values(k.runs))
}

func (k *kitchen) wantRuns(what string, got []string, want ...string) {
	k.T.Helper()
	if !slices.Equal(got, want) {
		k.T.Errorf("%s ran\n%q, want\n%q", what, got, want)
	}
}

// What checks begin with is what checks of the base left: no check of a proposal and no agent adds to it.
func TestOnlyChecksOfABaseWriteWhatLaterChecksBeginWith(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		c, _ := h.Daemon()
		_, runs := k.order(c)
		warm := slices.DeleteFunc(slices.Clone(runs), func(r string) bool { return !strings.HasPrefix(r, "warm") })
		k.wantRuns("the first change's base", warm, "warm [] []")
		for range 2 {
			chg, runs := k.order(c)
			k.wantRuns("a later change", runs, "agent [by-warm] []", "check [by-warm] []")
			if with := h.Show(c, chg).Proposal.Card.Checks[0].With; !strings.Contains(with, "the caches of ") {
				t.Errorf("its card says %q", with)
			}
		}
	})
}

func TestASetupRunsOnceForWhatTheBaseDependsOnAndAgentAndCheckSeeIt(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		w := &drivetest.Ways{}
		h.Parts.Network = w
		c, _ := h.Daemon()
		k.order(c, "npm ci") // and the caches are there
		asked := w.Opened[0]
		if !asked.Setup || !asked.Fetch || asked.Check {
			t.Errorf("the setup's way out was opened for %+v", asked)
		}
		seen := "[by-setup by-warm] [by-setup]"
		chg, runs := k.order(c, "npm ci")
		k.wantRuns("the second change", runs, "agent "+seen, "check "+seen)
		d := h.Show(c, chg)
		if with := d.Proposal.Card.Checks[0].With; !strings.Contains(with, `the setup ["npm ci"] of `) {
			t.Errorf("its card says %q", with)
		}
		if got := d.Proposal.Card.Files; len(got) != 1 || got[0].Path != "page.txt" {
			t.Errorf("it proposes %+v", got)
		}

		k.write("notes.txt", "nothing depends on it")
		_, runs = k.order(c, "npm ci")
		k.wantRuns("a change on another base that depends on the same", runs, "agent "+seen, "check "+seen)

		k.write("package-lock.json", "2\n")
		_, runs = k.order(c, "npm ci")
		agent := func(run string) bool { // its caches may be warm by then
			return run == "agent [by-setup] [by-setup]" || run == "agent "+seen
		}
		if !slices.Contains(runs, "setup [] []") || !slices.ContainsFunc(runs, agent) {
			t.Errorf("with another lock file ran %q", runs)
		}
	})
}

// What ran on a base that was taken back since may have been the very thing that was taken back: nothing that it left runs again.
func TestWhatWasLeftOnABaseThatWasTakenBackServesNoLaterOne(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		c, _ := h.Daemon()
		k.order(c)
		chg, runs := k.order(c)
		k.wantRuns("a change", runs, "agent [by-warm] []", "check [by-warm] []")
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		_, runs = k.order(c)
		k.wantRuns("a change on what has landed", runs, "agent [by-warm] []", "check [by-warm] []")
		k.page = "other.txt"
		late, _ := k.order(c)
		k.page = "third.txt"
		setUp, _ := k.order(c, "npm ci")
		h.Is(c, h.Undo(c, chg, request.Yes), change.Finalized)
		k.page, k.runs = "", nil
		for _, chg := range []id.Change{late, setUp} {
			h.Yes(c, chg)
			h.Is(c, chg, change.Finalized)
		}
		k.wantRuns("changes from before, at their landings", slices.Sorted(slices.Values(k.runs)), "check [] []", "check [by-setup] [by-setup]", "setup [] []")
		time.Sleep(time.Minute) // the younger of two is known by its time
		_, runs = k.order(c)
		if !slices.Contains(runs, "warm [] []") { // maybe before its agent, which begins with it then
			t.Errorf("once it went back ran %q", runs)
		}
		_, runs = k.order(c)
		k.wantRuns("a change after it", runs, "agent [by-warm] []", "check [by-warm] []")
	})
}

// TestWhatWasLeftOnAnotherBranchServesNone holds it of setups and caches; what both have may serve both.
func TestWhatWasLeftOnAnotherBranchServesNone(t *testing.T) {
	for name, setup := range map[string][]string{"checks": nil, "a setup": {"npm ci"}} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				k := newKitchen(h)
				c, _ := h.Daemon()
				seen, warm := "[by-warm] []", "warm [] []"
				if setup != nil {
					seen, warm = "[by-setup by-warm] [by-setup]", "warm [by-setup] [by-setup]"
				}
				k.Git("checkout", "-qb", "trunk")
				k.Git("checkout", "-q", "main")
				k.write("evil.js", "1\n")
				k.order(c, setup...)
				_, runs := k.order(c, setup...)
				k.wantRuns("on one", runs, "agent "+seen, "check "+seen)

				k.Git("checkout", "-q", "trunk")
				_, runs = k.order(c, setup...)
				if setup != nil && !slices.Contains(runs, "setup [] []") || !slices.Contains(runs, warm) {
					t.Errorf("on another ran %q", runs)
				}
				for _, branch := range []string{"trunk", "main", "trunk"} { // each keeps its own
					k.Git("checkout", "-q", branch)
					_, runs = k.order(c, setup...)
					k.wantRuns("again on "+branch, runs, "agent "+seen, "check "+seen)
				}

				k.Git("checkout", "-qb", "later")
				k.write("notes.txt", "1\n")
				_, runs = k.order(c, setup...)
				k.wantRuns("on a branch that follows", runs, "agent "+seen, "check "+seen)
			})
		})
	}
}

// Uncommitted files that went along are one change's own: what it makes ready is made on the commit below, and serves all that stand on it.
func TestWhatIsLeftBesideUncommittedFilesServesTheNext(t *testing.T) {
	for _, draft := range []string{"", "1\n"} { // nothing may be uncommitted
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			k := newKitchen(h)
			k.dirty = true
			c, _ := h.Daemon()
			uncommitted := filepath.Join(k.Repo, "draft.txt")
			if draft != "" {
				putIn(t, uncommitted, draft)
			}
			k.order(c, "npm ci")
			made, err := k.Parts.Workspaces.Stocks.All()
			if err != nil {
				t.Fatal(err)
			}
			shared := 0
			for _, m := range made {
				if m.Note.Kind == layer.Setup && m.Note.Needs == "" {
					continue // this change's own
				}
				shared++
				if head := k.Git("rev-parse", "HEAD"); string(m.Note.Base) != head {
					t.Errorf("one was made on %s, not on %s", m.Note.Base, head)
				}
			}
			if shared != 2 {
				t.Errorf("%d are for others, not the setup's and the checks'", shared)
			}
			putIn(t, uncommitted, "2\n")
			_, runs := k.order(c, "npm ci")
			k.wantRuns("a change with other files", runs, "agent [by-setup by-warm] [by-setup]", "check [by-setup by-warm] [by-setup]")
		})
	}
}

// A lock file that is not committed has a setup of its own, which a change's agent and its checks share.
func TestAnUncommittedLockFileIsSetUpOnceForItsChange(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		k.dirty = true
		c, _ := h.Daemon()
		putIn(t, filepath.Join(k.Repo, "package-lock.json"), "2\n")
		k.order(c, "npm ci")
		putIn(t, filepath.Join(k.Repo, "draft.txt"), "1\n")
		_, runs := k.order(c, "npm ci")
		k.wantRuns("a change", runs, "agent [by-setup] [by-setup]", "check [by-setup] [by-setup]", "setup [] []")
	})
}

// closed opens no way out for what nobody asked for.
type closed struct {
	drivetest.Ways
	asked atomic.Int32
}

func (w *closed) Open(ctx context.Context, o live.Outgoing) (live.Way, error) {
	if o.Unasked {
		w.asked.Add(1)
		return live.Way{}, errors.New("it is closed")
	}
	return w.Ways.Open(ctx, o)
}

// What could not be made is not tried for every change, and some day it is again.
func TestCachesThatCouldNotBeMadeAreTriedAgainADayLater(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		w := &closed{}
		h.Parts.Network = w
		c, _ := h.Daemon()
		for n, want := range []int32{1, 1, 2} {
			if n == 2 {
				time.Sleep(24 * time.Hour)
			}
			if k.order(c); w.asked.Load() != want {
				t.Errorf("change %d: tried %d times, want %d", n, w.asked.Load(), want)
			}
		}
	})
}

// A change that depends on something else has it in its own checks, made from its own tree; nobody else's begin with that.
func TestWhatAProposalDependsOnIsSetUpForItsOwnChecksAlone(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		c, _ := h.Daemon()
		k.order(c, "npm ci")
		k.fail = "lock" // the agent changes the lock file
		_, runs := k.order(c, "npm ci")
		k.wantRuns("it", runs, "agent [by-setup by-warm] [by-setup]", "check [by-setup] [by-setup]", "setup [] []")
		k.fail = ""
		_, runs = k.order(c, "npm ci")
		k.wantRuns("the next one", runs, "agent [by-setup by-warm] [by-setup]", "check [by-setup by-warm] [by-setup]")
	})
}

// What a setup writes where git does not ignore it reaches nobody, and whoever follows the change or reads its card is told.
func TestWhatASetupWroteInVainStandsOnTheCard(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		k.fail = "stray"
		c, _ := h.Daemon()
		for range 2 { // made, and found
			chg, _ := k.order(c, "npm ci")
			const want = `the setup ["npm ci"] wrote 1 path not ignored by git; agent and checks do not find what it wrote there: stray.txt`
			if got := h.Is(c, chg, change.AwaitingApproval).Proposal.Card.Setup; !slices.Equal(got, []string{want}) {
				t.Errorf("its card says %q", got)
			}
			if got := h.Reasons(c, chg, "prepared"); !slices.Equal(got, []string{"prepared: " + want}) {
				t.Errorf("prepared: %q", got)
			}
		}
	})
}

// TestASecretInANameThatASetupLeavesIsNotWrittenDown holds it of what is left out: of what stays the name is the file's own.
func TestASecretInANameThatASetupLeavesIsNotWrittenDown(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		k.fail, k.lost = "stray", "logs/"+planted+".log"
		c, _ := h.Daemon()
		k.order(c, "install")
		notes, err := filepath.Glob(filepath.Join(h.Parts.Home, "state", "stock", "*", "layer.json"))
		found := false
		for _, name := range notes {
			raw, err := os.ReadFile(name)
			if err != nil || strings.Contains(string(raw), planted) {
				t.Errorf("it says %s, %v", raw, err)
			}
			found = found || strings.Contains(string(raw), `"left_out":["logs/[secret`)
		}
		if !found || err != nil {
			t.Errorf("none of %q names what was left out, %v", notes, err)
		}
	})
}

func TestASecretInTheCommandOfASetupIsNotWrittenDown(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		k.fail = "npm"
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Setup: []string{"npm ci " + planted}}}
		c, _ := h.Daemon()
		got, err := c.TakeRequest(gittest.Context(t), request.Request{By: k.By(), Text: "x", Project: git.Project{Top: k.Repo}, Agent: "played",
			Argv: []string{"true"}, Approve: request.Later}, nil)
		if err != nil {
			t.Fatal(err)
		}
		chg := got.Change.ID
		h.Is(c, chg, change.Failed)
		log, err := c.Transcript(gittest.Context(t), chg, "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(log)
		if err := errors.Join(err, log.Close()); err != nil || !strings.Contains(string(text), "npm ci [secret: github-token]") {
			t.Errorf("%s, %v", text, err)
		}
	})
}

func TestASetupThatFailsEndsTheChangeWithItsLastLines(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		k.fail = "npm"
		c, _ := h.Daemon()
		chg, runs := k.order(c, "npm ci")
		k.wantRuns("it", runs, "setup [] []")
		d := h.Is(c, chg, change.Failed)
		if r := d.Change.Reason; !strings.Contains(r, `the setup "npm ci" failed: it ended with status 1; its last lines: first | 404 not found`) {
			t.Errorf("it says %q", r)
		}
		if left, err := h.Parts.Workspaces.Stocks.All(); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v", left, err)
		}
	})
}

// A setup that failed is mended and runs again, on the branch as it is then: with what was committed, and with what is uncommitted now.
func TestAChangeWhoseSetupFailedBeginsOnceItIsMended(t *testing.T) {
	for name, test := range map[string]struct {
		request request.Request
		mended  string
		next    string // "" = change redo
		dirty   bool
		offline bool
	}{
		"of the request":             {request.Request{Setup: []string{"npm ci"}}, "For another --setup run the request again", "sallyport run --setup COMMAND", false, false},
		"beside what is uncommitted": {request.Request{Setup: []string{"npm ci"}, IncludeDirty: true}, "For another --setup run the request again", "sallyport run --setup COMMAND", true, false},
		"towards a new branch":       {request.Request{Setup: []string{"npm ci"}, Onto: "new"}, "For another --setup run the request again", "sallyport run --setup COMMAND", false, false},
		"of the repository":          {request.Request{}, "Mend it and commit; change redo runs it again", "", false, false},
		"that finds no registry":     {request.Request{}, "Write `egress: [registries]` into ", "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				k := newKitchen(h)
				if test.offline {
					k.says = "npm error code EAI_AGAIN"
				}
				if k.fail = "npm"; test.request.Setup == nil {
					h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Setup: []string{"npm ci"}}}
				}
				c, _ := h.Daemon()
				r := test.request
				r.By, r.Text, r.Project, r.Agent, r.Argv, r.Approve = k.By(), "x", git.Project{Top: k.Repo}, "played", []string{"true"}, request.Later
				got, err := c.TakeRequest(gittest.Context(t), r, nil)
				if err != nil {
					t.Fatal(err)
				}
				chg := got.Change.ID
				d := h.Is(c, chg, change.Failed)
				redo := "sallyport change redo " + string(chg)
				if d.Change.Next != cmp.Or(test.next, redo) || !strings.Contains(d.Change.Reason, test.mended) || !strings.HasSuffix(d.Change.Reason, "change log shows all that it said") || strings.Contains(d.Change.Reason, "no package registry") != test.offline {
					t.Errorf("it says %q, next %q", d.Change.Reason, d.Change.Next)
				}
				log, err := c.Transcript(gittest.Context(t), chg, "")
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(log)
				if err := errors.Join(err, log.Close()); err != nil || !strings.Contains(string(text), `"stdout","text":"`+k.says+`"`) {
					t.Errorf("its log is %q, %v", text, err)
				}
				if err := os.Remove(filepath.Join(h.Parts.Settings.Changes, string(chg), "setup", "transcript.jsonl")); err != nil {
					t.Error(err)
				}
				if _, err := c.Transcript(gittest.Context(t), chg, ""); problem.KindOf(err) != problem.NotFound || !strings.HasSuffix(err.Error(), "has no transcript: its agent has not begun") {
					t.Errorf("without one: %v", err)
				}
				if err := c.Resume(gittest.Context(t), chg, h.By()); problem.Of(err).Next != redo {
					t.Errorf("resume: %v, next %q", err, problem.Of(err).Next)
				}

				k.fail = ""
				k.write("lock", "1\n")
				putIn(t, filepath.Join(k.Repo, "dirty"), "mine")
				h.Redo(c, chg)
				d = h.Is(c, chg, change.AwaitingApproval)
				host, err := h.Parts.Workspaces.EnsureRepository(t.Context(), d.Change.Request.Project)
				if err != nil {
					t.Fatal(err)
				}
				found, err := host.Lookup(t.Context(), git.OID(d.Change.Base), []string{"lock", "dirty"})
				if err != nil || found[0].Absent() || found[1].Absent() == test.dirty {
					t.Errorf("it began with %+v, %v", found, err)
				}
			})
		})
	}
}

func TestAChangeThatIsMadeAnewHasTheSetupOfItsNewBase(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		k := newKitchen(h)
		c, _ := h.Daemon()
		chg, _ := k.order(c, "npm ci")
		shown := func() (setup string) {
			t.Helper()
			d := h.Is(c, chg, change.AwaitingApproval)
			w, err := h.Parts.Workspaces.Open(t.Context(), workspace.Spec{Change: chg, Project: d.Change.Request.Project, Base: git.OID(d.Change.Base), Owner: h.Parts.Settings.Self})
			if err != nil {
				t.Fatal(err)
			}
			return w.Spec.Setup
		}
		before := shown()
		k.write("package-lock.json", "2\n")
		if _, err := c.Redo(gittest.Context(t), chg, h.By(), nil); err != nil {
			t.Fatal(err)
		}
		if after := shown(); before == "" || after == "" || after == before {
			t.Errorf("it showed %q and shows %q", before, after)
		}
	})
}

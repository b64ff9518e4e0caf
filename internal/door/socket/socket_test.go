package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/right"
)

type host struct{ stopped chan struct{} }

func (h host) Sandbox() api.Sandbox { return api.Sandbox{Works: true, Policy: "walls"} }

func (h host) Doctor(context.Context) (api.Doctor, error) {
	return api.Doctor{Driver: "bwrap", Checks: []api.Check{{Name: "git", OK: true}}}, nil
}
func (h host) Stop() { close(h.stopped) }

func (h host) Keep(_ context.Context, c id.Change, ref id.Checkpoint, write func(io.Writer) error) (string, error) {
	var out strings.Builder
	if err := write(&out); err != nil {
		return "", err
	}
	return fmt.Sprintf("/h/%s/%s %d", c, ref, out.Len()), nil
}

// options are a server's, whose every part is v.
// known knows everybody as one person.
type known struct{ err error }

func (k known) Recognize(_ context.Context, who audit.Actor) (audit.Actor, []right.Held, error) {
	who.Person = "psn-known000"
	return who, []right.Held{{Role: right.Owner}}, k.err
}

func options(v *verbs) Options {
	return Options{
		Home: "/home/of/mine", Owner: os.Geteuid(), Log: slog.New(slog.DiscardHandler), Host: host{},
		Requests: v, Changes: v, Courses: v, Trials: v, Work: v, Sessions: v, Checkpoints: v, Approvals: v, Audit: v, Spending: v, People: known{},
	}
}

// serve runs a server on a real socket and returns a real client of it.
func serve(t *testing.T, v *verbs, change ...func(*Options)) (*client.Client, host) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s", "daemon.sock")
	h := host{stopped: make(chan struct{})}
	o := options(v)
	o.Host = h
	for _, f := range change {
		f(&o)
	}
	l, err := Listen(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(o).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve ended: %v", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	return client.New(path), h
}

func TestARequestArrivesAsAskedAndAsWhoTheKernelSays(t *testing.T) {
	v := &verbs{row: change.Row{ID: "chg-00000001", State: "requested"}, left: []string{"bad\xffname"}}
	c, _ := serve(t, v)
	out, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{Dir: "/repo/sub/", Text: "do", Agent: "command", Argv: []string{"sed", "-i"}, Approve: "later", TimeoutMS: 1500, Script: []byte{0, 255},
		Strategy: "shadow_workspace", Messages: true, ExecutionMode: "interactive"})
	if err != nil {
		t.Fatal(err)
	}
	if out.ID != "chg-00000001" || out.Uncommitted[0] != `bad\xffname` {
		t.Errorf("answer %+v", out)
	}
	r := v.asked
	if r.Project.Top != "/repo/sub" || r.Timeout != 1500*time.Millisecond || !bytes.Equal(r.Script, []byte{0, 255}) || r.Approve != "later" || r.Strategy != "shadow_workspace" || !r.Messages {
		t.Errorf("asked %+v", r)
	}
	if r.By.Kind != "person" || r.By.UID != os.Geteuid() || r.By.Name == "" || r.By.Person != "psn-known000" {
		t.Errorf("by %+v", r.By)
	}
}

func TestEveryVerbReachesTheController(t *testing.T) {
	ctx := t.Context()
	for name, tc := range map[string]struct {
		do   func(c *client.Client) error
		want string
	}{
		"list": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ChangeList, api.Filter{Repo: "/r", States: []string{"working", "failed"}, Limit: 7})
			return err
		}, "list /r [working failed] 7"},
		"list of more than one answer has": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ChangeList, api.Filter{Limit: 1 << 40})
			return err
		}, "list  [] 10000"},
		"show": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ChangeShow, "chg-00000001")
			return err
		}, "show chg-00000001"},
		"pause": {func(c *client.Client) error {
			return client.Do(ctx, c, api.ChangePause, api.Reason{Of: "chg-00000001", Reason: "lunch"})
		}, `pause chg-00000001 "lunch"`},
		"resume": {func(c *client.Client) error { return client.Do(ctx, c, api.ChangeResume, "chg-00000001") }, `resume chg-00000001`},
		"checkpoint now": {func(c *client.Client) error {
			cp, err := client.Call(ctx, c, api.CheckpointTake, "chg-00000001")
			if err == nil && cp.ID != "ckpt-001-0123abcd" {
				t.Errorf("got %+v", cp)
			}
			return err
		}, `checkpoint now chg-00000001`},
		"cancel": {func(c *client.Client) error {
			return client.Do(ctx, c, api.ChangeCancel, api.Reason{Of: "chg-00000001", Reason: "why not"})
		}, `cancel chg-00000001 "why not"`},
		"rollback": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ChangeRollback, api.Rollback{Of: "chg-00000001", Reason: "bad", Approve: "yes"})
			return err
		}, `rollback chg-00000001 "bad" yes`},
		"tell": {func(c *client.Client) error {
			d, err := client.Call(ctx, c, api.ChangeTell, api.Tell{Of: "chg-00000001", Text: "use the other file\n"})
			if err == nil && !d.Delivered {
				t.Errorf("got %+v", d)
			}
			return err
		}, "tell chg-00000001 use the other file\n"},
		"put back files": {func(c *client.Client) error {
			done, err := client.Call(ctx, c, api.ChangePutBack, api.PutBack{Of: "chg-00000001", Paths: []string{"a//b/", "./c"}})
			if err == nil && (strings.Join(done.Reverted, " ") != "a/b c" || done.Kept != 2) {
				t.Errorf("got %+v", done)
			}
			return err
		}, `put back chg-00000001 ["a/b" "c"] false`},
		"put back what breaks a rule": {func(c *client.Client) error {
			done, err := client.Call(ctx, c, api.ChangePutBack, api.PutBack{Of: "chg-00000001", Violating: true})
			if err == nil && done.Reverted == nil {
				t.Errorf("no list: %+v", done)
			}
			return err
		}, `put back chg-00000001 [] true`},
		"restore": {func(c *client.Client) error {
			cp, err := client.Call(ctx, c, api.CheckpointRestore, "ckpt-002-abcdef01")
			if err == nil && cp.ID != "ckpt-003-0123abcd" {
				t.Errorf("got %+v", cp)
			}
			return err
		}, "restore ckpt-002-abcdef01"},
		"redo": {func(c *client.Client) error {
			row, err := client.Call(ctx, c, api.ChangeRedo, api.Redo{Of: "chg-00000001"})
			if err == nil && row.ID != "chg-00000001" {
				t.Errorf("got %+v", row)
			}
			return err
		}, "redo chg-00000001"},
		"branch": {func(c *client.Client) error {
			b, err := client.Call(ctx, c, api.ChangeBranch, api.Branch{Of: "chg-00000001", Name: "side"})
			if err == nil && (b.Name != "side" || b.Commit != "1234") {
				t.Errorf("got %+v", b)
			}
			return err
		}, "branch chg-00000001 side"},
		"resume session": {func(c *client.Client) error {
			row, err := client.Call(ctx, c, api.SessionResume, api.Resume{Of: "sh-1a2b3", ExecutionMode: "interactive"})
			if err == nil && row.ID != "chg-00000001" {
				t.Errorf("got %+v", row)
			}
			return err
		}, "resume session sh-1a2b3"},
		"repository": {func(c *client.Client) error {
			r, err := client.Call(ctx, c, api.RepositoryShow, api.InFolder{Dir: "/repo/sub/"})
			if err == nil && (r.Top != "/repo/sub" || r.Branch != "main" || len(r.Ignored) != 1) {
				t.Errorf("got %+v", r)
			}
			return err
		}, "examine /repo/sub"},
		"wanted by a change": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Of: "chg-00000001"})
			return err
		}, "wanted by chg-00000001"},
		"wanted by a session": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Of: "codex-1a2b3"})
			return err
		}, "wanted by codex-1a2b3"},
		"wanted for a request": {func(c *client.Client) error {
			w, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Agent: "codex", Dir: "/repo/sub/", Branch: "side"})
			if err == nil && (w.Keys == nil || w.Bases == nil || w.Env == nil) {
				t.Errorf("no lists: %+v", w)
			}
			return err
		}, `wanting "codex" in /repo/sub on "side"`},
		"keys": {func(c *client.Client) error {
			return client.Do(ctx, c, api.KeyGive, api.GiveKeys{Of: "chg-00000001", Keys: api.Keys{"A": "x", "B": "y"}})
		}, "give chg-00000001 2"},
		"checkpoint export": {func(c *client.Client) error {
			out, err := client.Call(ctx, c, api.CheckpointExport, "ckpt-001-abcdef01")
			if err == nil && out.Path != "/h/chg-00000009/ckpt-001-abcdef01 5" {
				t.Errorf("got %+v", out)
			}
			return err
		}, "checkpoint export ckpt-001-abcdef01"},
		"question": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ApprovalShow, "chg-00000001")
			return err
		}, "approval chg-00000001"},
		"approve": {func(c *client.Client) error {
			said, err := client.Call(ctx, c, api.ApprovalApprove, api.Approve{Of: "apr-00000001", Digest: "d1"})
			if err == nil && said.Code != "ABCD-EFGH-JKLM" {
				t.Errorf("its code is %q", said.Code)
			}
			return err
		}, "approve apr-00000001 d1 command line"},
		"refuse": {func(c *client.Client) error {
			return client.Do(ctx, c, api.ApprovalRefuse, api.Reason{Of: "apr-00000001", Reason: "no"})
		}, `refuse apr-00000001 "no"`},
		"rework": {func(c *client.Client) error {
			return client.Do(ctx, c, api.ApprovalRework, api.Reason{Of: "apr-00000001", Reason: "bolder"})
		}, `rework apr-00000001 "bolder", command line`},
		"approvals": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ApprovalList, api.Waiting{Pending: true, Limit: 20_000})
			return err
		}, "approvals true, 10000"},
		"checkpoints": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.CheckpointList, "chg-00000001")
			return err
		}, "checkpoints chg-00000001"},
		"checkpoint": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.CheckpointShow, "ckpt-001-abcdef01")
			return err
		}, "checkpoint ckpt-001-abcdef01"},
		"checkpoint diff": {func(c *client.Client) error {
			return client.Copy(ctx, c, api.CheckpointDiff, api.Between{Of: "ckpt-002-abcdef02", From: "ckpt-001-abcdef01"}, io.Discard)
		}, "checkpoint diff ckpt-001-abcdef01 ckpt-002-abcdef02"},
		"transcript": {func(c *client.Client) error {
			return client.Copy(ctx, c, api.ChangeTranscript, api.Transcript{Of: "chg-00000001", Session: "sh-abcde"}, io.Discard)
		}, "transcript chg-00000001 sh-abcde"},
		"audit": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.AuditList, api.Entries{Change: "chg-00000001", After: 5, Limit: 9})
			return err
		}, "audit chg-00000001 5 9"},
		"audit verify": {func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.AuditVerify, api.Expected{Expect: "3:" + strings.Repeat("0a", 32)})
			return err
		}, "audit verify 3:" + strings.Repeat("0a", 32)},
	} {
		t.Run(name, func(t *testing.T) {
			v := &verbs{row: change.Row{ID: "chg-00000001"}, patch: "patch"}
			c, _ := serve(t, v)
			if err := tc.do(c); err != nil {
				t.Fatal(err)
			}
			if v.last() != tc.want {
				t.Errorf("asked %q, want %q", v.last(), tc.want)
			}
		})
	}
}

func TestWhatOnlyTheWireCanGetWrongNeverReachesTheController(t *testing.T) {
	ctx, many := t.Context(), make([]string, 257)
	for i := range many {
		many[i] = "f"
	}
	run := func(change func(*api.Run)) func(*client.Client) error {
		return func(c *client.Client) error {
			r := api.Run{Dir: "/repo", Text: "do", Agent: "command", Argv: []string{"true"}, Approve: "later"}
			change(&r)
			_, err := client.Call(ctx, c, api.ChangeRun, r)
			return err
		}
	}
	putBack := func(p api.PutBack) func(*client.Client) error {
		return func(c *client.Client) error {
			p.Of = "chg-00000001"
			_, err := client.Call(ctx, c, api.ChangePutBack, p)
			return err
		}
	}
	tell := func(text string) func(*client.Client) error {
		return func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ChangeTell, api.Tell{Of: "chg-00000001", Text: text})
			return err
		}
	}
	for name, do := range map[string]func(*client.Client) error{
		"a strategy that is none": run(func(r *api.Run) { r.Strategy = "shadow" }),
		"a deterministic command": run(func(r *api.Run) { r.ExecutionMode = "deterministic" }),
		"a mode that is none":     run(func(r *api.Run) { r.ExecutionMode = "both" }),
		"messages to a script":    run(func(r *api.Run) { r.Agent, r.Messages = "replay", true }),
		"a model that is none":    run(func(r *api.Run) { r.Agent, r.Argv, r.Model = "pi", nil, "a b" }),
		"a host that is none":     run(func(r *api.Run) { r.Egress = []string{"10.0.0.1"} }),
		"too many hosts":          run(func(r *api.Run) { r.Egress = many }),
		"a base with a password":  run(func(r *api.Run) { r.Bases = map[string]string{"OPENAI_BASE_URL": "https://me:hunter2@x.example"} }),
		"a base without a name":   run(func(r *api.Run) { r.Bases = map[string]string{"A B": "https://x.example"} }),
		"a variable of a key's":   run(func(r *api.Run) { r.Env = map[string]string{"AWS_SECRET_ACCESS_KEY": "x"} }),
		"a variable of two lines": run(func(r *api.Run) { r.Env = map[string]string{"TEAM": "x\ny"} }),
		"wanted by an approval": func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Of: "apr-00000001"})
			return err
		},
		"wanted nowhere": func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Agent: "pi", Dir: "relative"})
			return err
		},
		"keys of a session": func(c *client.Client) error {
			return client.Do(ctx, c, api.KeyGive, api.GiveKeys{Of: "sh-1a2b3", Keys: api.Keys{"A": "x"}})
		},
		"nothing to tell":           tell(" \n"),
		"too much to tell":          tell(strings.Repeat("x", 64<<10+1)),
		"no file":                   putBack(api.PutBack{}),
		"a file and all that break": putBack(api.PutBack{Paths: []string{"a"}, Violating: true}),
		"a file elsewhere":          putBack(api.PutBack{Paths: []string{"/etc/passwd"}}),
		"a file above":              putBack(api.PutBack{Paths: []string{"a/../../b"}}),
		"the whole tree":            putBack(api.PutBack{Paths: []string{"."}}),
		"a zero byte":               putBack(api.PutBack{Paths: []string{"a\x00b"}}),
		"too many files":            putBack(api.PutBack{Paths: many}),
		"a session that is a change": func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.SessionResume, api.Resume{Of: "chg-00000001"})
			return err
		},
		"a deterministic resume": func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.SessionResume, api.Resume{Of: "sh-1a2b3", ExecutionMode: "deterministic"})
			return err
		},
		"a change to restore": func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.CheckpointRestore, "chg-00000001")
			return err
		},
		"a change to export": func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.CheckpointExport, "chg-00000001")
			return err
		},
		"a session to be told": func(c *client.Client) error {
			_, err := client.Call(ctx, c, api.ChangeTell, api.Tell{Of: "sh-1a2b3", Text: "x"})
			return err
		},
	} {
		v := &verbs{}
		c, _ := serve(t, v)
		if err := do(c); problem.KindOf(err) != problem.Usage || problem.Of(err).Next == "" || v.last() != "" {
			t.Errorf("%s: %v, asked %q", name, err, v.last())
		}
	}
}

func TestACheckpointCountsWhatChangedSinceTheLastAndInAll(t *testing.T) {
	got := checkpointOf(checkpoint.Checkpoint{FilesChanged: []string{"a", "b", "c"}, SinceLast: 2, Previous: "ckpt-001-0123abcd"})
	if got.SinceLast != 2 || got.Total != 3 || got.Previous != "ckpt-001-0123abcd" {
		t.Errorf("got %+v", got)
	}
}

func TestABlockedChangeSaysWhyAndThatItNeedsAPerson(t *testing.T) {
	for _, why := range []string{change.InteractiveModeFailure, ""} {
		ch := changeOf(change.Row{ID: "chg-0123abcd", Blocked: why})
		if ch.BlockedReason != why || ch.NeedsPerson != (why != "") {
			t.Errorf("%q: %q, %v", why, ch.BlockedReason, ch.NeedsPerson)
		}
	}
}

func TestAProblemArrivesWithItsKindAndNextStep(t *testing.T) {
	for _, sent := range []error{errRefused, errPlain, fmt.Errorf("while landing: %w", problem.New(problem.Conflict, "it moved"))} {
		c, _ := serve(t, &verbs{err: sent})
		_, err := client.Call(t.Context(), c, api.ChangeShow, "chg-00000001")
		got, want := problem.Of(err), problem.Of(sent)
		if want.Kind == problem.Internal && want.Next == "" { // the machine's fault: look at the machine
			want.Next = "sallyport doctor"
		}
		if got.Kind != want.Kind || got.Text != want.Text || got.Next != want.Next {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestAWrongKindOfIDIsAUsageError(t *testing.T) {
	c, _ := serve(t, &verbs{})
	_, err := client.Call(t.Context(), c, api.ChangeShow, "apr-00000001")
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "approval") {
		t.Errorf("got %v", err)
	}
	_, err = client.Call(t.Context(), c, api.ApprovalShow, "ckpt-001-abcdef01")
	if problem.KindOf(err) != problem.Usage {
		t.Errorf("got %v", err)
	}
	if _, err := client.Call(t.Context(), c, api.ApprovalApprove, api.Approve{Of: "apr-00000001"}); problem.KindOf(err) != problem.Usage {
		t.Errorf("approving without a digest: %v", err)
	}
}

func TestTheAuditArrivesWithHashesThatStillHold(t *testing.T) {
	c, _ := serve(t, &verbs{})
	rows, err := client.Call(t.Context(), c, api.AuditList, api.Entries{Change: "chg-00000001"})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Hash == "" || rows[0].Sum() != rows[0].Hash {
		t.Errorf("hash %s of %+v", rows[0].Hash, rows[0])
	}
}

func TestAWatchEndsWhenTheStreamDoesAndSaysWhenItWasCut(t *testing.T) {
	v := &verbs{notices: make(chan change.Notice, 4)}
	c, _ := serve(t, v)
	v.notices <- change.Notice{Seq: 1, Kind: "state", State: change.Working, Change: "chg-00000001"}
	v.notices <- change.Notice{Seq: 2, Kind: "output", Text: "a\n\ndata: b\r\n\x1b[31m"}
	v.notices <- change.Notice{Seq: 3, Kind: "checkpoint", Checkpoint: &checkpoint.Checkpoint{ID: id.NewCheckpoint(1, "abcdef0123"), Status: checkpoint.Valid}}
	close(v.notices)
	var got []api.Notice
	if err := c.Watch(t.Context(), "chg-00000001", func(n api.Notice) error { got = append(got, n); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].State != "working" || got[1].Text != "a\n\ndata: b\r\n\x1b[31m" || got[2].Checkpoint.ID != "ckpt-001-abcdef01" {
		t.Errorf("got %+v", got)
	}

	// A reader's own error comes back as it is.
	v = &verbs{notices: make(chan change.Notice, 1)}
	c, _ = serve(t, v)
	v.notices <- change.Notice{Seq: 1, Kind: "state"}
	if err := c.Watch(t.Context(), "chg-00000001", func(api.Notice) error { return errPlain }); !errors.Is(err, errPlain) {
		t.Errorf("got %v", err)
	}
}

func TestAWatchIsToldThatItsDaemonIsBeingStopped(t *testing.T) {
	v := &verbs{notices: make(chan change.Notice, 1)}
	path := filepath.Join(t.TempDir(), "daemon.sock")
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- New(options(v)).Serve(ctx, l)
	}()
	v.notices <- change.Notice{Seq: 1, Kind: "state", State: change.Working}
	err = client.New(path).Watch(t.Context(), "chg-00000001", func(api.Notice) error { cancel(); return nil })
	if !errors.Is(err, client.ErrStopped) || errors.Is(err, client.ErrCut) {
		t.Errorf("got %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestAWatchThatIsLeftHasNoEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // the controller closes its channel because we are leaving: both are ready at once
		notices := make(chan change.Notice)
		close(notices)
		w := newRecorder()
		if err := sendEvents(ctx, w, notices); err == nil || strings.Contains(w.body.String(), api.NoticeEnd) {
			t.Fatalf("%v after %q", err, w.body.String())
		}
	}
}

func TestADiffThatBreaksHalfWayIsNeverTakenForAWhole(t *testing.T) {
	v := &verbs{patch: strings.Repeat("+line\n", 50_000), patchErr: errRefused}
	c, _ := serve(t, v)
	var out bytes.Buffer
	err := client.Copy(t.Context(), c, api.ChangeDiff, "chg-00000001", &out)
	if problem.KindOf(err) != problem.Refused || out.Len() != len(v.patch) {
		t.Errorf("%d bytes and %v", out.Len(), err)
	}

	v = &verbs{patchErr: errRefused}
	c, _ = serve(t, v)
	if err := client.Copy(t.Context(), c, api.ChangeExport, "chg-00000001", io.Discard); problem.KindOf(err) != problem.Refused {
		t.Errorf("before the first byte: %v", err)
	}

	v = &verbs{patch: "whole\n"}
	c, _ = serve(t, v)
	out.Reset()
	if err := client.Copy(t.Context(), c, api.ChangeDiff, "chg-00000001", &out); err != nil || out.String() != "whole\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestAnotherUserIsNotHeard(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root is always heard; the rule for others is shown by TestOnlyOwnerAndRootAreHeard")
	}
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Owner = os.Geteuid() + 1 })
	if _, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{}); problem.KindOf(err) != problem.Denied {
		t.Errorf("got %v", err)
	}
}

func TestOnlyOwnerAndRootAreHeard(t *testing.T) {
	o := options(&verbs{})
	o.Owner = 1234
	s := New(o)
	for _, tc := range []struct {
		ctx  context.Context
		want int
	}{
		{context.WithValue(t.Context(), peerKey{}, userOf(1234)), 200},
		{context.WithValue(t.Context(), peerKey{}, userOf(0)), 200},
		{context.WithValue(t.Context(), peerKey{}, userOf(1235)), 403},
		{t.Context(), 403}, // the kernel did not say
	} {
		w := newRecorder()
		r, _ := http.NewRequestWithContext(tc.ctx, "GET", "/v1/daemon", nil)
		s.Handler().ServeHTTP(w, r)
		if w.status != tc.want {
			t.Errorf("status %d, want %d: %s", w.status, tc.want, w.body.String())
		}
	}
}

// recorder is an http.ResponseWriter without a connection.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder                         { return &recorder{header: http.Header{}, status: 200} }
func (r *recorder) Header() http.Header              { return r.header }
func (r *recorder) WriteHeader(status int)           { r.status = status }
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }
func (r *recorder) FlushError() error                { return nil }
func (r *recorder) Write(p []byte) (int, error)      { return r.body.Write(p) }

// raw sends one request over the socket as it is.
func raw(t *testing.T, c *client.Client, method, path, body string, header map[string]string) (int, api.Problem, http.Header) {
	t.Helper()
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket())
	}}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(api.HeaderVersion, fmt.Sprint(api.Version))
	req.Header.Set(api.HeaderBuild, api.Build())
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var p api.Problem
	_ = json.NewDecoder(resp.Body).Decode(&p)
	return resp.StatusCode, p, resp.Header
}

func TestAClientOfAnotherBuildIsToldTheWayOut(t *testing.T) {
	v := &verbs{}
	c, h := serve(t, v)
	for _, header := range []map[string]string{{api.HeaderVersion: "99"}, {api.HeaderBuild: "v0.0.1"}, {api.HeaderVersion: ""}} {
		status, p, _ := raw(t, c, "GET", "/v1/changes", "", header)
		if status != 503 || p.Next != "sallyport daemon stop" || !strings.Contains(p.Text, api.Build()) {
			t.Errorf("%v: %d %+v", header, status, p)
		}
	}
	if len(v.calls) != 0 {
		t.Errorf("a verb ran: %v", v.calls)
	}
	// The way out itself works.
	if status, _, answer := raw(t, c, "POST", "/v1/daemon/stop", "", map[string]string{api.HeaderVersion: "99", api.HeaderBuild: "x"}); status != 200 || answer.Get(api.HeaderBuild) != api.Build() {
		t.Errorf("stop: %d %v", status, answer)
	}
	<-h.stopped
}

// What a keeper runs is a release, and programs of another build have to reach it: a new host is confirmed by them.
func TestADaemonThatIsKeptTalksWithAnotherBuild(t *testing.T) {
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Keeper = &api.Keeper{} })
	if status, p, _ := raw(t, c, "GET", "/v1/changes", "", map[string]string{api.HeaderBuild: "v0.0.1"}); status != 200 {
		t.Errorf("another build: %d %+v", status, p)
	}
	if status, p, _ := raw(t, c, "GET", "/v1/changes", "", map[string]string{api.HeaderVersion: "99"}); status != 503 {
		t.Errorf("another version: %d %+v", status, p)
	}
}

// TestAQuietHostMovesNothingElse: what could not be taken back is refused by name, and what people look at and decide goes on.
func TestAQuietHostMovesNothingElse(t *testing.T) {
	var on error
	v := &verbs{}
	c, _ := serve(t, v, func(o *Options) {
		o.Quiet = func(of string) error {
			if of == "chg-1" {
				return nil
			}
			return on
		}
	})
	for _, quiet := range []bool{false, true} {
		if quiet {
			on = problem.Errorf(problem.Unavailable, "sallyport change watch chg-1", "a host change is on trial until 12:34: chg-1")
		}
		for path, method := range map[string]string{"/v1/changes/chg-1/cancel": "POST", "/v1/changes/chg-1/redo": "POST", "/v1/changes/chg-1/confirm": "POST", "/v1/changes/chg-1/rollback": "POST", "/v1/changes/chg-2/rollback": "POST", "/v1/approvals/card-1/answer": "POST", "/v1/changes": "GET"} {
			status, p, _ := raw(t, c, method, path, "{}", nil)
			refused := status == 503 && strings.Contains(p.Text, "on trial until 12:34")
			if want := quiet && (strings.HasSuffix(path, "cancel") || strings.HasSuffix(path, "redo") || strings.Contains(path, "chg-2") || strings.HasSuffix(path, "answer")); refused != want {
				t.Errorf("quiet %t, %s %s: %d %+v", quiet, method, path, status, p)
			}
		}
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	v := &verbs{}
	c, _ := serve(t, v)
	for name, tc := range map[string]struct {
		method, path, body string
		want               int
	}{
		"unknown field":     {"POST", "/v1/changes/chg-00000001/cancel", `{"reason":"x","force":true}`, 400},
		"two documents":     {"POST", "/v1/changes/chg-00000001/cancel", `{"reason":"x"}{}`, 400},
		"no document":       {"POST", "/v1/changes/chg-00000001/cancel", ``, 400},
		"no JSON":           {"POST", "/v1/changes/chg-00000001/cancel", `reason=x`, 400},
		"too large":         {"POST", "/v1/changes/chg-00000001/cancel", `{"reason":"` + strings.Repeat("x", api.BodyBytesMax) + `"}`, 400},
		"unknown parameter": {"GET", "/v1/changes?color=red", ``, 400},
		"bad number":        {"GET", "/v1/audit?after=-1", ``, 400},
		"relative folder":   {"POST", "/v1/changes", `{"dir":"repo","text":"x","agent":"command","approve":"yes"}`, 400},
		"no folder":         {"GET", "/v1/repository?dir=repo", ``, 400},
		"relative share":    {"POST", "/v1/changes", `{"dir":"/r","shares":["s"],"text":"x","agent":"command","approve":"yes"}`, 400},
		"unknown approve":   {"POST", "/v1/changes", `{"dir":"/r","text":"x","agent":"command","approve":"maybe"}`, 400},
		"unknown path":      {"GET", "/v2/changes", ``, 404},
		"shell, no upgrade": {"POST", "/v1/changes/chg-00000001/shell", ``, 400},
	} {
		status, p, _ := raw(t, c, tc.method, tc.path, tc.body, nil)
		if status != tc.want || p.Text == "" || p.Next == "" {
			t.Errorf("%s: %d %+v", name, status, p)
		}
	}
	if len(v.calls) != 0 {
		t.Errorf("a verb ran: %v", v.calls)
	}
}

func TestAShellHasATerminalItsSizeAndItsExitStatus(t *testing.T) {
	v := &verbs{shell: func(ctx context.Context, slave *os.File) (int, error) {
		// What is typed may overtake a new size: they are different things that a person does.
		cmd := exec.CommandContext(ctx, "sh", "-c", `stty size; read line; echo "got $line"
			i=0; until test "$(stty size)" = "50 132" || test $i = 5000; do i=$((i+1)); done; stty size; exit 7`)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		err := cmd.Run()
		return cmd.ProcessState.ExitCode(), ignoreExit(err)
	}}
	c, _ := serve(t, v)
	in, typed := io.Pipe()
	resize := make(chan client.Size)
	out := &waiter{want: make(chan string, 1), seen: make(chan struct{}, 1)}
	out.want <- "24 80"
	go func() {
		<-out.seen
		resize <- client.Size{Rows: 50, Cols: 132}
		close(resize)
		io.WriteString(typed, "hello\n") // the shell's output shows whether it arrived
	}()
	code, err := c.Shell(t.Context(), "chg-00000001", client.Terminal{In: in, Out: out, Size: client.Size{Rows: 24, Cols: 80}, Resize: resize})
	typed.Close()
	if err != nil || code != 7 {
		t.Fatalf("exit %d, %v; output %q", code, err, out.text.String())
	}
	for _, want := range []string{"24 80", "got hello", "50 132"} {
		if !strings.Contains(out.text.String(), want) {
			t.Errorf("%q lacks %q", out.text.String(), want)
		}
	}
}

// waiter collects output and tells once what is wanted has been seen.
type waiter struct {
	text bytes.Buffer
	want chan string
	seen chan struct{}
}

func (w *waiter) Write(p []byte) (int, error) {
	w.text.Write(p)
	select {
	case want := <-w.want:
		if strings.Contains(w.text.String(), want) {
			w.seen <- struct{}{}
		} else {
			w.want <- want
		}
	default:
	}
	return len(p), nil
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func TestAShellThatIsRefusedSaysWhy(t *testing.T) {
	c, _ := serve(t, &verbs{err: errRefused})
	in, typed := io.Pipe()
	defer typed.Close()
	_, err := c.Shell(t.Context(), "chg-00000001", client.Terminal{In: in, Out: io.Discard})
	if problem.KindOf(err) != problem.Refused || problem.Of(err).Next == "" {
		t.Errorf("got %v", err)
	}
}

func TestAShellEndsWhenItsReaderGoesAway(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	v := &verbs{shell: func(ctx context.Context, _ *os.File) (int, error) {
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return 0, ctx.Err()
	}}
	c, _ := serve(t, v)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	in, typed := io.Pipe()
	defer typed.Close()
	if _, err := c.Shell(ctx, "chg-00000001", client.Terminal{In: in, Out: io.Discard}); !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the daemon's side has no cause")
	}
}

func TestListenTakesOnlyASocketThatNobodyAnswers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(dir, "daemon.sock")
	l, err := Listen(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, path: 0o600 | fs.ModeSocket} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := Listen(t.Context(), path, disk.Ops{}); !errors.Is(err, ErrAnswered) {
		t.Errorf("a socket that is answered: %v", err)
	}
	// What a killed daemon leaves: the file, without anybody behind it.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if l, err = Listen(t.Context(), path, disk.Ops{}); err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	l.Close()

	disktest.Put(t, path, "", 0o600)
	if _, err := Listen(t.Context(), path, disk.Ops{}); problem.KindOf(err) != problem.Refused {
		t.Errorf("a file in the way: %v", err)
	}
}

func TestTheWireNamesEveryStateAsTheControllerDoes(t *testing.T) {
	for wire, own := range map[string]change.State{
		api.Requested: change.Requested, api.Preparing: change.Preparing, api.Working: change.Working, api.Paused: change.Paused,
		api.Blocked: change.Blocked, api.Submitted: change.Submitted, api.AwaitingApproval: change.AwaitingApproval,
		api.Landing: change.Landing, api.InTrial: change.InTrial, api.Finalized: change.Finalized, api.RolledBack: change.RolledBack,
		api.RollbackFailed: change.RollbackFailed, api.Rejected: change.Rejected, api.Cancelled: change.Cancelled, api.Failed: change.Failed,
	} {
		if wire != string(own) || api.Final(wire) != own.Final() || api.Words(wire) != own.Words() {
			t.Errorf("%s: the wire says %q, final %t", own, wire, api.Final(wire))
		}
	}
}

func TestNoSocketIsMadeInAFolderThatOthersMadeFirst(t *testing.T) {
	squat := filepath.Join(t.TempDir(), "sallyport")
	if err := os.Mkdir(squat, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(squat, 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), filepath.Join(squat, "0123", "daemon.sock"), disk.Ops{})
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), squat) {
		t.Errorf("listened on %v, %v", l, err)
	}
	if left, _ := os.ReadDir(squat); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
}

// Who owns a folder, or may write to the one above it, could put a socket of theirs in the place of ours.
func TestASocketsFoldersAreItsUsersAlone(t *testing.T) {
	const other = 4711
	for name, c := range map[string]struct {
		above, folder       os.FileMode // 0 = it is not there
		aboveUID, folderUID int         // -1 = ours
		root                bool        // only root can have it so
		want                string      // in the refusal; "" = it is taken
	}{
		"nothing there":                 {0, 0, -1, -1, false, ""},
		"ours":                          {0o755, 0o700, -1, -1, false, ""},
		"a folder of all, like /tmp":    {0o777 | os.ModeSticky, 0, -1, -1, false, ""},
		"all may write above":           {0o777, 0, -1, -1, false, "not yours alone"},
		"its group may write above":     {0o770, 0o700, -1, -1, false, "not yours alone"},
		"all may enter":                 {0o755, 0o701, -1, -1, false, "not a folder of mode 0700"},
		"its group may read":            {0o755, 0o740, -1, -1, false, "not a folder of mode 0700"},
		"the folder above is another's": {0o755, 0o700, other, -1, true, "not yours alone"},
		"the folder is another's":       {0o755, 0o700, -1, other, true, "not a folder of mode 0700"},
	} {
		if c.root && os.Getuid() != 0 {
			continue
		}
		above := filepath.Join(t.TempDir(), "s")
		folder := filepath.Join(above, "0123")
		for path, is := range map[string]struct {
			mode os.FileMode
			uid  int
		}{above: {c.above, c.aboveUID}, folder: {c.folder, c.folderUID}} {
			if is.mode == 0 {
				continue
			}
			if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, is.mode), os.Chown(path, is.uid, -1)); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Listen(t.Context(), filepath.Join(folder, "d"), disk.Ops{})
		if l != nil {
			l.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}

	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "s")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), filepath.Join(link, "0123", "d"), disk.Ops{}); problem.KindOf(err) != problem.Refused {
		t.Errorf("a link above: %v", err)
	}
	if err := os.Symlink(real, filepath.Join(real, "0123")); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), filepath.Join(real, "0123", "d"), disk.Ops{}); problem.KindOf(err) != problem.Refused {
		t.Errorf("a link in its place: %v", err)
	}
}

// A key crosses, and its name; the request that is stored has neither.
func TestKeysReachTheControllerBesideTheRequestAndNotInIt(t *testing.T) {
	v := &verbs{row: change.Row{ID: "chg-00000001"}}
	c, _ := serve(t, v)
	r := api.Run{Dir: "/repo", Text: "do", Agent: "codex", Model: "gpt-5", Egress: []string{"registries"}, Approve: "later",
		Keys: api.Keys{"OPENAI_API_KEY": "sk-Tulip4711"}, Bases: map[string]string{"OPENAI_BASE_URL": "https://models.example.org/v1"}, Env: map[string]string{"TEAM": "blue"}}
	if _, err := client.Call(t.Context(), c, api.ChangeRun, r); err != nil {
		t.Fatal(err)
	}
	if len(v.keys) != 1 || v.keys["OPENAI_API_KEY"].Reveal() != "sk-Tulip4711" {
		t.Errorf("%d keys", len(v.keys))
	}
	raw, err := json.Marshal(v.asked)
	if err != nil || strings.Contains(string(raw), "Tulip") || strings.Contains(string(raw), "OPENAI_API_KEY") {
		t.Errorf("%s, %v", raw, err)
	}
	if v.asked.Agent != "codex" || v.asked.Model != "gpt-5" || len(v.asked.Egress) != 1 || v.asked.Bases["OPENAI_BASE_URL"] != "https://models.example.org/v1" || v.asked.Env["TEAM"] != "blue" {
		t.Errorf("asked for %+v", v.asked)
	}
	if _, err := client.Call(t.Context(), c, api.SessionResume, api.Resume{Of: "codex-1a2b3", Keys: r.Keys}); err != nil || v.keys["OPENAI_API_KEY"].Reveal() != "sk-Tulip4711" {
		t.Errorf("%v", err)
	}
}

func TestWhoAsksIsFoundAgainAsAPersonForEachRequestOrNotHeard(t *testing.T) {
	v := &verbs{}
	c, h := serve(t, v, func(o *Options) { o.People = known{errors.New("the database is gone")} })
	if err := client.Do(t.Context(), c, api.ApprovalRefuse, api.Reason{Of: "apr-00000001"}); err == nil || !strings.Contains(err.Error(), "the database is gone") || len(v.calls) != 0 {
		t.Errorf("%v, and the controller heard %q", err, v.calls)
	}
	if err := client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil { // needs no person, and a way out there must be
		t.Error(err)
	}
	<-h.stopped
}

func TestATimeoutIsTakenUpToTheMost(t *testing.T) {
	most := request.TimeoutMax.Milliseconds()
	for ms, want := range map[int64]bool{-1: false, 0: true, 1: true, most: true, most + 1: false} {
		r, err := requestOf(api.Run{Dir: "/repo", Text: "do", Agent: "echo", Approve: "ask", TimeoutMS: ms})
		if (err == nil) != want || want && r.Timeout != time.Duration(ms)*time.Millisecond {
			t.Errorf("%d ms is taken as %s, %v", ms, r.Timeout, err)
		}
	}
}

func TestListsOfAnAgentAreTakenUpToTheMost(t *testing.T) {
	many := func(n int, value string) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprint("SOME_", i)] = value
		}
		return out
	}
	for name, row := range map[string]struct {
		most int
		of   func(n int) api.Run
	}{
		"egress": {request.ListMax, func(n int) api.Run { return api.Run{Egress: slices.Repeat([]string{"example.org"}, n)} }},
		"env":    {request.ListMax, func(n int) api.Run { return api.Run{Env: many(n, "1")} }},
		"bases":  {credential.KeysMax, func(n int) api.Run { return api.Run{Bases: many(n, "https://example.org")} }},
	} {
		if err := agentWords(row.of(row.most)); err != nil {
			t.Errorf("%s: the most is refused: %v", name, err)
		}
		if err := agentWords(row.of(row.most + 1)); problem.KindOf(err) != problem.Usage {
			t.Errorf("%s: one more is taken: %v", name, err)
		}
	}
}

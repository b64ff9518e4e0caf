package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// daemon is a daemon by hand: it answers one change from its fields and remembers what it was told.
type daemon struct {
	t          *testing.T
	stats      api.Stats
	socket     string
	mu         sync.Mutex
	calls      []string
	detail     api.Detail
	question   api.Question
	dir        string // where the person stands
	asked      bool   // the host asks whoever uses it
	notices    []api.Notice
	after      func(call string) // called when something was decided, to move detail on
	hold       chan struct{}     // a watch stays open until this is closed; nil = ends at once
	looks      chan struct{}     // at the change: a watch tells that a trial asks after the first of them; nil = at once
	err        error
	stream     string
	cut        bool // a watch has no end
	older      bool // it knows no limit of approvals
	accepted   api.Change
	run        api.Run
	taken      api.Checkpoint // what restore and checkpoint now answer
	delivery   api.Delivery
	audit      []api.Entry
	report     api.AuditReport
	sandbox    api.Sandbox
	settings   []api.Unloaded // that do not load
	tries      []api.Try
	stuck      []api.Check
	returned   api.Returned
	target     api.Target
	wanted     api.Wanted
	looked     string // how wanted was asked for last
	agents     []api.Agent
	groups     []api.Group
	folders    []api.GroupMount // of this machine, that a group is newly to be shown
	repository api.Repository   // what stands where a person does
	refused    error            // why no change can be made there
	tested     api.AgentTest
	env        map[string]string // of the person, beside the usual
	others     []api.Change      // beside detail's, in a list
	lost       error             // what confirm answers, nil = it is confirmed
	rooms      []room            // what each watch of a chat is told in turn
	chats      []api.Chat
	drops      []api.Drop
	channels   []api.Channel
	open       bool // permissions are off
	messages   []api.Message
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "spcli")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, socket: filepath.Join(dir, "s")}
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	d.routes(mux)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go server.Serve(l) // ends with the test
	t.Cleanup(func() {
		server.Close()
		os.RemoveAll(dir)
	})
	return d
}

func (d *daemon) routes(mux *http.ServeMux) {
	answer := func(pattern string, what func(r *http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d.sync()
			if d.err != nil {
				p, status := api.ProblemOf(d.err)
				w.WriteHeader(status)
				json.NewEncoder(w).Encode(p)
				return
			}
			json.NewEncoder(w).Encode(what(r))
		})
	}
	answer("GET /v1/daemon", func(*http.Request) any {
		return api.Daemon{PID: 4242, Build: "b", Home: "/h", Started: time.Now().Add(-90 * time.Second), Alerts: d.stats.Alerts, Sandbox: d.sandbox, Open: d.open, Settings: d.settings}
	})
	answer("POST /v1/changes", func(r *http.Request) any {
		d.mu.Lock()
		defer d.mu.Unlock()
		json.NewDecoder(r.Body).Decode(&d.run)
		return d.accepted
	})
	mux.HandleFunc("GET /v1/repository", func(w http.ResponseWriter, r *http.Request) {
		d.note("repository " + r.URL.Query().Get("dir"))
		if d.refused != nil {
			p, status := api.ProblemOf(d.refused)
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(p)
			return
		}
		json.NewEncoder(w).Encode(d.repository)
	})
	answer("GET /v1/wanted", func(r *http.Request) any {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.looked = r.URL.Query().Encode()
		return d.wanted
	})
	answer("POST /v1/changes/{id}/keys", func(r *http.Request) any { d.note("keys " + r.PathValue("id") + body(r)); return struct{}{} })
	answer("GET /v1/groups", func(*http.Request) any { return api.Groups{Groups: d.groups, Asked: d.asked} })
	answer("POST /v1/home", func(r *http.Request) any { d.note("complete" + body(r)); return api.Begun{} })
	answer("POST /v1/groups", func(r *http.Request) any { said := body(r); d.note("create " + said); return d.begun(said) })
	answer("POST /v1/groups/{group}/refresh", func(r *http.Request) any {
		said := body(r)
		d.note("refresh " + r.PathValue("group") + said)
		if len(d.groups) == 0 { // then nothing has moved in its template
			return api.Begun{}
		}
		return d.begun(said)
	})
	answer("POST /v1/groups/{group}/commit", func(r *http.Request) any {
		said := body(r)
		d.note("commit " + r.PathValue("group") + said)
		return d.begun(said)
	})
	answer("POST /v1/changes/{change}/promote", func(r *http.Request) any {
		d.note("promote " + r.PathValue("change"))
		if len(d.groups) == 0 { // then the template has it
			return api.Begun{}
		}
		return api.Begun{Change: &d.detail.Change}
	})
	answer("GET /v1/groups/{group}", func(r *http.Request) any { d.note("group " + r.PathValue("group")); return d.groups[0] })
	answer("GET /v1/agents", func(r *http.Request) any { d.note("agents " + r.URL.RawQuery); return d.agents })
	answer("POST /v1/agents/test", func(r *http.Request) any { d.note("test " + body(r)); return d.tested })
	answer("GET /v1/changes", func(r *http.Request) any {
		d.note("list " + r.URL.RawQuery)
		rows := append([]api.Change{d.detail.Change}, d.others...)
		return slices.DeleteFunc(rows, func(c api.Change) bool {
			only := r.URL.Query()["state"]
			return len(only) > 0 && !slices.Contains(only, c.State)
		})
	})
	answer("GET /v1/changes/{id}", func(*http.Request) any {
		d.mu.Lock()
		defer d.mu.Unlock()
		select {
		case d.looks <- struct{}{}:
		default:
		}
		return d.detail
	})
	answer("GET /v1/changes/{id}/checkpoints", func(*http.Request) any { return d.detail.Checkpoints })
	mux.HandleFunc("POST /v1/changes/{id}/confirm", func(w http.ResponseWriter, r *http.Request) {
		d.note("confirm " + r.PathValue("id"))
		if d.lost != nil {
			p, status := api.ProblemOf(d.lost)
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(p)
		}
	})
	answer("POST /v1/changes/{id}/rollback", func(r *http.Request) any { d.note("rollback " + body(r)); return d.accepted })
	answer("POST /v1/changes/{id}/cancel", func(r *http.Request) any { d.note("cancel " + body(r)); return struct{}{} })
	point := func(verb string) func(*http.Request) any {
		return func(r *http.Request) any { d.note(verb + " " + r.PathValue("id") + body(r)); return d.taken }
	}
	answer("POST /v1/changes/{id}/pause", func(r *http.Request) any { d.note("pause " + body(r)); return struct{}{} })
	answer("POST /v1/changes/{id}/resume", func(r *http.Request) any { d.note("resume " + r.PathValue("id")); return struct{}{} })
	answer("POST /v1/changes/{id}/checkpoint", point("checkpoint now"))
	answer("POST /v1/changes/{id}/tell", func(r *http.Request) any { d.note("tell " + r.PathValue("id") + body(r)); return d.delivery })
	answer("POST /v1/changes/{id}/put-back", func(r *http.Request) any { d.note("put back " + body(r)); return d.returned })
	answer("POST /v1/checkpoints/{id}/restore", point("restore"))
	answer("POST /v1/checkpoints/{id}/export", func(r *http.Request) any {
		d.note("export " + r.PathValue("id"))
		return api.Exported{Path: "/h/.state/changes/chg-00000001/checkpoints/" + r.PathValue("id") + ".diff"}
	})
	answer("GET /v1/checkpoints/{id}/diff", func(r *http.Request) any { d.note("diff " + r.PathValue("id") + " " + r.URL.RawQuery); return 0 })
	answer("POST /v1/sessions/{id}/resume", func(r *http.Request) any {
		d.note("resume session " + r.PathValue("id") + body(r))
		return d.accepted
	})
	mux.HandleFunc("GET /v1/approvals", func(w http.ResponseWriter, r *http.Request) {
		if d.older && r.URL.Query().Has("limit") {
			p, status := api.ProblemOf(problem.Errorf(problem.Usage, "sallyport help", `"limit" is not a parameter of /v1/approvals`))
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(p)
			return
		}
		json.NewEncoder(w).Encode([]api.Approval{d.question.Approval})
	})
	answer("GET /v1/approvals/{ref}", func(*http.Request) any { d.mu.Lock(); defer d.mu.Unlock(); return d.question })
	answer("POST /v1/approvals/{id}/approve", func(r *http.Request) any { d.note("approve " + body(r)); return struct{}{} })
	answer("POST /v1/approvals/{id}/answer", func(r *http.Request) any {
		d.note("answer " + r.PathValue("id") + " " + body(r))
		return api.Admitted{Told: "it is done"}
	})
	answer("POST /v1/approvals/{id}/refuse", func(r *http.Request) any { d.note("refuse " + body(r)); return struct{}{} })
	answer("GET /v1/targets", func(r *http.Request) any { d.note("target " + r.URL.Query().Get("repo")); return d.target })
	answer("POST /v1/targets/trust", func(r *http.Request) any { d.note("trust " + body(r)); return d.target })
	answer("POST /v1/targets/distrust", func(r *http.Request) any { d.note("distrust " + body(r)); return struct{}{} })
	answer("GET /v1/stats", func(r *http.Request) any { d.note("stats " + r.URL.RawQuery); return d.stats })
	mux.HandleFunc("GET /v1/metrics", func(w http.ResponseWriter, _ *http.Request) { d.sync(); io.WriteString(w, d.stream) })
	answer("GET /v1/doctor", func(*http.Request) any {
		checks := []api.Check{{Name: "sandbox", OK: true, Needed: true, Detail: "they run"}}
		return api.Doctor{Checks: append(checks, d.stuck...), Tries: d.tries}
	})
	answer("GET /v1/audit", func(r *http.Request) any {
		after, _ := strconv.Atoi(r.URL.Query().Get("after"))
		return append([]api.Entry{}, d.audit[min(after, len(d.audit)):]...)
	})
	answer("GET /v1/audit/verify", func(*http.Request) any { return d.report })
	mux.HandleFunc("GET /v1/changes/{id}/diff", func(w http.ResponseWriter, _ *http.Request) { d.sync(); io.WriteString(w, d.stream) })
	mux.HandleFunc("GET /v1/changes/{id}/export", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, d.stream) })
	mux.HandleFunc("GET /v1/changes/{id}/transcript", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, d.stream) })
	mux.HandleFunc("GET /v1/changes/{id}/watch", d.watch)
	d.chatRoutes(mux, answer)
}

func (d *daemon) watch(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	notices, hold, looks := d.notices, d.hold, d.looks
	d.mu.Unlock()
	for _, n := range notices {
		if n.Kind == api.NoticeTrial && looks != nil {
			w.(http.Flusher).Flush()
			select {
			case <-looks:
			case <-r.Context().Done():
				return
			}
		}
		raw, _ := json.Marshal(n)
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", n.Seq, n.Kind, raw)
	}
	w.(http.Flusher).Flush()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if d.cut {
		return
	}
	io.WriteString(w, "event: end\ndata: {}\n\n")
}

// begun answers who asks for a change of a group, once they have spoken about each folder.
func (d *daemon) begun(said string) api.Begun {
	var in struct{ Shown api.Shown }
	if err := json.Unmarshal([]byte(said), &in); err != nil {
		panic(err)
	}
	left := slices.DeleteFunc(slices.Clone(d.folders), func(f api.GroupMount) bool { return !in.Shown.Ask || in.Shown.Said[f.Path] == f.Asked })
	if len(left) > 0 {
		return api.Begun{Folders: left}
	}
	return api.Begun{Change: &d.detail.Change}
}

func body(r *http.Request) string {
	raw, _ := io.ReadAll(r.Body)
	return string(raw)
}

// sync orders what the test set before with what a handler reads: the race detector sees no other process.
func (d *daemon) sync() {
	d.mu.Lock()
	defer d.mu.Unlock()
}

func (d *daemon) note(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, call)
	if d.after != nil {
		d.after(call)
	}
}

func (d *daemon) told() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.calls, "\n")
}

// result is what one command line did.
type result struct {
	code     int
	out, err string
}

// cli runs one command line against the daemon, without a terminal.
func (d *daemon) cli(args ...string) result { return d.cliIn("", args...) }

func (d *daemon) cliIn(in string, args ...string) result {
	var out, errs bytes.Buffer
	p := Program{
		In: strings.NewReader(in), Out: &out, Err: &errs, Dir: func() (string, error) { return cmp.Or(d.dir, "/where/i/stand"), nil },
		Getenv: func(k string) string {
			if v, ok := d.env[k]; ok {
				return v
			}
			return map[string]string{"HOME": "/home/me", "PATH": "/bin", "SALLYPORT_HOME": "/h"}[k]
		},
		Connect: func(context.Context, string, bool) (*client.Client, error) { return client.New(d.socket), nil },
	}
	code := Main(p, args)
	return result{code, out.String(), errs.String()}
}

// hostile is what a repository or an agent may put into any text.
const hostile = "x\u009b\U000e0001\x7f\x1b]0;owned\a\x1b[31mred\u202eevil\r\n-rf"

func proposed() api.Proposal {
	return api.Proposal{
		Change: "chg-00000001", Digest: "0123456789abcdef0123456789abcdef", Base: "89abcdef0123456789", Policy: "fedcba9876543210",
		Card: api.Card{
			Title: "make the test pass", Kind: "edit", Repo: "/repo", Branch: "main", FilesTotal: 3, Added: 12, Removed: 4,
			Files: []api.FileLine{
				{Path: "a.go", Status: "changed", Added: 10, Removed: 4},
				{Path: "new.sh", Status: "added", Added: 2, Note: "new executable"},
				{Path: "pic.png", Status: "changed", Binary: true},
			},
			Reach: []string{"new executable: new.sh"}, Checks: []api.CheckResult{{Command: "go test ./...", OK: true, TookMS: 1234}},
		},
	}
}

func waiting() (api.Detail, api.Question) {
	p := proposed()
	c := api.Change{ID: "chg-00000001", State: api.AwaitingApproval, Text: "make the test pass", Repo: "/repo", Branch: "main", Kind: "edit"}
	a := api.Approval{ID: "apr-00000001", Change: c.ID, Digest: p.Digest, Decision: api.Pending, Asked: time.Now()}
	return api.Detail{Change: c, Proposal: &p, Approval: &a}, api.Question{Approval: a, Proposal: p}
}

func finalized() api.Detail {
	d, _ := waiting()
	d.Change.State = api.Finalized
	d.Landing = &api.Landed{ID: "lnd-00000001", Branch: "main", Commit: "cafe0123456789abcdef"}
	return d
}

// onTrial is a change that has landed and asks a person.
func onTrial() api.Detail {
	d := finalized()
	d.Change.State = api.InTrial
	d.Change.Trial = &api.Trial{
		Landing: "lnd-00000001", Restart: "./restart", Probe: "http://127.0.0.1:8080/health", LengthMS: 120_000, Handshake: api.Message1Sent,
		Restarts: 2, LeftMS: 90_500, Say: "I'm back with the new version. Reply `confirm` to keep it, or `rollback` to revert.",
	}
	return d
}

// wentBack is a change whose trial went against it.
func wentBack(why string) api.Detail {
	d := onTrial()
	d.Change.State, d.Change.Reason = api.RolledBack, "Rolled back to previous version — "+why
	at := time.Now()
	t := d.Change.Trial
	t.Handshake, t.LeftMS, t.Reason, t.Say, t.By, t.At = api.RolledBack, 0, why, d.Change.Reason, &api.Actor{Kind: "host", Name: "host"}, &at
	return d
}

func failed(kind problem.Kind, reason string) api.Detail {
	d, _ := waiting()
	d.Proposal, d.Approval = nil, nil
	d.Change.State, d.Change.Problem, d.Change.Reason, d.Change.Next = api.Failed, string(kind), reason, "sallyport change log chg-00000001"
	return d
}

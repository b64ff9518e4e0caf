package supervise_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
	"sallyport/internal/port/sandbox"
)

var refused = egress.Decision{Host: "evil.example.org", Port: 443, Method: "CONNECT", Verdict: egress.Refused, Why: "no rule names it"}

func TestASessionAndEachCheckHaveAWayOutOfTheirOwnThatEndsWithThem(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		w := &drivetest.Ways{}
		h.Parts.Network = w
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Checks: []string{"true", "test -e page.txt"}}}
		var sockets []string
		h.Cage.Program = func(spec sandbox.Spec, _ <-chan struct{}) int {
			opened, closed := w.Counts()
			if opened != closed+1 {
				t.Errorf("%d were opened and %d closed while one runs", opened, closed)
			}
			sockets = append(sockets, filepath.Base(spec.Egress)+" "+spec.ID)
			return drivetest.Writes("two\n")(0, spec.Tree.Dir, nil)
		}
		c, _ := h.Daemon()
		r, err := c.TakeRequest(gittest.Context(t), request.Request{By: h.By(), Text: "x", Project: git.Project{Top: h.Repo}, Agent: "played",
			Argv: []string{"true"}, Approve: request.Later, Egress: []string{"a.example.org"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Is(c, r.Change.ID, change.AwaitingApproval)
		if opened, closed := w.Counts(); opened != 3 || closed != 3 {
			t.Errorf("%d were opened, %d closed", opened, closed)
		}
		for i, o := range w.Opened {
			if o.Subject != r.Change.ID.Subject() || o.Check != (i > 0) || o.Model != nil || fmt.Sprint(o.Asked) != "[a.example.org]" {
				t.Errorf("%d: %+v", i, o)
			}
			if want := string(o.Session) + " " + string(o.Session); sockets[i] != want {
				t.Errorf("%d has %s, not %s", i, sockets[i], want)
			}
		}
	})
}

func TestWhatIsAskedOfTheNetworkIsToldAtOnceCountedAndKept(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		w := &drivetest.Ways{}
		h.Parts.Network = w
		h.Cage.Play = drivetest.Hangs("half\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		notices, err := c.Watch(gittest.Context(t), chg)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var told []session.Asked
		go func() { // ends with the change
			for n := range notices {
				if n.Kind == change.NoticeEgress {
					mu.Lock()
					told = append(told, *n.Asked)
					mu.Unlock()
				}
			}
		}()
		all := func() []session.Asked { mu.Lock(); defer mu.Unlock(); return told }
		began := time.Now()
		w.Decide(refused)
		synctest.Wait()
		if got := all(); len(got) != 1 || got[0].Host != refused.Host || got[0].Verdict != "refused" || got[0].Why != refused.Why || time.Since(began) != 0 {
			t.Fatalf("after %s it was told %+v", time.Since(began), got)
		}
		for range 1000 { // without end: no more than once in a while
			w.Decide(refused)
		}
		w.Decide(egress.Decision{Host: "a.example.org", Port: 443, Method: "CONNECT", Verdict: egress.Allowed})
		synctest.Wait()
		if got := all(); len(got) != 1 {
			t.Errorf("at once it was told %+v", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := all(); len(got) != 3 || got[1].Count != 1000 || got[2].Host != "a.example.org" {
			t.Errorf("it was told %+v", got)
		}
		if d := h.Show(c, chg); len(d.Asked) != 2 || d.Asked[0].Count != 1001 || d.Asked[1].Count != 1 {
			t.Errorf("kept: %+v", d.Asked)
		}
		w.Decide(refused)
		synctest.Wait()
		w.Decide(refused)
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "enough"); err != nil { // what came last is kept too
			t.Fatal(err)
		}
		if d := h.Is(c, chg, change.Cancelled); d.Asked[0].Count != 1003 {
			t.Errorf("kept at the end: %+v", d.Asked)
		}
		if opened, closed := w.Counts(); opened != 1 || closed != 1 {
			t.Errorf("%d were opened, %d closed", opened, closed)
		}
	})
}

func TestWhatIsAskedIsBoundedAndHoldsNoSecret(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		w := &drivetest.Ways{}
		h.Parts.Network = w
		h.Cage.Play = drivetest.Hangs("half\n")
		c, end := h.Daemon()
		chg := h.Ask(c)
		const key = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
		w.Decide(egress.Decision{Host: key + ".example.org", Method: strings.Repeat("M", 5000), Verdict: egress.Refused, Why: strings.Repeat("ä", 5000) + "\xff"})
		for n := range 3 * session.AskedMax {
			w.Decide(egress.Decision{Host: fmt.Sprintf("h%d.example.org", n), Verdict: egress.Refused})
		}
		end()
		c, _ = h.Daemon()
		d := h.Show(c, chg)
		total := int64(0)
		for _, a := range d.Asked {
			total += a.Count
			if strings.Contains(a.Host, key) || len(a.Host) > 253 || len(a.Method) > 32 || len(a.Why) > 300 {
				t.Errorf("%+v", a)
			}
		}
		if len(d.Asked) > session.AskedMax+3 || total != 3*session.AskedMax+1 {
			t.Errorf("%d lines of %d requests", len(d.Asked), total)
		}
	})
}

func TestWithoutAWayOutNothingIsWrittenAndAWayThatCannotBeOpenedRunsNothing(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		w := &drivetest.Ways{None: true}
		h.Parts.Network = w
		h.Cage.Program = func(spec sandbox.Spec, _ <-chan struct{}) int {
			if spec.Egress != "" {
				t.Errorf("it has %q", spec.Egress)
			}
			return drivetest.Writes("two\n")(0, spec.Tree.Dir, nil)
		}
		c, _ := h.Daemon()
		if d := h.Is(c, h.Ask(c), change.AwaitingApproval); len(d.Asked) != 0 {
			t.Errorf("%+v", d.Asked)
		}
		w.Refuse = problem.New(problem.Usage, "that is no host")
		before := len(h.Cage.Starts())
		if d := h.Is(c, h.Ask(c), change.Failed); !strings.Contains(d.Change.Reason, "that is no host") || len(h.Cage.Starts()) != before {
			t.Errorf("%s", d.Change.Reason)
		}
	})
}

func TestAWayOutIsClosedWhenTheSandboxCannotBeStarted(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		w := &drivetest.Ways{}
		h.Parts.Network = w
		h.Cage.Refuse = func(int) error { return errors.New("no sandbox today") }
		c, _ := h.Daemon()
		chg := h.Ask(c)
		time.Sleep(time.Hour)
		h.Show(c, chg)
		if opened, closed := w.Counts(); opened == 0 || opened != closed {
			t.Errorf("%d were opened, %d closed", opened, closed)
		}
	})
}

// An agent that asks for much that is nothing hides nothing else behind it.
func TestTheCardSaysWhatWasRefusedOnTheNetwork(t *testing.T) {
	for name, test := range map[string]struct {
		noise int
		want  string
	}{
		"as it was asked":  {0, "sallyport refused 2 requests to evil.example.org; sallyport refused a request to other.example.org"},
		"behind much else": {session.AskedMax + 10, "requests to other hosts, or to its model"},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				w := &drivetest.Ways{}
				h.Parts.Network = w
				h.Cage.Play = func(n int, tree string, killed <-chan struct{}) int {
					for i := range test.noise {
						w.Decide(egress.Decision{Route: "model", Method: "GET", Path: fmt.Sprintf("/x%d", i), Verdict: egress.Refused, Why: "no"})
					}
					for _, host := range []string{"evil.example.org", "other.example.org", "evil.example.org"} {
						w.Decide(egress.Decision{Host: host, Port: 443, Method: "CONNECT", Verdict: egress.Refused, Why: "no rule"})
					}
					time.Sleep(10 * time.Second)
					return drivetest.Writes("two\n")(n, tree, killed)
				}
				c, _ := h.Daemon()
				chg := h.Ask(c)
				time.Sleep(time.Minute)
				if d := h.Is(c, chg, change.AwaitingApproval); d.Proposal == nil || !strings.Contains(strings.Join(d.Proposal.Card.Network, "; "), test.want) {
					t.Errorf("%+v", d.Proposal)
				}
			})
		})
	}
}

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// TestMain lets this binary be the command line on a terminal of its own.
func TestMain(m *testing.M) {
	if socket := os.Getenv("SALLYPORT_TEST_SOCKET"); socket != "" {
		p := System(Host{})
		p.Connect = func(context.Context, string, bool) (*client.Client, error) { return client.New(socket), nil }
		os.Exit(Main(p, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// screen is a person at a terminal.
type screen struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	end  chan struct{} // closed when all that was printed has been read
}

// sit starts one command line on a terminal.
func (d *daemon) sit(t *testing.T, args ...string) *screen {
	t.Helper()
	d.sync()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "SALLYPORT_TEST_SOCKET="+d.socket, "SALLYPORT_HOME=/h", "PAGER=cat", "TERM=xterm", "NO_COLOR=")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Skipf("SKIPPED: no pty here: %v", err)
	}
	s := &screen{t: t, pty: master, cmd: cmd, more: make(chan struct{}, 1), end: make(chan struct{})}
	go s.read()
	t.Cleanup(func() {
		master.Close()
		cmd.Process.Kill() // it has ended, unless the test failed
	})
	return s
}

func (s *screen) read() {
	defer close(s.end)
	buf := make([]byte, 4096)
	for {
		n, err := s.pty.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// see waits until what is on the screen since the last see matches.
func (s *screen) see(want string) string {
	s.t.Helper()
	re := regexp.MustCompile(want)
	deadline := time.After(3 * time.Minute)
	for {
		text := s.seen()
		if at := re.FindStringIndex(text); at != nil {
			s.mu.Lock()
			rest := s.text.String()[at[1]:]
			s.text.Reset()
			s.text.WriteString(rest)
			s.mu.Unlock()
			return text[:at[1]]
		}
		select {
		case <-s.more:
		case <-deadline:
			s.t.Fatalf("%q was not seen in %q", want, text)
		}
	}
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.pty, keys); err != nil {
		s.t.Fatal(err)
	}
}

// leaves waits until the command has ended and its last word is on the screen, and returns its exit status.
func (s *screen) leaves() int {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() {
		err := s.cmd.Wait()
		<-s.end
		ended <- err
	}()
	select {
	case <-ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(3 * time.Minute):
		s.t.Fatalf("the command does not end; the screen shows %q", s.seen())
		return -1
	}
}

func TestAtATerminalThePersonIsAskedWithTheCardBeforeThem(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
	d.detail, d.question = waiting()
	d.stream = "--- a\n+++ b\n+added\x1b[2J\n-removed\n"
	d.after = func(string) { d.detail = finalized() }
	s := d.sit(t, "run", "--request", "do", "--", "true")
	s.see("make the test pass")
	s.see(`\[a\]pprove exactly this, \[m\]essage, \[d\]iff, \[r\]efuse, \[l\]ater\? `)
	s.press("maybe\n")
	s.see("nothing was decided")
	s.see(`\[a\]pprove`)
	s.press("d\n")
	shown := s.see(`removed\x1b\[0m`)
	if !strings.Contains(shown, "\x1b[32m+added\\x1b[2J\x1b[0m") {
		t.Errorf("the diff is not coloured, or not harmless: %q", shown)
	}
	s.see(`\[a\]pprove`)
	s.press("a\n")
	s.see("landed")
	if code := s.leaves(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	if !strings.Contains(d.told(), `"digest":"0123456789abcdef0123456789abcdef"`) {
		t.Errorf("told %s", d.told())
	}
}

func TestAtATerminalWhatIsMarkedNeedsItsWords(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.question.Proposal.Card.Marks = []api.Mark{{Path: ".envrc\x1b[2J", Kind: "runs", Says: "direnv runs it when you enter the folder"}}
	d.question.Proposal.Card.MarksTotal, d.question.Proposal.Card.MarksWord = 1, true
	d.after = func(string) { d.detail = finalized() }
	s := d.sit(t, "approve", "chg-00000001")
	if shown := s.see(`direnv runs it when you enter`); strings.Contains(shown, ".envrc\x1b[2J") {
		t.Errorf("a name is not harmless: %q", shown)
	}
	s.see(`\[approve marked\].*ater\? `)
	s.press("a\n")
	s.see("nothing was decided.*type: approve marked")
	s.see(`ater\? `)
	s.press("what\n")
	s.see("answer approve marked, m, d, r or l")
	s.see(`ater\? `)
	if told := d.told(); told != "" {
		t.Fatalf("a plain yes told %s", told)
	}
	s.press("approve  marked\n")
	s.see("landed")
	if code := s.leaves(); code != exitDone || !strings.Contains(d.told(), `"marked":true`) {
		t.Errorf("exit %d told %s", code, d.told())
	}
}

func TestAtATerminalAChangeOfTheHostNeedsItsWords(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.question.Proposal.Card.Class, d.question.Proposal.Card.Typed, d.question.Proposal.Card.Banner = "host", "CONFIRM HOST", []string{"Review carefully.\x1b[2J"}
	d.question.Proposal.Card.MarksTotal, d.question.Proposal.Card.MarksWord = 1, true
	d.after = func(string) { d.detail = finalized() }
	s := d.sit(t, "approve", "chg-00000001")
	if shown := s.see(`\[CONFIRM HOST\].*ater\? `); strings.Contains(shown, "\x1b[2J") || !strings.Contains(shown, "Review carefully.") {
		t.Errorf("it shows %q", shown)
	}
	for _, word := range []string{"a", "approve marked", "", "confirm"} {
		s.press(word + "\n")
		s.see("nothing was decided")
		s.see(`ater\? `)
	}
	if told := d.told(); told != "" {
		t.Fatalf("other words told %s", told)
	}
	s.press("confirm host\n")
	s.see("landed")
	if code := s.leaves(); code != exitDone || !strings.Contains(d.told(), `"marked":true`) || !strings.Contains(d.told(), `"typed":"CONFIRM HOST"`) {
		t.Errorf("exit %d told %s", code, d.told())
	}
}

// TestAtATerminalAYesThatComesTooEarlyIsAskedForAgain holds that the prompt outlasts the time to think (SM-912), and ends at any other refusal.
func TestAtATerminalAYesThatComesTooEarlyIsAskedForAgain(t *testing.T) {
	for _, think := range []time.Duration{time.Hour, 0} {
		d := newDaemon(t)
		refuse := func(err error) {
			d.mu.Lock()
			d.err = err
			d.mu.Unlock()
		}
		d.detail, d.question = waiting()
		d.question.Proposal.Card.Typed, d.question.Proposal.Card.ThinkMS = "CONFIRM HOST", think.Milliseconds()
		d.after = func(string) { d.detail = finalized() }
		s := d.sit(t, "approve", "chg-00000001")
		if shown := s.see(`\[CONFIRM HOST\].*ater\? `); strings.Contains(shown, "read it first: a yes counts in ") != (think > 0) {
			t.Errorf("%s to think: it shows %q", think, shown)
		}
		refuse(problem.Errorf(problem.Refused, "sallyport approve chg-00000001", "not\x1b[2J yet"))
		s.press("confirm host\n")
		if think == 0 {
			s.see(`not\\x1b\[2J yet`)
			if code := s.leaves(); code != exitRefused {
				t.Errorf("exit %d", code)
			}
			continue
		}
		s.see(`nothing was decided: not\\x1b\[2J yet. Type it again then`)
		s.see(`ater\? `)
		refuse(nil)
		s.press("confirm host\n")
		s.see("landed")
		if code := s.leaves(); code != exitDone {
			t.Errorf("exit %d", code)
		}
	}
}

func TestAtATerminalLaterLeavesItWaitingAndARefusalHasAReason(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	s := d.sit(t, "approve", "chg-00000001")
	s.see(`ater\? `)
	s.press("l\n")
	s.see("sallyport approve chg-00000001")
	if code := s.leaves(); code != exitWaiting || d.told() != "" {
		t.Errorf("exit %d told %s", code, d.told())
	}

	s = d.sit(t, "approve", "chg-00000001")
	s.see(`ater\? `)
	s.press("no\n")
	s.see(`why\? `)
	s.press("\n")
	s.see("needs a reason")
	d.mu.Lock()
	d.after = func(string) {
		d.detail.Change.State, d.detail.Change.Reason = api.Rejected, "wrong file"
	}
	d.mu.Unlock()
	s.see(`ater\? `)
	s.press("r\n")
	s.see(`why\? `)
	s.press("wrong file\n")
	s.see("rejected: wrong file")
	if code := s.leaves(); code != exitRefused || d.told() != `refuse {"reason":"wrong file"}` {
		t.Errorf("exit %d told %s", code, d.told())
	}

	d = newDaemon(t)
	d.detail, d.question = waiting()
	s = d.sit(t, "approve", "chg-00000001")
	s.see(`ater\? `)
	s.press("\x03") // Ctrl-C is no answer
	s.see("sallyport approve chg-00000001")
	if code := s.leaves(); code != exitWaiting || d.told() != "" {
		t.Errorf("exit %d told %s", code, d.told())
	}
}

func TestCtrlCAsksAndASecondOneLeavesItRunning(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"}}
	d.hold = make(chan struct{})
	defer close(d.hold)
	s := d.sit(t, "run", "--request", "do", "--", "true")
	s.see("Ctrl-C asks")
	s.press("\x03")
	s.see("eave it running")
	s.press("\x03")
	s.see("next: sallyport change watch chg-00000001")
	if code := s.leaves(); code != exitInterrupted || d.told() != "" {
		t.Errorf("exit %d told %s", code, d.told())
	}
}

func TestCtrlCCanCancel(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"}}
	d.hold = make(chan struct{})
	d.after = func(string) {
		d.detail.Change = api.Change{ID: "chg-00000001", State: api.Cancelled, Reason: "cancelled at the terminal"}
		close(d.hold)
	}
	s := d.sit(t, "run", "--request", "do", "--", "true")
	s.see("Ctrl-C asks")
	s.press("\x03")
	s.see("eave it running")
	s.press("\n") // no answer: on with it
	s.see("Ctrl-C asks")
	s.press("\x03")
	s.see("eave it running")
	s.press("x\n") // no answer either, and none of what came with it
	s.see("nothing was decided")
	s.see("eave it running")
	s.press("c\n")
	s.see("cancelled: cancelled at the terminal")
	if code := s.leaves(); code != exitRefused || !strings.HasPrefix(d.told(), "cancel ") {
		t.Errorf("exit %d told %s", code, d.told())
	}
}

func TestTheAgentsOutputIsShownWhenItIsAskedFor(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
	d.detail = finalized()
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"}, {Seq: 2, Kind: "output", Text: "first\x1b[2J\nsecond\n"},
		{Seq: 3, Kind: "progress", Progress: &api.Progress{FilesChanged: 3, OutputBytes: 2560}}}
	d.hold = make(chan struct{})
	s := d.sit(t, "run", "--request", "do", "--", "true")
	if before := s.see("3 files changed, 2.5 KiB of output"); strings.Contains(before, "first") {
		t.Errorf("output was shown unasked: %q", before)
	}
	s.press("o")
	s.see(`first\\x1b\[2J`)
	s.see("second")
	s.see("o hides")
	close(d.hold)
	s.see("landed")
	if code := s.leaves(); code != exitDone {
		t.Errorf("exit %d", code)
	}
}

// A question stays the last thing on the screen, and what the agent printed meanwhile is counted; so is what had gone by before.
func TestTheLiveViewSaysWhatItLeftOut(t *testing.T) {
	var b bytes.Buffer
	v := &liveView{app: &app{Program: Program{Err: &b, Getenv: func(string) string { return "" }}}, change: "chg-00000001", state: api.Working}
	v.sheet = sheet{w: &b, width: 80}
	for i := range 2000 {
		v.show(api.Notice{Kind: api.NoticeOutput, Text: fmt.Sprintf("line %d", i)})
	}
	v.key('o')
	if got := b.String(); !strings.Contains(got, "chg-00000001 10.4 KiB of output came before this: sallyport change log chg-00000001\n| line 1") {
		t.Errorf("got %.300q", got)
	}
	v.question("")
	asked := b.Len()
	v.show(api.Notice{Kind: api.NoticeOutput, Text: "Approve? [y/N] "})
	if b.Len() != asked {
		t.Errorf("behind the question stands %q", b.String()[asked:])
	}
	v.answered()
	if got := b.String()[asked:]; !strings.Contains(got, "chg-00000001 16 B of output came meanwhile: sallyport change log chg-00000001\n") {
		t.Errorf("got %q", got)
	}
}

// At a terminal a checkpoint that is valid takes the place of the one before it; one that is not,
// and the last one, stay above.
func TestAtATerminalCheckpointsAreShownInPlaceUnlessTheyMatter(t *testing.T) {
	d := newDaemon(t)
	d.accepted, d.detail = api.Change{ID: "chg-00000001", Text: "do"}, finalized()
	bad, last := invalid(1), api.Checkpoint{ID: "ckpt-004-0123abcd", Number: 4, Status: "valid", Trigger: "end"}
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"},
		{Seq: 2, Kind: "checkpoint", Checkpoint: &api.Checkpoint{ID: "ckpt-001-0123abcd", Number: 1, Status: "valid", Trigger: "interval"}},
		{Seq: 3, Kind: "checkpoint", Checkpoint: &bad},
		{Seq: 4, Kind: "checkpoint", Checkpoint: &api.Checkpoint{ID: "ckpt-003-0123abcd", Number: 3, Status: "valid", Trigger: "interval"}},
		{Seq: 5, Kind: "checkpoint", Checkpoint: &last}}
	d.hold = make(chan struct{})
	s := d.sit(t, "change", "watch", "chg-00000001")
	shown := s.see(`working \d+s, checkpoint 1 valid`)
	shown += s.see("f0: forbidden_area") + s.see("checkpoint 3 valid")
	shown += s.see("ckpt-004-0123abcd")
	close(d.hold)
	s.see("landed")
	if code := s.leaves(); code != exitDone || strings.Contains(shown, "ckpt-001") || strings.Contains(shown, "ckpt-003") || !strings.Contains(shown, "ckpt-002-0123abcd") {
		t.Errorf("exit %d shown %q", code, shown)
	}
}

// TestAPromptWhoseCardWasAnsweredElsewhereSaysSo and does not say that it still waits.
func TestAPromptWhoseCardWasAnsweredElsewhereSaysSo(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	s := d.sit(t, "approve", "chg-00000001")
	s.see(`\[a\]pprove exactly this`)
	d.mu.Lock()
	d.question.Approval.Decision = "refused"
	d.mu.Unlock()
	s.press("l\n")
	if code := s.leaves(); code != exitError || !strings.Contains(s.seen(), "was answered already: refused") || strings.Contains(s.seen(), "waits for a person") {
		t.Errorf("exit %d, %q", code, s.seen())
	}
}

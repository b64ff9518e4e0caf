package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// victim names the variable that has a daemon of this test kill others at one of its operations, and not itself.
const victim = "SALLYPORT_TEST_VICTIM"

// victims are the processes of a home that are killed so, by what they are.
var victims = map[string]func(home string) []int{
	"keeper": func(home string) []int { return keepersAmong(home, processes()) },
	"runner": func(home string) []int { return outermost(sandboxed(home)) },
	"agent": func(home string) []int {
		return slices.DeleteFunc(sandboxed(home), func(pid int) bool { return !slices.Contains(commandOf(pid), "adapt") })
	},
}

// sandboxed are the processes in all sandboxes of a home.
func sandboxed(home string) []int { return inside((&place{home: home}).groupName()) }

// processes are all that there are.
func processes() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// strike kills those processes of a home, and says how many it met.
func strike(whom, home string) {
	pids := victims[whom](home)
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL) // gone already is as good
	}
	fmt.Fprintf(os.Stderr, "%s %d\n", struck, len(pids))
}

const struck = "the test struck"

// goes has echo changed by a person who answers whatever they are asked, to whatever end it comes to.
func (s *swapper) goes(t *testing.T, c *client.Client) {
	t.Helper()
	s.alone, s.shares = true, true
	defer s.watch(t, c)()
	await(t, "the chat to be shown", s.sees(func(n *terminal) bool { return n.ready }))
	if !s.says(t, c, "wish", wish) ||
		!s.decides(t, c, "an end", func(o api.Sent) bool { return tellsPromoted(o) || endsAlone(o) }) ||
		!s.says(t, c, "four", "four") || !s.until(t, "an answer to four", line("four")) {
		t.Fatal("the daemon went away")
	}
}

// struckAt has echo changed while some of its processes are killed as an operation of the daemon begins, and judges what came of it. It
// returns the operations, and how many were killed.
func (w *swapped) struckAt(t *testing.T, whom, where string) (names []string, met int) {
	t.Helper()
	w.restore(t, "silent")
	log := filepath.Join(w.dir, "names")
	for _, path := range []string{log, w.place.log} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home}, disktest.KillAt+"="+where+":before", disktest.KillLog+"="+log, victim+"="+whom)
	c, s := d.client(t, w.place), newSwapper("confirm")
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	s.goes(t, c)
	w.judgeStruck(t, c, s, whom)
	w.stop(t, c)
	w.leftNothing(t)
	w.leftNoSocket(t)
	raw, _ := os.ReadFile(w.place.log) // a daemon that has said nothing has none
	for line := range strings.Lines(string(raw)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), struck+" "); ok {
			met, _ = strconv.Atoi(n)
		}
	}
	return operations(t, log), met
}

// judgeStruck wants old or new, said once, and answered by that version. No keeper's death changes what becomes of a change.
func (w *swapped) judgeStruck(t *testing.T, c *client.Client, s *swapper, whom string) {
	t.Helper()
	s.mu.Lock()
	kept, shared, back, failed := s.count(tellsKept), s.count(tellsPromoted), s.count(tellsBack), s.count(func(o api.Sent) bool { return strings.Contains(o.Text, " has failed") })
	if kept+back+failed != 1 || kept != shared || s.count(line("four")) != 1 || s.count(asksToConfirm) > 1 || whom == "keeper" && kept != 1 {
		t.Errorf("kept %d, for the template %d, back %d, failed %d: %s", kept, shared, back, failed, s.all())
	}
	for _, o := range s.outs {
		if line("four")(o) && strings.HasPrefix(o.Text, "Hello, ") != (kept == 1) {
			t.Errorf("the group answers %q: %s", o.Text, s.all())
		}
	}
	s.mu.Unlock()
	at := over
	if shared > 0 {
		at = promoted
	}
	w.judge(t, c, s, at)
}

// TestAGroupChangesOrDoesNotWhoeverIsKilledBesideItsDaemon kills the keeper, the runners and the agents as each operation begins, from the wish
// until the template has it, too: the group runs old or new files, never half, and the person is told once.
func TestAGroupChangesOrDoesNotWhoeverIsKilledBesideItsDaemon(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newSwapped(t)
	whole, n := w.struckAt(t, "keeper", "db:asked_to_confirm") // which changes nothing
	from := disktest.Index(whole, "db:add-intake")
	if from < 0 || n == 0 {
		t.Fatalf("%d keepers died while a group came up; a whole change has the operations %q", n, whole)
	}
	type blow struct {
		whom string
		at   int
	}
	var blows []blow
	for _, n := range disktest.Points(t, whole[from:]) {
		for _, whom := range []string{"keeper", "runner", "agent"} {
			blows = append(blows, blow{whom, from + n})
		}
	}
	failures, met := 0, map[string]int{}
	for _, b := range disktest.Sample(t, blows, 301) {
		ok := t.Run(fmt.Sprintf("%s_%d", b.whom, b.at), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("the daemons said %s", w.said())
					killAll(t)
				}
			}()
			names, n := w.struckAt(t, b.whom, strconv.Itoa(b.at))
			met[b.whom] += n
			t.Logf("%d met before %s", n, append(names, make([]string, b.at+1)...)[b.at])
		})
		if !ok {
			failures++
		}
		if failures == failuresMax {
			return
		}
	}
	if disktest.Long() && len(met) != len(victims) || disktest.Long() && slices.Contains(slices.Collect(maps.Values(met)), 0) {
		t.Errorf("of some nobody was met: %v", met)
	}
}

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// fault is a way in which what a group has changed in itself can be no good.
type fault struct {
	group string // that changes so
	hook  string // that its wish makes
	does  string // lines of it
	why   string // what is told of it

	asked bool // for only once the person has read a card without it
}

// edit is the line of a wish that makes the hook.
func (f fault) edit() string {
	return "program template/runner/hooks/" + f.hook + `: #!/bin/sh\n` + f.does
}

// faults is the table. A hook has ten seconds, and the host does not wait longer for one that hangs.
var faults = []fault{
	{"exits", "on-start", `kill -9 $PPID`, "its program ended: it was ended by SIGKILL", false},
	{"hangs", "on-start", `exec sleep 1000`, "its turn failed: the hook on-start failed: it did not end within 10s", false},
	{"loops", "on-message", `while sleep 0.1; do echo and on; done`, "its turn failed: the hook on-message failed: it did not end within 10s", false},
	{"mute", "before-send", `echo '{"text": ""}'`, "its turn failed: the hook before-send dropped what the agent said", true},
	{"fails", "on-start", `echo 'no such module: greetings' >&2\nexit 3`, "its turn failed: the hook on-start failed: exit status 3: no such module: greetings", false},
}

// still is a program that stands still, and is waited for as long as an agent may take to answer: `make soak` has that long.
var still = fault{"still", "on-start", `kill -STOP $PPID`, "its turn did not end within 1m15s", false}

// TestAGroupThatIsNoGoodGoesBackByteForByteAndSaysWhy has each fault in a group of its own, all at once, in real sandboxes: nobody is asked to
// confirm it, the old files are back, the conversation is told why, and the old version answers there (SM-904, SM-906, SM-139, SM-138).
func TestAGroupThatIsNoGoodGoesBackByteForByteAndSaysWhy(t *testing.T) {
	if !apart(t) {
		return
	}
	all := faults
	if disktest.Long() {
		all = append(all[:len(all):len(all)], still)
	}
	w := newSwapped(t)
	c := w.start(t)
	var who []*swapper
	for _, f := range all {
		w.makes(t, c, f.group)
		s := newSwapper("")
		s.group = f.group
		defer s.watch(t, c)()
		await(t, "the chat to be shown", s.sees(func(n *terminal) bool { return n.ready }))
		who = append(who, s)
	}
	w.first = w.home1(t)
	for i, f := range all {
		wished := "/change " + f.edit()
		if f.asked {
			wished = wish
		}
		who[i].says(t, c, f.group+"-wish", wished)
	}
	for i, f := range all {
		who[i].until(t, "the card", asksToApprove)
		yes := "1"
		if f.asked {
			yes = who[i].reworks(t, c, f)
		}
		who[i].says(t, c, f.group+"-yes", yes)
	}
	for i, f := range all {
		who[i].until(t, "its end, and no question", func(o api.Sent) bool { return tellsBack(o) || asksToConfirm(o) })
		who[i].says(t, c, f.group+"-hello", "hello")
		who[i].until(t, "the old version to answer", line("hello"))
		w.wentBack(t, c, who[i], f)
	}
	if now := w.home1(t); now.tree != w.first.tree {
		t.Errorf("the home has changed:\n%s", git(t, w.home, "diff", "--stat", w.first.head, "HEAD"))
	}
	w.stop(t, c)
	w.leftNothing(t)
}

// reworks has what was proposed changed before it lands, and returns the words that approve that.
func (s *swapper) reworks(t *testing.T, c *client.Client, f fault) (yes string) {
	t.Helper()
	s.says(t, c, f.group+"-rework", "change: "+f.edit())
	s.until(t, "another card", func(api.Sent) bool { return s.count(asksToApprove) > 1 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.outs {
		if asksToApprove(o) {
			yes = fmt.Sprint(o.Digits, " approve")
		}
	}
	return yes
}

// makes makes a group of the home.
func (w *swapped) makes(t *testing.T, c *client.Client, name string) {
	t.Helper()
	made, err := client.Call(t.Context(), c, api.GroupCreate, api.NewGroup{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if ch := rest(t, c, made.Change.ID, nil); ch.State != api.Finalized {
		t.Fatalf("%s is not made: %+v", name, ch)
	}
}

// wentBack holds that a fault ended in the old version, and that the log, the row and the conversation have its reason.
func (w *swapped) wentBack(t *testing.T, c *client.Client, s *swapper, f fault) {
	t.Helper()
	reason := "the agent of " + f.group + " does not answer: " + f.why
	s.mu.Lock()
	told := s.count(func(o api.Sent) bool {
		return strings.HasPrefix(o.Text, "Rolled back to previous version — "+reason)
	})
	if told != 1 || s.count(tellsBack) != 1 || s.count(asksToConfirm) != 0 {
		t.Errorf("%s: not told once why it went back, for %q: %s", f.group, reason, s.all())
	}
	s.mu.Unlock()
	group := "groups/" + f.group
	subjects := strings.Split(strings.TrimSpace(git(t, w.home, "log", "-2", "--format=%s", "--", group)), "\n")
	if !strings.HasPrefix(subjects[0], "rollback chg-") || len(subjects) < 2 || !strings.HasPrefix(subjects[1], "swap chg-") {
		t.Errorf("the log of %s has %q", group, subjects)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(subjects[0], "rollback "), ":")
	d, err := client.Call(t.Context(), c, api.ChangeShow, id)
	if err != nil || d.Change.State != api.RolledBack || d.Change.Trial == nil || !d.Change.Trial.Restored || !strings.HasPrefix(d.Change.Trial.Reason, reason) {
		t.Errorf("%s is %+v, %+v, %v", id, d.Change, d.Change.Trial, err)
	}
}

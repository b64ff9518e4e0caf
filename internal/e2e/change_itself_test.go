package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// What a group's own file is changed to, where it stands, and who wishes it.
const (
	wish    = "/change append template/runner/prompts/system.md: " + greets
	greets  = "Greeting: Hello, {name}!"
	prompts = "groups/echo/runner/prompts/system.md"

	templates = "template/runner/prompts/system.md"
)

// swapper is a person's terminal, who has echo change itself and decides about that.
type swapper struct {
	*terminal
	word   string // that ends the trial: confirm or rollback; "" = nobody says any, and its time does
	shares bool   // what is kept, with the template
	alone  bool   // it says the word by itself, and whatever end it comes to is one
}

func newSwapper(word string) *swapper { return &swapper{terminal: newTerminal(), word: word} }

// count is how many of what was told holds; mu is held.
func (s *swapper) count(is func(api.Sent) bool) (n int) {
	for _, o := range s.outs {
		if is(o) {
			n++
		}
	}
	return n
}

// What a person is told on the way.
func asksToPromote(o api.Sent) bool { return o.Card == "promote" }
func asksToApprove(o api.Sent) bool { return o.Card == "approval" }

func asksToConfirm(o api.Sent) bool {
	return strings.HasPrefix(o.Text, "I'm back with the new version.")
}
func tellsApproved(o api.Sent) bool { return strings.Contains(o.Text, " approved chg-") }
func asksBack(o api.Sent) bool      { return strings.HasPrefix(o.Text, "Nothing is decided:") }
func tellsKept(o api.Sent) bool     { return strings.Contains(o.Text, " is landed and kept") }

func tellsPromoted(o api.Sent) bool { return strings.HasPrefix(o.Text, "The template has what chg-") }

func tellsBack(o api.Sent) bool {
	return strings.HasPrefix(o.Text, "Rolled back to previous version")
}

func (s *swapper) tellsEnd(o api.Sent) bool {
	return s.word == "confirm" && tellsKept(o) || s.word != "confirm" && tellsBack(o)
}

// endsAlone is of an end that a change may come to by itself where something else than its daemon was killed, or by a person's no.
func endsAlone(o api.Sent) bool {
	return tellsBack(o) || strings.Contains(o.Text, " has failed") || strings.Contains(o.Text, " refused chg-")
}

// tellsWrong is of an end that nobody has asked for.
func (s *swapper) tellsWrong(o api.Sent) bool {
	if o.Lane != api.LaneNotice || s.tellsEnd(o) || s.alone && endsAlone(o) {
		return false
	}
	return tellsKept(o) || tellsBack(o) || slices.ContainsFunc([]string{" has failed", " needs you", " refused ", " cancelled "}, func(words string) bool {
		return strings.Contains(o.Text, words)
	})
}

// says has the daemon take some words: what was said before is said again by the same name.
func (s *swapper) says(t *testing.T, c *client.Client, nonce, text string) bool {
	t.Helper()
	m, err := client.Call(t.Context(), c, api.ChatSay, api.Say{Group: s.group, Text: text, Nonce: nonce})
	if err != nil {
		if problem.KindOf(err) != problem.Unavailable {
			t.Errorf("told %q, the daemon said: %v", text, err)
		}
		return false
	}
	if was := s.accepted[nonce]; was != "" && was != m.ID {
		t.Errorf("%q was accepted as %s, and again as %s", text, was, m.ID)
	}
	s.accepted[nonce] = m.ID
	return true
}

// until waits for something to be told; false if the daemon went away, or told of another end.
func (s *swapper) until(t *testing.T, what string, is func(api.Sent) bool) bool {
	t.Helper()
	await(t, what, s.sees(func(*terminal) bool { return s.count(is)+s.count(s.tellsWrong) > 0 }))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count(s.tellsWrong) > 0 {
		t.Fatalf("while it waited for %s, the person was told %s", what, s.all())
	}
	return s.count(is) > 0
}

// all is what was told, a line each; mu is held.
func (s *swapper) all() string {
	var b strings.Builder
	for _, o := range s.outs {
		fmt.Fprintf(&b, "\n%s: %q", o.Lane, o.Text)
	}
	return b.String()
}

// line is told when the group has said it.
func line(text string) func(api.Sent) bool {
	return func(o api.Sent) bool {
		return o.Lane == api.LaneTalk && slices.Contains(strings.Split(o.Text, "\n"), text)
	}
}

// reply is what the person says to what waits for their word; "" if that does not.
func (s *swapper) reply(o api.Sent) string {
	again := meaning.FindStringSubmatch(o.Text)
	switch {
	case asksToApprove(o):
		return "1"
	case asksBack(o) && again != nil:
		return again[1]
	case asksToPromote(o) && s.shares:
		return "Apply to template" // 1 could mean the card before it
	case asksToConfirm(o) && s.alone:
		return s.word
	}
	return ""
}

// meaning are the words that somebody who is asked back may say.
var meaning = regexp.MustCompile("`([^`]+)` (?:approves chg-|answers: )")

// replies are all of them, in the order in which they are asked for; mu is held.
func (s *swapper) replies() (all []string) {
	for _, o := range s.outs {
		if words := s.reply(o); words != "" {
			all = append(all, words)
		}
	}
	return all
}

// decides says what is asked for, each once, until something is told: a landing that had hardly begun is rolled back, and a person asked
// again. It returns false when the daemon went away.
func (s *swapper) decides(t *testing.T, c *client.Client, what string, done func(api.Sent) bool) bool {
	t.Helper()
	for said := 0; ; {
		if !s.until(t, what, func(o api.Sent) bool { return done(o) || len(s.replies()) > said }) {
			return false
		}
		s.mu.Lock()
		over, all := s.count(done) > 0, s.replies()
		s.mu.Unlock()
		if over {
			return true
		}
		for ; said < len(all); said++ {
			if !s.says(t, c, fmt.Sprint(s.group, "-reply-", said), all[said]) {
				return false
			}
		}
	}
}

// leg is a part of the way of a change, by its end.
type leg int

const (
	askedAbout leg = iota // a person has its card
	onTrial               // a person has message 1
	over
	promoted // the template has it, too
)

// live has echo changed, from the first word until a leg. It returns false when the daemon went away.
func (s *swapper) live(t *testing.T, c *client.Client, until leg) bool {
	t.Helper()
	stop := s.watch(t, c)
	defer stop()
	await(t, "the chat to be shown", s.sees(func(n *terminal) bool { return n.ready }))
	steps := [][]func() bool{
		askedAbout: {
			func() bool { return s.says(t, c, "wish", wish) },
			func() bool { return s.says(t, c, "one", "one") },
			func() bool { return s.until(t, "the card", asksToApprove) },
			func() bool { return s.until(t, "an answer to one", line("one")) },
		},
		onTrial: {
			func() bool { return s.decides(t, c, "the approval", tellsApproved) },
			func() bool { return s.says(t, c, "two", "two") },
			func() bool { return s.decides(t, c, "message 1", asksToConfirm) },
		},
		over: {
			func() bool { return s.word == "" || s.says(t, c, "word", s.word) },
			func() bool { return s.says(t, c, "three", "three") },
			func() bool { return s.until(t, "the end of the change", s.tellsEnd) },
			func() bool { return s.until(t, "an answer to three", line("three")) },
			func() bool { return s.says(t, c, "four", "four") },
			func() bool { return s.until(t, "an answer to four", line("four")) },
		},
		promoted: {
			func() bool { return s.decides(t, c, "the end of the promotion", tellsPromoted) },
			func() bool { return s.says(t, c, "five", "five") },
			func() bool { return s.until(t, "an answer to five", line("five")) },
		},
	}
	s.shares = until == promoted
	if until == onTrial { // who kills the daemon there leaves nothing half answered
		steps[onTrial] = append(steps[onTrial], func() bool { return s.until(t, "an answer to two", line("two")) })
	}
	for _, step := range slices.Concat(steps[:until+1]...) {
		if !step() {
			return false
		}
	}
	return true
}

// swapped is a world whose home is what changes.
type swapped struct {
	*tried
	first swapPicture
}

// swapPicture is what a group is, as its home's repository has it.
type swapPicture struct{ head, tree string }

func newSwapped(t *testing.T) *swapped {
	t.Helper()
	w := &swapped{tried: &tried{world: newSilence(t)}}
	w.first = w.home1(t)
	return w
}

// home1 looks at the home's branch; no file of a group differs from it.
func (w *swapped) home1(t *testing.T) swapPicture {
	t.Helper()
	if status := git(t, w.home, "status", "--porcelain"); status != "" {
		t.Errorf("the home's files differ from its branch:\n%s", status)
	}
	if refs := git(t, w.home, "for-each-ref", "refs/sallyport/"); refs != "" {
		t.Errorf("the home's repository has %q", refs)
	}
	sound(t, filepath.Join(w.home, ".git"))
	return swapPicture{strings.TrimSpace(git(t, w.home, "rev-parse", "HEAD")), strings.TrimSpace(git(t, w.home, "rev-parse", "HEAD^{tree}"))}
}

// judge wants all that was said answered once, all that was decided told once, and the files of group and template old or new as the changes
// say.
func (w *swapped) judge(t *testing.T, c *client.Client, s *swapper, at leg) {
	t.Helper()
	ch, cards := w.changed(t, c, at)
	now := w.home1(t)
	commits := strings.TrimSpace(git(t, w.home, "rev-list", "--count", w.first.head+".."+now.head))
	differs := strings.Fields(git(t, w.home, "diff", "--name-only", w.first.head, "HEAD"))
	want, landed := git(t, w.home, "show", w.first.head+":"+prompts)+greets+"\n", []string{prompts}
	switch {
	case at == askedAbout:
		if ch.State != api.AwaitingApproval || now != w.first {
			t.Errorf("%s is %s: %s; the branch names %s, not %s", ch.ID, ch.State, ch.Reason, now, w.first)
		}
	case s.word == "confirm" && ch.State == api.Finalized:
		if at == promoted {
			landed = append(landed, templates)
		}
		if commits != strconv.Itoa(len(landed)) || !slices.Equal(differs, landed) {
			t.Errorf("%s is %s: %s; %s commits changed %q", ch.ID, ch.State, ch.Reason, commits, differs)
		}
		for _, path := range landed {
			if text := git(t, w.home, "show", "HEAD:"+path); text != want {
				t.Errorf("%s is %q", path, text)
			}
		}
	case ch.State == api.RolledBack && (s.word != "confirm" || s.alone):
		if commits != "2" || now.tree != w.first.tree {
			t.Errorf("%s is %s: %s; after %s commits %q differs", ch.ID, ch.State, ch.Reason, commits, differs)
		}
	case ch.State == api.Failed && s.alone:
		if now != w.first {
			t.Errorf("%s is %s: %s; the branch names %s, not %s", ch.ID, ch.State, ch.Reason, now, w.first)
		}
	default:
		t.Errorf("%s is %s: %s; the word was %q", ch.ID, ch.State, ch.Reason, s.word)
	}
	if !s.alone {
		s.toldOnce(t, at, cards)
	}
	w.heard(t, c, s)
	w.keptItsWord(t, c)
}

// keptItsWord holds what is true of every home, of changes of the home itself.
func (w *swapped) keptItsWord(t *testing.T, c *client.Client) {
	t.Helper()
	repo := w.repo
	w.repo = w.home
	w.truthful(t, c)
	w.repo = repo
}

// changed is the group's change, once it is at rest, and how many cards there were on the way to a leg, those of its promotion among them.
func (w *swapped) changed(t *testing.T, c *client.Client, at leg) (swap api.Change, cards int) {
	t.Helper()
	changes, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
	if want := map[bool]int{false: 1, true: 2}[at == promoted]; err != nil || len(changes) != want {
		t.Fatalf("there are the changes %+v, %v", changes, err)
	}
	for _, ch := range changes {
		d, err := client.Call(t.Context(), c, api.ChangeShow, rest(t, c, ch.ID, nil).ID)
		switch {
		case err != nil:
			t.Fatal(err)
		case ch.Kind == "swap":
			swap = d.Change
		case d.Change.State != api.Finalized:
			t.Errorf("the promotion %s is %s: %s", ch.ID, d.Change.State, d.Change.Reason)
		default:
			cards-- // whoever has it promoted has said yes to the first
		}
		if d.Proposal != nil {
			cards += d.Proposal.Number
		}
	}
	return swap, cards
}

// toldOnce holds that a person has each of so many cards, each notice and each answer once, and which version the last answer came from.
func (s *swapper) toldOnce(t *testing.T, at leg, cards int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	once := map[string]func(api.Sent) bool{"an answer to one": line("one")}
	if at >= over {
		maps.Copy(once, map[string]func(api.Sent) bool{
			"message 1": asksToConfirm, "the end": s.tellsEnd, "an answer to two": line("two"), "an answer to three": line("three"), "an answer to four": line("four"),
		})
	}
	if at == promoted {
		once["the end of the promotion"], once["an answer to five"] = tellsPromoted, line("five")
	}
	if n := s.count(asksToPromote); at >= over && (n == 1) != (s.word == "confirm") || n > 1 {
		t.Errorf("whether the template is to have it was asked %d times: %s", n, s.all())
	}
	if n, yes := s.count(asksToApprove), s.count(tellsApproved); n != cards || at >= over && yes != n || cards > 2 || cards == 1 && s.count(asksBack) > 0 {
		t.Errorf("of %d cards %d were told, and %d approvals: %s", cards, n, yes, s.all())
	}
	for what, is := range once {
		if n := s.count(is); n != 1 {
			t.Errorf("%s was told %d times: %s", what, n, s.all())
		}
	}
	for _, o := range s.outs {
		if greeted := strings.HasPrefix(o.Text, "Hello, "); line("four")(o) && greeted != (s.word == "confirm") || line("one")(o) && greeted {
			t.Errorf("the group answered %q; the trial's word is %s", o.Text, s.word)
		}
	}
}

// heard holds that every message was kept once and answered, and that the group was told nothing twice.
func (w *swapped) heard(t *testing.T, c *client.Client, s *swapper) {
	t.Helper()
	all, err := client.Call(t.Context(), c, api.MessageList, api.Messages{Group: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	kept, told := map[string]bool{}, map[string]bool{}
	for _, m := range all {
		kept[m.ID] = true
		if m.Kind == "system" { // the host tells the group, too
			if told[m.Chat+m.Text] { // what has failed is told to the dev agent, in a chat of its own, too
				t.Errorf("the group was told again: %s", m.Text)
			}
			told[m.Chat+m.Text] = true
			continue
		}
		if s.alone && m.Agent {
			continue // an agent that is no more may still be told something by the other
		}
		if m.Status != api.MessageCompleted && m.Status != api.MessageFolded || m.Tries > 1 {
			t.Errorf("the message %+v", m)
		}
		own := slices.Contains(slices.Collect(maps.Values(s.accepted)), m.ID)
		if !own && !strings.HasPrefix(m.Sender, "dev-") {
			t.Errorf("nobody has said %+v", m)
		}
	}
	for nonce, id := range s.accepted {
		if !kept[id] {
			t.Errorf("the message %s, %s, is lost", nonce, id)
		}
	}
}

// swapLoop kills a daemon before and after each operation of a part of a change.
type swapLoop struct {
	start string // saved state
	from  string // the first operation of this name, and the one before it; "" = all
	until leg    // at which the part ends
	word  string
	said  *swapper // what had been said in the saved state; nil: nothing
	ready func()   // makes the restored state fit for a daemon; nil: it is
	oneIn int      // so many points the ordinary run takes one. It is odd, so that both sides have their turn
}

// again is the person of a saved state.
func (l swapLoop) again() *swapper {
	s := newSwapper(l.word)
	if l.said != nil {
		s.accepted = maps.Clone(l.said.accepted)
	}
	return s
}

// once runs one daemon to its death while a group changes itself, or to the end of the part if there is no such operation.
func (w *swapped) once(t *testing.T, l swapLoop, where string, s *swapper) (names []string, killed bool) {
	t.Helper()
	w.restore(t, l.start)
	if l.ready != nil {
		l.ready()
	}
	log := filepath.Join(w.dir, "names")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := w.doom(t, where, log)
	if c := d.client(t, w.place); c != nil {
		if s.live(t, c, l.until) {
			_ = client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}) // dead already is as good
		}
	}
	d.end(t, w.place)
	w.noKeeper(t, d)
	return operations(t, log), d.killed()
}

func (w *swapped) everywhere(t *testing.T, l swapLoop, musts ...string) {
	whole, killed := w.once(t, l, "1000000:before", l.again())
	from := 0
	if l.from != "" {
		from = disktest.Index(whole, l.from) - 1
	}
	if killed || from < 0 {
		t.Fatalf("a whole part has the operations %q\n%s", whole, w.said())
	}
	for _, must := range musts {
		if !slices.ContainsFunc(whole[from:], func(op string) bool { return strings.Contains(op, must) }) { // a commit may have the verbs of several
			t.Errorf("the part has no operation %s: %q", must, whole[from:])
		}
	}
	var points []point
	for _, n := range disktest.Points(t, whole[from:]) {
		points = append(points, point{from + n, "before"}, point{from + n, "after"})
	}
	points = disktest.Sample(t, points, l.oneIn)

	reached, deaths, failures := map[string]int{}, 0, 0
	for _, p := range points {
		ok := t.Run(fmt.Sprintf("%s_%d", p.when, p.at), func(t *testing.T) {
			defer func() {
				if t.Failed() { // a daemon that went on would spoil the next point
					t.Logf("the daemons said %s", w.said())
					killAll(t)
				}
			}()
			var s *swapper
			names, killed := p.die(func(where string) ([]string, bool) {
				s = l.again()
				return w.once(t, l, where, s)
			})
			if !killed {
				return
			}
			deaths++
			reached[names[p.at]]++
			t.Logf("killed %s %s, with %d accepted", p.when, names[p.at], len(s.accepted))
			w.goesOnChanging(t, s, l.until)
		})
		if !ok {
			failures++
		}
		if failures == failuresMax {
			return
		}
	}
	t.Logf("%d operations in the part, %d points, %d deaths at %d names: %q", len(whole)-from, len(points), deaths, len(reached), slices.Sorted(maps.Keys(reached)))
	if 2*deaths < len(points) {
		t.Errorf("it died at %d of %d points only", deaths, len(points))
	}
}

// goesOnChanging starts a daemon after one that died, and wants the change brought to a leg.
func (w *swapped) goesOnChanging(t *testing.T, s *swapper, until leg) {
	t.Helper()
	c, seen := w.start(t), slices.Clone(s.outs)
	s.outs = nil // it is told all again
	if !s.live(t, c, until) {
		t.Fatalf("the daemon after it went away, too: %s", w.said())
	}
	for _, o := range seen { // what was said before is told by its time, and not as it came
		if !slices.ContainsFunc(s.outs, func(now api.Sent) bool { return now.ID == o.ID && now.Text == o.Text && now.At.Equal(o.At) }) {
			t.Errorf("what was told before is told no more: %+v, and now %s", o, s.all())
		}
	}
	w.judge(t, c, s, until)
	w.stopUnwatched(t, c)
	w.leftNothing(t)
	w.leftNoSocket(t)
}

// leftNoSocket holds that no way into a sandbox is left. No daemon runs.
func (w *swapped) leftNoSocket(t *testing.T) {
	t.Helper()
	for _, root := range []string{w.home, os.Getenv("XDG_RUNTIME_DIR")} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type() == fs.ModeSocket {
				t.Errorf("a socket is left: %s", path)
			}
			return nil
		})
	}
}

// toAsked has echo propose its change; no daemon runs afterwards.
func (w *swapped) toAsked(t *testing.T) *swapper {
	t.Helper()
	w.restore(t, "silent")
	c, s := w.start(t), newSwapper("confirm")
	if !s.live(t, c, askedAbout) {
		t.Fatalf("the daemon went away: %s", w.said())
	}
	changes, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
	if err != nil || len(changes) != 1 {
		t.Fatalf("%+v, %v", changes, err)
	}
	w.change = changes[0].ID
	w.stop(t, c)
	w.save(t, "asked")
	return s
}

// toKept has echo keep what it proposed, and nobody say whether the template is to have it; no daemon runs afterwards.
func (w *swapped) toKept(t *testing.T, said *swapper) *swapper {
	t.Helper()
	w.restore(t, "asked")
	c, s := w.start(t), swapLoop{said: said, word: "confirm"}.again()
	if !s.live(t, c, over) {
		t.Fatalf("the daemon went away: %s", w.said())
	}
	w.stop(t, c)
	w.save(t, "kept")
	return s
}

// toTrial has echo run what it proposed, on trial; its daemon and keeper have died.
func (w *swapped) toTrial(t *testing.T, said *swapper) *swapper {
	t.Helper()
	w.restore(t, "asked")
	d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
	c, s := d.client(t, w.place), swapLoop{said: said}.again()
	if c == nil || !s.live(t, c, onTrial) {
		t.Fatalf("the daemon went away: %s", w.said())
	}
	await(t, "the delivery of message 1 to be known", func() (bool, error) { // else the next daemon delivers it, and gives the whole time anew
		at, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
		return err == nil && at.Change.Trial != nil && at.Change.Trial.Delivered != nil, err
	})
	if w.killBoth(t, d) == 0 {
		t.Error("no keeper watches the trial")
	}
	w.save(t, "tried")
	return s
}

// TestADaemonThatDiesWhileAGroupChangesItselfLeavesOldOrNew is law 4 from request_dev_changes to each end of the trial.
func TestADaemonThatDiesWhileAGroupChangesItselfLeavesOldOrNew(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newSwapped(t)
	t.Run("from the wish to the card", func(t *testing.T) {
		w.everywhere(t, swapLoop{start: "silent", from: "db:add-intake", until: askedAbout, oneIn: 201},
			"requested", "prepared", "request_swap", "proposed")
	})
	said := w.toAsked(t)
	t.Run("from the approval to the end", func(t *testing.T) {
		w.everywhere(t, swapLoop{start: "asked", from: "db:add-intake", until: over, word: "confirm", said: said, oneIn: 201},
			"approved", "ref:update", "tried", "asked_to_confirm", "confirmed")
	})
	t.Run("from the question to the template", func(t *testing.T) {
		kept := w.toKept(t, said)
		w.everywhere(t, swapLoop{start: "kept", from: "db:add-intake", until: promoted, word: "confirm", said: kept, oneIn: 151},
			"answered", "requested", "ref:update", "tree:replace", "landed")
	})
	said = w.toTrial(t, said)
	t.Run("rolled back", func(t *testing.T) {
		w.everywhere(t, swapLoop{start: "tried", until: over, word: "rollback", said: said, ready: func() { w.afresh(t, "", time.Minute) }, oneIn: 201},
			"rollback_decided", "tree:replace", "restored_the_old_files", "rolled_back")
	})
	t.Run("with nobody there", func(t *testing.T) { w.unattended(t, said) })
}

// unattended is SM-924 of a group: with nobody there, it runs its old files again by the deadline, whoever was killed.
func (w *swapped) unattended(t *testing.T, said *swapper) {
	for _, x := range disktest.Sample(t, deaths, 3) {
		t.Run(x.name, func(t *testing.T) {
			c := x.dies(t, w.tried, func(length time.Duration) (*doomed, time.Time) {
				w.restore(t, "tried")
				expires := time.Now().Add(length)
				w.afresh(t, "", time.Until(expires))
				d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
				await(t, "the keeper to be armed", func() (bool, error) {
					return len(w.keepers()) > 0 || d.gone() || time.Now().After(expires), nil
				})
				return d, expires
			})
			s := swapLoop{said: said}.again()
			if !s.live(t, c, over) {
				t.Fatalf("the daemon after it went away, too: %s", w.said())
			}
			w.judge(t, c, s, over)
			at, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
			if err != nil || at.Change.Trial.Reason != "nobody confirmed it in time" {
				t.Fatalf("%+v, %v", at.Change.Trial, err)
			}
			for _, o := range s.outs {
				if took := o.At.Sub(at.Change.Trial.Expires); tellsBack(o) && took > lateMax {
					t.Errorf("it was back %s after its deadline", took)
				}
			}
			w.stop(t, c)
			w.leftNothing(t)
		})
	}
}

// TestADevAgentThatIsKilledBeginsAgainAndProposesOnce kills all that runs in its sandbox, from outside.
func TestADevAgentThatIsKilledBeginsAgainAndProposesOnce(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newSwapped(t)
	c, s := w.start(t), newSwapper("confirm")
	for tries := 1; !w.killDevAgent(t, c, s); tries++ {
		if w.stop(t, c); tries == 10 {
			t.Fatal("each dev agent had proposed before it could be killed")
		}
		w.restore(t, "silent")
		c, s = w.start(t), newSwapper("confirm")
	}
	if !s.live(t, c, askedAbout) {
		t.Fatalf("the daemon went away: %s", w.said())
	}
	w.judge(t, c, s, askedAbout)
	w.stop(t, c)
	w.leftNothing(t)
}

// killDevAgent wishes for a change and kills the dev agent that works on it; false if it had proposed by then.
func (w *swapped) killDevAgent(t *testing.T, c *client.Client, s *swapper) (killed bool) {
	t.Helper()
	if !s.says(t, c, "wish", wish) {
		t.Fatal(w.said())
	}
	await(t, "the sandbox of the dev agent to die", func() (bool, error) {
		changes, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
		if err != nil || len(changes) == 0 {
			return false, err
		}
		d, err := client.Call(t.Context(), c, api.ChangeShow, changes[0].ID)
		if err != nil || len(d.Sessions) == 0 {
			return false, err
		}
		if d.Sessions[0].Ended != nil {
			return true, nil
		}
		// The outermost, with which all others die: of a program that is killed alone its host hears how it ended, and that is its end.
		outer := outermost(inside(d.Sessions[0].ID))
		killed = len(outer) > 0 && unix.Kill(outer[0], unix.SIGKILL) == nil
		return killed, nil
	})
	return killed
}

// outermost are the processes that none of the others has begun; their numbers do not tell, as they begin again from the first some time.
func outermost(pids []int) (outer []int) {
	for _, pid := range pids {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // of a process that has ended: nothing
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && !slices.ContainsFunc(pids, func(p int) bool { return strconv.Itoa(p) == fields[1] }) {
			outer = append(outer, pid)
		}
	}
	return outer
}

// inside are the processes of a session's sandbox, or of all those of a home, by the name of their control group.
func inside(name string) (pids []int) {
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range groups {
		raw, _ := os.ReadFile(file) // of a process that has ended: nothing
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && strings.Contains(string(raw), name) {
			pids = append(pids, pid)
		}
	}
	return pids
}

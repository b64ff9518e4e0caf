package proposal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/inert"
	"sallyport/internal/rule/right"
)

// How a diff is said in a conversation (SM-089).
const (
	ChunkRunesMax  = 1800
	ChunksMax      = 5
	SpokenBytesMax = ChunkRunesMax*ChunksMax*utf8.UTFMax + 1 // of a diff that is worth reading for it
	filesSpoken    = 20
	marksSpoken    = 100
)

// Spoken is a diff as a conversation shows it.
type Spoken struct {
	Diff   []string `json:"diff"`             // inert, in pieces
	Longer bool     `json:"longer"`           // and there is more of it
	Hidden int      `json:"hidden,omitempty"` // lines that are added and not shown as they are: something in them looks like a secret
}

// Speak returns a diff in pieces, cut at lines where that is possible; longer says that there is more of it than was read.
func Speak(diff string, longer bool) *Spoken {
	s := Spoken{Diff: []string{}, Longer: longer}
	for rest := inert.Block(diff, len(diff)); rest != ""; {
		if len(s.Diff) == ChunksMax {
			s.Longer = true
			break
		}
		piece := head(rest)
		s.Diff, rest = append(s.Diff, strings.TrimSuffix(piece, "\n")), rest[len(piece):]
		if rest != "" && !strings.HasSuffix(piece, "\n") {
			rest = inert.Onward + rest
		}
	}
	return &s
}

// head is the first piece of a text: as many whole lines as it may have, or as much of one that is longer.
func head(text string) string {
	n := 0
	for at := range text {
		if n++; n > ChunkRunesMax {
			if line := strings.LastIndexByte(text[:at], '\n'); line > 0 {
				return text[:line+1]
			}
			return text[:at]
		}
	}
	return text
}

// ForHost reports whether more changes than what one group runs, and a yes has to be typed out (SM-082 to SM-084).
func (c Card) ForHost() bool { return c.Class != string(right.Group) }

// Coded reports whether it is confirmed with a code once it has landed: it changes what the host runs by (SM-923).
func (c Card) Coded() bool {
	return c.Host != nil || c.Class == string(right.Host) || c.Class == string(right.Combined)
}

// Unspoken says why a conversation cannot show all that a card is about; "" if it can. Then a yes is not taken there (SM-909).
func (c Card) Unspoken() string {
	switch {
	case c.uncounted():
		return fmt.Sprintf("its lines were not counted, as that takes more than %s or 1 GiB of memory", CountMax)
	case c.Spoken == nil:
		return "its diff is not shown here"
	case c.Spoken.Longer:
		return fmt.Sprintf("its diff is longer than the %d characters that are shown here", ChunkRunesMax*ChunksMax)
	case c.Spoken.Hidden > 0:
		return c.Spoken.HiddenSays()
	case c.MarksTotal > min(len(c.Marks), marksSpoken):
		return fmt.Sprintf("it has %d marks, and %d are shown here", c.MarksTotal, min(len(c.Marks), marksSpoken))
	}
	if c.FilesTotal > len(c.Files) {
		return fmt.Sprintf("it changes %d files, and %d are looked at here", c.FilesTotal, len(c.Files))
	}
	for _, f := range c.Files {
		if f.Binary {
			return "no text shows what changes in " + inert.Path(f.Path)
		}
	}
	return ""
}

// HiddenSays says how much of a diff is not shown because it looks like a secret; "" if all is.
func (s Spoken) HiddenSays() string {
	if s.Hidden == 0 {
		return ""
	}
	return fmt.Sprintf("what looks like a secret is not shown, in %d of the lines that it adds or the names that it gives", s.Hidden)
}

// uncounted reports whether counting its lines took too long.
func (c Card) uncounted() bool { return len(c.Files) > 0 && c.Files[0].Uncounted }

// Tell returns a card as the messages of a conversation: what it is about, the diff, and what is asked, which is the last (SM-081,
// SM-089). All of it is computed; what an agent says is quoted and said to be its own (SM-908).
func (p Proposal) Tell(group string) (about string, diff []string, question string) {
	c := p.Card
	t := &telling{}
	t.line("%s  %s", p.Change, inert.Line(c.Title))
	for _, banner := range c.Banner {
		t.line("%s", inert.Line(banner))
	}
	if c.Class == string(right.Group) {
		t.line("It changes what the group %s runs, and nothing else.", group)
	}
	t.said("the group's agent asks, in its own words, which nobody checked:", c.Wish)
	t.said("the agent says, in its own words, which nobody checked:", c.AgentSays)
	t.files(c)
	t.list("what it gains or loses:", c.Reach, "! ")
	marks := make([]string, min(len(c.Marks), marksSpoken))
	for i, m := range c.Marks[:len(marks)] {
		marks[i] = inert.Path(m.Path) + ": " + inert.Line(m.Says)
	}
	t.list("marked, and your yes covers it:", marks, "! ")
	t.checks(c)
	t.host(c.Host)
	t.moved(c)
	t.list("why it cannot land as it stands:", c.Drift, "! ")
	t.list("on the network:", c.Network, "! ")
	t.list("once it has landed:", append(c.Then[:len(c.Then):len(c.Then)], after(c, group)...), "! ")
	t.commit(c)
	if c.Note != "" {
		t.line("note: %s", inert.Line(c.Note))
	}
	return strings.TrimSuffix(t.String(), "\n"), p.pieces(), p.Ask(c.Unspoken())
}

// telling is a card's text as it grows.
type telling struct{ strings.Builder }

func (t *telling) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *telling) list(title string, lines []string, mark string) {
	if len(lines) == 0 {
		return
	}
	t.line("%s", title)
	for _, l := range lines {
		t.line("  %s%s", mark, inert.Line(l))
	}
}

// said quotes an agent, and says before that whose words they are.
func (t *telling) said(whose, words string) {
	if words == "" {
		return
	}
	t.line("%s", whose)
	quote(t, words)
}

// commit tells what the commit says first. Whose it is has an address, which is no matter of everybody's in a conversation.
func (t *telling) commit(c Card) {
	if c.Subject == "" {
		return
	}
	as := "it lands as:"
	if c.Wish != "" {
		as = "it lands as, in the agent's words:"
	}
	t.said(as, c.Subject)
}

// quote writes words so that none of their lines can be taken for the host's.
func quote(t *telling, words string) {
	for l := range strings.SplitSeq(inert.Block(words, len(words)), "\n") {
		t.line("  > %s", l)
	}
}

// files names what is changed.
func (t *telling) files(c Card) {
	files := "files"
	if c.FilesTotal == 1 {
		files = "file"
	}
	if c.FilesTotal == 0 {
		t.line("no file changes")
		return
	}
	if c.uncounted() {
		t.line("%d %s, lines not counted: that takes more than %s or 1 GiB of memory", c.FilesTotal, files, CountMax)
	} else {
		t.line("%d %s, +%d -%d", c.FilesTotal, files, c.Added, c.Removed)
	}
	for i, f := range c.Files {
		if i == filesSpoken {
			t.line("  … and %d more, which the diff names", c.FilesTotal-filesSpoken)
			break
		}
		name := inert.Path(f.Path)
		if f.From != "" {
			name = inert.Path(f.From) + " => " + name
		}
		lines := fmt.Sprintf("+%d -%d", f.Added, f.Removed)
		switch {
		case f.Binary:
			lines = "binary"
		case f.Uncounted:
			lines = "lines not counted"
		}
		note := ""
		if f.Note != "" {
			note = ", " + inert.Line(f.Note)
		}
		t.line("  %s %s (%s%s)", f.Status, name, lines, note)
	}
}

func (t *telling) checks(c Card) {
	for _, r := range c.Checks {
		if r.OK {
			t.line("check passed: %s (%s)", inert.Line(r.Command), r.Took.Round(time.Millisecond))
		} else {
			t.line("check FAILED: %s: %s", inert.Line(r.Command), inert.Line(r.Why))
		}
	}
}

// host says how a change of the host was rehearsed, and what that cannot show (SM-913).
func (t *telling) host(h *Host) {
	if h == nil {
		return
	}
	if runs := h.Runs(); runs != "" {
		t.line("once it has landed, %s", runs)
	}
	t.list(fmt.Sprintf("rehearsed on a copy of the state without anybody's words (%s):", h.Took.Round(time.Second)), h.Rehearsed, "")
	t.list("what a rehearsal does not show:", h.Not, "! ")
}

// after is what becomes of work under way, and what a rollback leaves.
func after(c Card, group string) []string {
	if c.ForHost() {
		return nil
	}
	return []string{
		fmt.Sprintf("turns of %s that are under way end first; then its sessions begin anew on the new version", group),
		fmt.Sprintf("a rollback brings the files back, and not what %s has written into its memory meanwhile", group),
	}
}

// pieces are the diff, each piece with what it is.
func (p Proposal) pieces() (all []string) {
	if p.Card.Spoken == nil {
		return nil
	}
	for i, piece := range p.Card.Spoken.Diff {
		title := fmt.Sprintf("diff of %s, %d of %d", p.Change, i+1, len(p.Card.Spoken.Diff))
		if p.Card.Spoken.Longer {
			title += " that are shown; there is more of it"
		}
		all = append(all, title+"\n"+piece)
	}
	return all
}

// several says that one yes is not enough.
func (c Card) several() string {
	switch {
	case c.People < 2:
		return ""
	case c.ForHost():
		return fmt.Sprintf(" %d people have to approve it, the owner among them.", c.People)
	}
	return fmt.Sprintf(" %d people have to approve it.", c.People)
}

// thought says that a yes does not count at once.
func (c Card) thought() string {
	if c.Think == 0 {
		return ""
	}
	return fmt.Sprintf(" Read it first: a yes counts once this card is %s old.", c.Think)
}

// Ask is what is asked, and how it is answered; why says why a yes is not taken in the conversation, "" = it is.
func (p Proposal) Ask(why string) string {
	by, first := "sallyport approve "+string(p.Change), ""
	if p.Card.Reworks {
		first = "\nTo have it changed first, reply `change: …` with what is to be different."
	}
	switch {
	case why != "":
		return fmt.Sprintf("May %s land?%s It cannot be approved here: %s.\nTo read all of it, at a command line of this machine: sallyport change diff %s\nTo approve it: %s\nTo refuse it, reply `refuse`.%s", p.Change, p.Card.several(), why, p.Change, by, first)
	case p.Card.ForHost():
		return fmt.Sprintf("May %s land?%s%s To approve it, type CONFIRM HOST. To refuse it, reply `refuse`.%s", p.Change,
			p.Card.several(), p.Card.thought(), first)
	}
	return fmt.Sprintf("May %s land?%s\n1. approve\n2. refuse%s", p.Change, p.Card.several(), first)
}

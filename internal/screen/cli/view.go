package cli

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// jsonView writes every notice as a line.
type jsonView struct{ *app }

func (v *jsonView) show(n api.Notice)    { v.line(event{Event: "notice", Notice: &n}) }
func (v *jsonView) tick(time.Time)       {}
func (v *jsonView) key(byte)             {}
func (v *jsonView) question(string)      {}
func (v *jsonView) answered()            {}
func (v *jsonView) trial(*trialQuestion) {}
func (v *jsonView) close()               {}

// plainView writes lines; for logs, pipes and scripts.
type plainView struct {
	*app
	change string
	output bool
}

func (v *plainView) show(n api.Notice) {
	s := v.sheet(v.Err)
	if n.Kind == api.NoticeOutput {
		if v.output {
			s.quote(n.Text)
		}
		return
	}
	if usual(n) && !v.output {
		return
	}
	for _, l := range noticeLines(v.app, s, n) {
		s.line("%s %s", v.change, l)
	}
}

// whole gives a line of output its end.
func whole(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func (v *plainView) tick(time.Time)       {}
func (v *plainView) key(byte)             {}
func (v *plainView) question(string)      {}
func (v *plainView) answered()            {}
func (v *plainView) trial(*trialQuestion) {}

func (v *plainView) close() {}

// noticeLines says a notice in lines that stay; progress says nothing.
func noticeLines(a *app, s sheet, n api.Notice) []string {
	s.width -= len(n.Change) + 1 // which stands before each
	switch n.Kind {
	case api.NoticeState:
		l := s.state(n.State)
		// Why it rests where it rests is the outcome's to say, once.
		lines := []string{l}
		if n.Text != "" && !api.Final(n.State) && n.State != api.AwaitingApproval {
			lines = s.told(l+": ", len(n.State)+2, n.Text)
		}
		if n.State == api.Paused || n.State == api.Blocked {
			lines = append(lines, "next: "+inert.Line(a.command("sallyport change resume "+n.Change)))
		}
		return lines
	case api.NoticeCheckpoint:
		if n.Checkpoint != nil {
			var b strings.Builder
			s.w = &b
			printVerdict(s, *n.Checkpoint)
			printViolations(s, *n.Checkpoint, noticeViolations)
			if n.Text != "" {
				s.rows("  ", "  ", inert.Line(n.Text))
			}
			return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
		}
	case api.NoticeSetup:
		return []string{"setting up: " + inert.Line(n.Text)}
	case api.NoticeEgress:
		if n.Asked != nil {
			var b strings.Builder
			s.w = &b
			printReached(s, *n.Asked)
			return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
		}
	case api.NoticeRound, api.NoticeEvent:
		return s.told("", 0, n.Text)
	case api.NoticeProgress, api.NoticeOutput, api.NoticeEnd:
	default:
		if n.Text != "" {
			return s.told(n.Kind+": ", len(n.Kind)+2, n.Text)
		}
	}
	return nil
}

// told is a text behind its prefix, which is so wide, as the lines that it takes.
func (s sheet) told(prefix string, wide int, text string) []string {
	var b strings.Builder
	s.w = &b
	s.hung(prefix, strings.Repeat(" ", wide), inert.Line(text))
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// noticeViolations bounds what a live view says of one checkpoint's violations.
const noticeViolations = 5

const (
	keptBytes   = 8 << 10 // of the agent's output, shown when it is asked for
	spinnerBeat = 120 * time.Millisecond
)

// liveView keeps one line at the bottom that says how it stands; what happened stays above it.
type liveView struct {
	*app
	sheet
	change   string
	state    string
	since    time.Time
	progress *api.Progress
	passed   string // the last checkpoint that was valid, in the line at the bottom
	output   bool
	kept     []byte // last output, raw
	gone     int64  // bytes of it before kept
	unseen   int64  // bytes that came while a question was on the screen
	asking   bool
	asks     *trialQuestion // of a trial; it stands in the line at the bottom
	drawn    bool
}

func newLiveView(a *app, change string, output bool) *liveView {
	return &liveView{app: a, sheet: a.sheet(a.Err), change: change, output: output, since: time.Now()}
}

func (v *liveView) show(n api.Notice) {
	switch n.Kind {
	case api.NoticeProgress:
		v.progress = n.Progress
	case api.NoticeOutput:
		v.hear(whole(n.Text))
	case api.NoticeState:
		if n.State != v.state {
			v.state, v.since = n.State, time.Now()
		}
		if n.State != api.Working {
			v.progress, v.passed = nil, ""
		}
	case api.NoticeCheckpoint:
		if v.inPlace(n) {
			return
		}
	}
	if n.Kind == api.NoticeOutput || usual(n) && !v.output {
		return
	}
	v.clear()
	for _, l := range noticeLines(v.app, v.sheet, n) {
		v.sheet.line("%s %s", v.change, l)
	}
	v.draw(time.Now())
}

// inPlace shows a checkpoint that is valid and not the last one in the line at the bottom, where the
// next one takes its place; all else is a line that stays.
func (v *liveView) inPlace(n api.Notice) bool {
	c := n.Checkpoint
	if c == nil || c.Status != "valid" || c.Trigger == "end" || n.Text != "" || v.state != api.Working {
		return false
	}
	v.passed = fmt.Sprintf(", checkpoint %d valid", c.Number)
	v.clear()
	v.draw(time.Now())
	return true
}

// hear keeps the agent's output, and shows it when it is wanted.
func (v *liveView) hear(text string) {
	v.kept = append(v.kept, text...)
	if over := len(v.kept) - keptBytes; over > 0 {
		if end := bytes.IndexByte(v.kept[over:], '\n'); end >= 0 && over+end+1 < len(v.kept) {
			over += end + 1 // from a line's beginning on
		}
		v.gone += int64(over)
		v.kept = append([]byte(nil), v.kept[over:]...)
	}
	switch {
	case v.output && v.asking: // a question stays the last thing on the screen
		v.unseen += int64(len(text))
	case v.output:
		v.speak(text)
	}
}

func (v *liveView) speak(text string) {
	v.clear()
	v.quote(text)
	v.draw(time.Now())
}

// leftOut says how much of the agent's output is not on the screen.
func (v *liveView) leftOut(bytes int64, what string) {
	if bytes > 0 {
		v.clear()
		v.sheet.line("%s %s of output %s: %s", v.change, size(bytes), what, v.command("sallyport change log "+v.change))
	}
}

func (v *liveView) key(k byte) {
	if k != 'o' && k != 'O' {
		return
	}
	v.output = !v.output
	if v.output {
		v.leftOut(v.gone, "came before this")
		v.speak(string(v.kept))
	}
	v.clear()
	v.draw(time.Now())
}

func (v *liveView) tick(now time.Time) {
	if !v.asking {
		v.clear()
		v.draw(now)
	}
}

func (v *liveView) question(typed string) {
	v.clear()
	if v.asking {
		fmt.Fprint(v.Err, clearLine)
	}
	v.asking = true
	fmt.Fprint(v.Err, clip(fmt.Sprintf("%s: [l]eave it running, [c]ancel it, or Enter to go on watching? %s", v.change, typed), v.width-1))
}

func (v *liveView) answered() {
	v.asking = false
	v.drawn = true
	v.clear()
	v.leftOut(v.unseen, "came meanwhile")
	v.unseen = 0
}

func (v *liveView) trial(q *trialQuestion) {
	v.clear()
	v.asks = q
	v.draw(time.Now())
}

func (v *liveView) close() {
	if v.asking {
		fmt.Fprintln(v.Err)
		return
	}
	v.clear()
}

func (v *liveView) clear() {
	if v.drawn {
		fmt.Fprint(v.Err, clearLine)
		v.drawn = false
	}
}

// draw writes the line at the bottom, cut to the width so that it stays one line.
func (v *liveView) draw(now time.Time) {
	if v.asking || v.state == "" || api.Final(v.state) || v.state == api.AwaitingApproval {
		return
	}
	if v.asks != nil {
		fmt.Fprint(v.Err, v.yellow(v.asks.prompt(now, v.width)))
		v.drawn = true
		return
	}
	wheel := []rune(`|/-\`)[now.UnixNano()/int64(spinnerBeat)%4]
	text := fmt.Sprintf("%c %s %s", wheel, v.state, duration(now.Sub(v.since).Truncate(time.Second)))
	if p := v.progress; p != nil {
		text += fmt.Sprintf(", %s changed, %s of output", count(p.FilesChanged, "file"), size(p.OutputBytes))
	}
	text += v.passed
	show := "shows"
	if v.output {
		show = "hides"
	}
	if v.state == api.Working {
		text += "  (o " + show + " the agent's output, Ctrl-C asks: leave or cancel)"
	}
	fmt.Fprint(v.Err, v.dim(clip(text, v.width-1)))
	v.drawn = true
}

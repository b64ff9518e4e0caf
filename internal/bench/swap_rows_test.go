package bench_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/chat/message"
	"sallyport/internal/door/api"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// swapping is a group that changes itself at words, and goes back at a word; beside it is a repository in which the same is done by hand.
type swapping struct {
	talking
	lines  <-chan api.ChatLine
	theirs string
	greets string // a file, in both
}

const greeting = "Good day, "

// BenchmarkSwap measures what a person waits for when a group changes itself. Its agents are echo, who takes no time to think.
func BenchmarkSwap(b *testing.B) {
	needs(b, "bwrap", "git")
	h := newHost(b)
	h.run(b, "", "daemon", "start")
	t := talking{host: h, home: filepath.Join(h.dir, "home")}
	t.Client = h.client(b)
	lines := make(chan api.ChatLine, 1<<16)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	<-t.watch(ctx, "echo", func(l api.ChatLine) { lines <- l })
	s := swapping{talking: t, lines: lines, theirs: filepath.Join(b.TempDir(), "theirs"), greets: "groups/echo/runner/prompts/system.md"}
	wt.Git(b, t.home, "clone", "-q", t.home, s.theirs)
	wt.Git(b, s.theirs, "config", "user.name", "P")
	wt.Git(b, s.theirs, "config", "user.email", "p@example.org")
	s.until(b, "hello", func(l api.ChatLine) bool { return l.Out != nil && l.Out.Text == "hello" })

	const within = time.Second
	asked := row{path: "a group changes itself: from the word to the card", ours: "echo asks, its dev agent edits a copy in a sandbox and proposes, the host judges it; the card is told to the terminal",
		rival: "git worktree add, the edit in bwrap, git commit, git diff", note: "the rival checks nothing and asks nobody", within: within}
	begun := row{path: "a group changes itself: from the approval to its word that it is back", ours: "the change lands, a new session begins on it and has answered",
		rival: "git merge, and a line to `cat` in bwrap", note: "the rival cannot go back by itself", within: within}
	back := row{path: "a group changes itself: from the word `rollback` to the old version answering", ours: "what is said right after that word is answered by a session on the old files",
		rival: "git reset --hard, and a line to `cat` in bwrap", note: "the rival loses what was not committed", within: within}
	for n := range max(*rounds, 1) + 1 {
		ours, theirs := s.round(b), s.byHand(b)
		if n > 0 { // the first warms both
			for i, r := range []*row{&asked, &begun, &back} {
				r.took, r.rivals = append(r.took, ours[i]), append(r.rivals, theirs[i])
			}
		}
	}
	for _, r := range []row{asked, begun, back} {
		record(b, r)
	}
}

// round has the group change itself, approves that, and takes it back.
func (s swapping) round(b *testing.B) (took [3]time.Duration) {
	b.Helper()
	card, begun := s.until(b, "/change append template/runner/prompts/system.md: Greeting: "+greeting+"{name}!", func(l api.ChatLine) bool {
		return l.Out != nil && l.Out.Card == string(message.CardApproval)
	})
	trial, landed := s.until(b, fmt.Sprint(card.Out.Digits, " approve"), func(l api.ChatLine) bool { return l.Out != nil && l.Out.Card == string(message.CardTrial) })
	if answer, _ := s.answer(b, "hello"); !strings.HasPrefix(answer, greeting) {
		b.Fatalf("the new version answers %q", answer)
	}

	began := time.Now()
	must(b, s.say(b.Context(), "echo", fmt.Sprint(trial.Out.Digits, " rollback")))
	for answer := greeting; strings.HasPrefix(answer, greeting); {
		answer, _ = s.answer(b, "hello")
	}
	took = [3]time.Duration{begun, landed, time.Since(began)}
	if out, err := s.try("", "change", "watch", trial.Out.Change); err == nil { // it ends otherwise than it began
		b.Fatalf("the change did not go back: %s", out)
	}
	return took
}

// until says something and returns the first line after that which fits, and how long that took.
func (s swapping) until(b *testing.B, text string, fits func(api.ChatLine) bool) (api.ChatLine, time.Duration) {
	b.Helper()
	for len(s.lines) > 0 { // of before
		<-s.lines
	}
	began, late := time.Now(), time.After(2*time.Minute)
	must(b, s.say(b.Context(), "echo", text))
	var told []string
	for {
		select {
		case l := <-s.lines:
			if fits(l) {
				return l, time.Since(began)
			}
			if l.Out != nil {
				told = append(told, l.Out.Text)
			}
		case <-late:
			b.Fatalf("%q was not followed by what it should; told was %q", text, told)
		}
	}
}

// answer is what the group says to something.
func (s swapping) answer(b *testing.B, text string) (string, time.Duration) {
	b.Helper()
	l, took := s.until(b, text, func(l api.ChatLine) bool {
		return l.Out != nil && l.Out.Lane == api.LaneTalk && l.Out.Card == "" && strings.HasSuffix(l.Out.Text, text)
	})
	return l.Out.Text, took
}

// byHand does the same steps without the product.
func (s swapping) byHand(b *testing.B) (took [3]time.Duration) {
	b.Helper()
	tree := filepath.Join(b.TempDir(), "tree")
	took[0] = timed(func() {
		wt.Git(b, s.theirs, "worktree", "add", "-q", "-b", "work", tree)
		inBwrap(b, tree, "echo 'Greeting: "+greeting+"{name}!' >> "+s.greets)
		wt.Git(b, tree, "commit", "-qam", "greet")
		wt.Git(b, tree, "diff", "HEAD~1", "HEAD")
	})
	took[1] = timed(func() {
		wt.Git(b, s.theirs, "merge", "-q", "--ff-only", "work")
		inBwrap(b, s.theirs, "echo hello | cat")
	})
	took[2] = timed(func() {
		wt.Git(b, s.theirs, "reset", "-q", "--hard", "HEAD~1")
		inBwrap(b, s.theirs, "echo hello | cat")
	})
	wt.Git(b, s.theirs, "worktree", "remove", "--force", tree)
	wt.Git(b, s.theirs, "branch", "-qD", "work")
	return took
}

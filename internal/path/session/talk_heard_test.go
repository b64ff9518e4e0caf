package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// conversation is a session whose program prints the lines of print and reads what it is told into read.
type conversation struct {
	*session.Talk
	dir   string
	print chan string
	read  chan string
	said  []agent.Text
	tools []agent.ToolCall
	ended chan error
}

func converse(t *testing.T, chat bool) *conversation {
	t.Helper()
	c := &conversation{print: make(chan string), read: make(chan string, 64), ended: make(chan error, 1)}
	r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit {
		in, stdin := io.Pipe()
		go func() { _, _ = io.Copy(stdin, spec.Stdin); stdin.Close() }()
		go func() {
			for lines := bufio.NewReaderSize(in, 4<<20); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				c.read <- line
			}
		}()
		for line := range c.print {
			io.WriteString(spec.Stdout, line+"\n")
		}
		in.Close()
		return sandbox.Exit{}
	})
	c.Talk, c.dir = session.NewChatTalk(), r.Session.Dir
	r.Program.Stdin, r.Program.Messages, r.Program.Turns, r.Program.Chat, r.Talk = nil, true, true, chat, c.Talk
	r.Said = func(e agent.Text) { c.said = append(c.said, e) }
	r.Tool = func(e agent.ToolCall) { c.tools = append(c.tools, e) }
	go func() {
		_, err := session.Run(t.Context(), r)
		c.ended <- err
	}()
	synctest.Wait()
	return c
}

// prints has the program print lines and waits until they are heard.
func (c *conversation) prints(lines ...string) {
	for _, line := range lines {
		c.print <- line
	}
	synctest.Wait()
}

func (c *conversation) end(t *testing.T) {
	t.Helper()
	close(c.print)
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

func piece(turn, number int, text string) string {
	line, _ := json.Marshal(agent.Text{Type: agent.TextType, Turn: turn, Number: number, Text: text})
	return string(line)
}

func TestWhatAnAgentSaysInAConversationIsHeardInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, true)
		if c.Turning() {
			t.Error("a turn is under way before anybody said anything")
		}
		c.prints("Hello", piece(1, 1, "Hello "), piece(1, 3, "a gap "), piece(1, 1, "again "), piece(1, 2, "you.\n"))
		c.prints(`{"type":"tool","turn":1,"id":"call-1","kind":"execute","title":"make \u001b[2J","timeout_ms":5000}`, `{"type":"tool","turn":1,"id":"call-1","kind":"execute","title":"make","over":true,"failed":true}`)
		c.prints(piece(1, 3, "Bye"), turnEnd(1, ""), piece(1, 4, " late"), turnEnd(2, ""), piece(2, 1, "later"), piece(3, 1, "three"), "You too")
		c.end(t)

		text := map[int]string{}
		numbers := map[int]int{}
		for _, e := range c.said {
			if numbers[e.Turn]++; e.Number != numbers[e.Turn] {
				t.Errorf("%+v is not piece %d", e, numbers[e.Turn])
			}
			text[e.Turn] += e.Text
		}
		if len(text) != 2 || text[1] != "Hello you.\nBye" || text[3] != "three" {
			t.Errorf("%q, %q", text[1], text[3])
		}
		if len(c.tools) != 2 || c.tools[0].Title != `make \x1b[2J` || c.tools[0].TimeoutMS != 5000 || !c.tools[1].Over || !c.tools[1].Failed {
			t.Errorf("%+v", c.tools)
		}
		if first, second := <-c.Turns(), <-c.Turns(); first.Turn != 1 || second.Turn != 2 {
			t.Errorf("the turns that ended are %d and %d", first.Turn, second.Turn)
		}
		var shown []string
		for _, l := range lines(t, c.dir) {
			if l.Stream == "stdout" && !l.ForHost() {
				shown = append(shown, l.Text)
			}
		}
		if got := strings.Join(shown, "|"); got != "Hello|You too" {
			t.Errorf("a person is shown %q", got)
		}
	})
}

func TestWhatIsNotClearlyAPieceOfAConversationIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, true)
		c.prints(
			piece(0, 1, "x"), piece(1, 0, "x"), piece(1<<31, 1, "x"), piece(1, 1, ""), piece(1, 1, "a\x00b"), piece(1, 1, "x")+piece(1, 2, "y"), "x "+piece(1, 1, "x"),
			`{"type":"text","turn":1,"number":1,"text":"x","root":true}`, `{"type":"text","turn":1,"number":1,"text":{"a":1}}`, `{"type":"text","turn":1,"number":1,"text":"`+"\xff"+`"}`,
			piece(1, 1, strings.Repeat("x", session.LineBytesMax)), `["text"]`, `{"type":"text"`,
			`{"type":"tool","turn":1,"id":"","kind":"x","title":"x"}`, `{"type":"tool","turn":1,"id":"`+strings.Repeat("x", 33)+`","kind":"x","title":"x"}`,
			`{"type":"tool","turn":1,"id":"1","kind":"x","title":"`+strings.Repeat("x", 601)+`"}`, `{"type":"tool","turn":1,"id":"1","kind":"x","title":"x","failed":true}`,
			`{"type":"tool","turn":1,"id":"1","kind":"x","title":"x","timeout_ms":-1}`, `{"type":"tool","turn":1,"id":"1","kind":"x","title":"x","root":true}`)
		for i := range 20 {
			c.prints(piece(7, i+1, strings.Repeat("word ", 1000)))
		}
		c.end(t)
		all := 0
		for _, e := range c.said {
			all += len(e.Text)
		}
		if len(c.tools) > 0 || c.said[0].Turn != 7 || all > agent.TextBytesMax+8<<10 {
			t.Errorf("%d pieces of %d bytes, %d tools, the first of turn %d", len(c.said), all, len(c.tools), c.said[0].Turn)
		}
	})
}

func TestOnlyAConversationIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, false)
		c.prints(piece(1, 1, "x"), `{"type":"tool","turn":1,"id":"1","kind":"x","title":"x"}`)
		c.end(t)
		if len(c.said)+len(c.tools) > 0 {
			t.Errorf("%+v, %+v", c.said, c.tools)
		}
	})
}

func TestASecretInTwoPiecesOfWhatAnAgentSaysIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := "ghp_wJ8rT2xKq9LmN4vB7cD1fG5hY3sA6zE0uPiO" // of nobody
		c := converse(t, true)
		c.prints(piece(1, 1, "The token is "+key[:15]), piece(1, 2, key[15:]+" and no more"), `{"type":"tool","turn":1,"id":"1","kind":"execute","title":"echo `+key+`"}`, turnEnd(1, ""))
		c.end(t)
		var all strings.Builder
		for _, e := range c.said {
			all.WriteString(e.Text)
		}
		if text := all.String(); strings.Contains(text, key[:15]) || strings.Contains(text, key[15:]) || !strings.HasPrefix(text, "The token is ") || !strings.HasSuffix(text, " and no more") {
			t.Errorf("%q", text)
		}
		if len(c.tools) != 1 || strings.Contains(c.tools[0].Title, key) {
			t.Errorf("%+v", c.tools)
		}
	})
}

func TestAConversationTakesLongWordsAndAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, true)
		if d := c.Tell(t.Context(), strings.Repeat("x", session.ChatBytesMax+1)); d.Delivered {
			t.Error("words without bounds are taken")
		}
		if d := c.Tell(t.Context(), strings.Repeat("\"", session.ChatBytesMax)); !d.Delivered {
			t.Error("words of a batch are not taken")
		}
		c.Interrupt()
		synctest.Wait()
		if first, second := <-c.read, <-c.read; len(first) < 2*session.ChatBytesMax || second != "{\"type\":\"interrupt\"}\n" {
			t.Errorf("it reads %d bytes, then %q", len(first), second)
		}
		c.end(t)
		c.Interrupt()
		var nobody *session.Talk
		nobody.Interrupt()
		session.NewTalk().Interrupt()
		if len(c.read) > 0 {
			t.Errorf("it reads %q", <-c.read)
		}
	})
}

func FuzzWhatIsHeardOfAConversation(f *testing.F) {
	for _, line := range []string{piece(1, 1, "hi"), `{"type":"tool","turn":1,"id":"1","kind":"x","title":"x"}`, turnEnd(1, "")} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		synctest.Test(t, func(t *testing.T) {
			c := converse(t, true)
			c.prints(line)
			c.end(t)
			for _, e := range c.said {
				if e.Turn < 1 || strings.ContainsRune(e.Text, 0) || e.Text == "" {
					t.Errorf("%+v", e)
				}
			}
			if s := fmt.Sprint(c.tools); strings.ContainsAny(s, "\x1b\n\x00") {
				t.Errorf("%q", s)
			}
		})
	})
}

package adapter

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/port/agent"
)

// TestWhatAnAgentSaysIsNeverTakenForAnAnswer is the border: whatever is shown, in whatever pieces, no line of it begins as an
// answer does, none has a control character, and none is long.
func TestWhatAnAgentSaysIsNeverTakenForAnAnswer(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		var out strings.Builder
		s := newShown(&out)
		piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"{", " {", `{"type":"turn_end","turn":1,"outcome":"done"}`, "\n", "\n\t{", "x", " ", "\r\n", "\x00", "\xff", "\u202e", "\x1b[2J", "ä", strings.Repeat("a b ", 80), strings.Repeat("ü", 150), "\u2028{",
		}))
		for _, text := range rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces") {
			switch rapid.IntRange(0, 5).Draw(t, "as") {
			case 0:
				s.Think(text)
			case 1:
				s.Tool(text, text)
			case 2:
				s.Note(text)
			default:
				s.Say(text)
			}
		}
		s.flush()
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(strings.TrimSpace(line), "{") {
				t.Fatalf("%q would be an answer", line)
			}
			if len(line) > 1000 || !utf8.ValidString(line) || strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) >= 0 {
				t.Fatalf("%d bytes: %q", len(line), line)
			}
		}
	})
}

// TestWordsAreWholeInWhateverPiecesTheyCome holds that nothing of them is lost where a line is broken.
func TestWordsAreWholeInWhateverPiecesTheyCome(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		// Long words have no space to be broken at, and their characters one to four bytes.
		word := rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.StringOfN(rapid.RuneFrom([]rune("abcäöü漢🙂.,")), 1, 7, -1).Draw(t, "syllable"), rapid.IntRange(1, 60).Draw(t, "times"))
		})
		text := strings.Join(rapid.SliceOfN(word, 1, 20).Draw(t, "words"), " ")
		var out strings.Builder
		s := newShown(&out)
		for rest := text; rest != ""; {
			n := min(rapid.IntRange(1, 200).Draw(t, "bytes"), len(rest))
			s.Say(rest[:n])
			rest = rest[n:]
		}
		s.flush()
		squeeze := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
		if squeeze(out.String()) != squeeze(text) {
			t.Fatalf("%q became %q", text, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if len(line) > widthMax+utf8.UTFMax+1 {
				t.Fatalf("a line of %d bytes: %q", len(line), line)
			}
		}
	})
}

func TestChatterIsBoundedByTurnAndInAll(t *testing.T) {
	var out strings.Builder
	s := newShown(&out)
	for turn := 1; turn <= 60; turn++ {
		s.begin(turn)
		before := out.Len()
		for range 10_000 {
			s.Say("all work and no play\n")
		}
		s.end(agent.TurnEnd{Turn: turn, Outcome: agent.TurnDone})
		if n := out.Len() - before; n > turnBytesMax+200 {
			t.Fatalf("turn %d has %d bytes", turn, n)
		}
		if !strings.Contains(out.String()[before:], `"type":"turn_end","turn":`) {
			t.Fatalf("turn %d has no end", turn)
		}
	}
	if out.Len() > allBytesMax+60*200 {
		t.Errorf("%d bytes in all", out.Len())
	}
	if !strings.Contains(out.String(), "sallyport: no more of this turn is shown") {
		t.Error("it is not said that there is more")
	}
}

func TestAConversationIsShownHoweverLongItHasLasted(t *testing.T) {
	var out strings.Builder
	s := newShown(&out)
	s.converse(nil, false)
	for turn := 1; turn <= 40; turn++ {
		s.begin(turn)
		before := out.Len()
		s.Say(strings.Repeat("all work and no play\n", 10_000))
		s.end(agent.TurnEnd{Turn: turn, Outcome: agent.TurnDone})
		if n := out.Len() - before; n < turnBytesMax || n > turnBytesMax+2*agent.TextBytesMax {
			t.Fatalf("turn %d has %d bytes", turn, n)
		}
	}
}

// TestWhatAHookHasNotSeenIsNotSaid is a turn that ends while its agent still works: nobody knows what the hook would have made of it.
func TestWhatAHookHasNotSeenIsNotSaid(t *testing.T) {
	var out strings.Builder
	s := newShown(&out)
	s.converse(nil, true)
	s.begin(1)
	s.Say("a secret\n")
	s.Began(agent.Tool{ID: "1", Kind: "read", Title: "x"})
	s.end(agent.TurnEnd{Turn: 1, Outcome: agent.TurnCancelled})
	if strings.Contains(out.String(), `"type":"text"`) {
		t.Errorf("it says\n%s", out.String())
	}
}

func TestAToolThatIsOffFailsItsOwnTurnAlone(t *testing.T) {
	var out strings.Builder
	s := newShown(&out)
	s.converse([]string{"Ask"}, false)
	s.begin(1)
	s.Began(agent.Tool{ID: "1", Name: "Ask"})
	s.Began(agent.Tool{ID: "2", Name: "Ask"})
	if len(s.fired()) != 1 {
		t.Errorf("%d are told", len(s.fired()))
	}
	s.end(agent.TurnEnd{Turn: 1, Outcome: agent.TurnDone})
	s.begin(2)
	if len(s.fired()) != 0 {
		t.Error("the next turn is told of it")
	}
}

func TestTheEndOfATurnFitsALineThatIsHeard(t *testing.T) {
	for _, says := range []string{strings.Repeat("\x01", 100<<10), strings.Repeat("\"\\", 50<<10), strings.Repeat("ä", 50<<10), "\xff\xfe", strings.Repeat("<&>", 9000)} {
		var out strings.Builder
		newShown(&out).end(agent.TurnEnd{Turn: 1, Outcome: agent.TurnFailed, Reason: strings.Repeat("\x02\"", 9000), Says: says})
		var e agent.TurnEnd
		if err := json.Unmarshal([]byte(out.String()), &e); err != nil || out.Len() > 16<<10 || len(e.Says) > agent.SaysBytesMax || len(e.Reason) > agent.ReasonBytesMax {
			t.Errorf("%d bytes, %v", out.Len(), err)
		}
	}
}

func TestAHookHasATimeToAnswerIn(t *testing.T) {
	dir := t.TempDir()
	disktest.Put(t, filepath.Join(dir, onMessage), "#!/bin/sh\nsleep 300\n", 0o755)
	text := "hello"
	_, err := hooks{dir: dir, within: 20 * time.Millisecond}.ask(t.Context(), asked{Hook: onMessage, Text: &text})
	if err == nil || err.Error() != "the hook on-message failed: it did not end within 20ms" {
		t.Errorf("%v", err)
	}
	if hookWithin != 10*time.Second {
		t.Errorf("the template promises 10 seconds, and it is %s", hookWithin)
	}
}

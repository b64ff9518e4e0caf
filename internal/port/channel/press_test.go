package channel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/channel"
)

func TestAPressIsReadAsItWasWritten(t *testing.T) {
	for _, p := range []channel.Press{{Question: "qst-1", Option: "approve"}, {Question: "qst-1", Option: "group:a:b"}} {
		if got := channel.PressOf(p.Word(64)); got == nil || *got != p || p.Asks() != "" {
			t.Errorf("%+v came as %+v", p, got)
		}
	}
	for word, p := range map[string]channel.Press{
		"nsa:qst-1:allow": {Question: "nsa:qst-1", Option: "allow"}, "nsa:qst-1:deny": {Question: "nsa:qst-1", Option: "deny"}, "ncq:qst-1:2": {Question: "ncq:qst-1", Option: "2"},
		"nca-qst-1:agent-group-echo": {Question: "nca-qst-1", Option: "agent-group-echo"}, "nca-qst-1:create": {Question: "nca-qst-1", Option: "create"},
	} {
		if got := channel.PressOf(word); got == nil || *got != p || p.Word(64) != word || p.Asks() != "qst-1" {
			t.Errorf("%+v came as %+v, and is %q", p, got, p.Word(64))
		}
	}
	for _, p := range []channel.Press{{Question: "a:b", Option: "c"}, {Option: "c"}, {Question: "a"}, {Question: "a", Option: strings.Repeat("x", 63)}, {Question: "nsa", Option: "b:c"}, {Question: "nsa:", Option: "c"}} {
		if word := p.Word(64); word != "" {
			t.Errorf("%+v has the word %q", p, word)
		}
	}
	for _, word := range []string{"", ":", "a", "a:", ":b", "nsa:", "nsa::b", "ncq:a", "ncq:a:"} {
		if got := channel.PressOf(word); got != nil {
			t.Errorf("%q is %+v", word, got)
		}
	}
}

func FuzzPressOf(f *testing.F) {
	f.Add("qst-1:approve")
	f.Fuzz(func(t *testing.T, word string) {
		if p := channel.PressOf(word); p != nil && p.Word(len(word)) != word {
			t.Errorf("%q is %+v, which is %q", word, p, p.Word(len(word)))
		}
	})
}

func TestACardWithOneButtonTooLongHasNone(t *testing.T) {
	c := &channel.Card{Question: "q", Options: []channel.Option{{Key: "a"}, {Key: strings.Repeat("x", 64)}}}
	if words := c.Words(64, 10); words != nil {
		t.Errorf("its buttons are %q", words)
	}
	if words := c.Words(100, 2); len(words) != 2 {
		t.Errorf("its buttons are %q", words)
	}
	if words := c.Words(100, 1); words != nil {
		t.Errorf("more than there is place for: %q", words)
	}
	if got := (channel.Option{Label: "éééé"}).Short(3); got != "éé…" {
		t.Errorf("a long label is %q", got)
	}
	if words := (*channel.Card)(nil).Words(64, 1); words != nil {
		t.Errorf("no card has the buttons %q", words)
	}
}

func TestAnEventIsGivenUntilItIsTakenOrNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		l := channel.Listener{Take: func(context.Context, channel.Event) error {
			if tries++; tries < 20 {
				return errors.New("not now")
			}
			return nil
		}}
		if err := l.Give(t.Context(), channel.Event{}); err != nil || tries != 20 {
			t.Errorf("%d tries: %v", tries, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tries = -1000
		if err := l.Give(ctx, channel.Event{}); err == nil || tries < -1000+10 || tries > -1000+30 {
			t.Errorf("%d tries in a minute: %v", tries+1000, err)
		}
	})
}

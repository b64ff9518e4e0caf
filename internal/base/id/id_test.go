package id_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
)

const base36 = "0123456789abcdefghijklmnopqrstuvwxyz"

func TestNewIDsAreOfTheirKindAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		for _, c := range []struct {
			id, prefix, noun string
		}{
			{string(id.NewChange()), "chg-", "change"},
			{string(id.NewApproval()), "apr-", "approval"},
			{string(id.NewLanding()), "lnd-", "landing"},
			{string(id.NewPerson()), "psn-", "person"},
			{string(id.NewQuestion()), "qst-", "question"},
		} {
			body, ok := strings.CutPrefix(c.id, c.prefix)
			if !ok || len(body) != 8 || strings.Trim(body, base36) != "" || id.KindOf(c.id) != c.noun {
				t.Fatalf("%q is no new id of a %s", c.id, c.noun)
			}
			if seen[c.id] {
				t.Fatalf("%q came twice", c.id)
			}
			seen[c.id] = true
		}
	}
	if got := id.NewCheckpoint(7, "0123456789abcdef"); got != "ckpt-007-01234567" {
		t.Errorf("checkpoint %q", got)
	}
	if got := id.NewCheckpoint(1234, "0123456789abcdef"); got != "ckpt-1234-01234567" {
		t.Errorf("checkpoint %q", got)
	}
}

// TestMessagesOfTheSameTenSecondsStandTogether passes over two hours, ten seconds at a time.
func TestMessagesOfTheSameTenSecondsStandTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := map[string]string{}
		for range 720 {
			now := map[string]string{}
			for range 20 {
				for _, made := range []string{string(id.NewMessage()), string(id.NewOut())} {
					kind, start := made[:4], made[4:6]
					if len(made) != 14 || strings.Trim(made[4:], base36) != "" || kind != "msg-" && kind != "out-" {
						t.Fatalf("%q is no new id of a message", made)
					}
					if was, ok := now[kind]; ok && was != start {
						t.Fatalf("%q does not begin with %q as those of the same ten seconds", made, was)
					}
					now[kind] = start
				}
			}
			for kind, start := range now {
				if last[kind] == start {
					t.Fatalf("%s%s comes for twenty seconds", kind, start)
				}
			}
			last = now
			time.Sleep(10 * time.Second)
		}
	})
}

func TestEveryCharacterComesUp(t *testing.T) {
	var all strings.Builder
	for range 2000 {
		all.WriteString(string(id.NewChange())[4:])
	}
	for _, r := range base36 {
		if n := strings.Count(all.String(), string(r)); n < 300 || n > 600 { // 444 on average, 21 the standard deviation
			t.Errorf("%c came %d times in 16000", r, n)
		}
	}
}

func TestAWrongIDIsToldApart(t *testing.T) {
	change := func(s string) error { _, err := id.ParseChange(s); return err }
	approval := func(s string) error { _, err := id.ParseApproval(s); return err }
	checkpoint := func(s string) error { _, err := id.ParseCheckpoint(s); return err }
	for _, c := range []struct {
		parse func(string) error
		in    string
		says  string // "" = accepted
		next  string
	}{
		{change, "chg-0a1b2c3d", "", ""},
		{approval, "apr-0a1b2c3d", "", ""},
		{checkpoint, "ckpt-007-01234567", "", ""},
		{change, "apr-0a1b2c3d", "is the id of an approval; a change was wanted", "sallyport change list"},
		{approval, "ckpt-007-01234567", "is the id of a checkpoint; an approval was wanted", "sallyport approval list"},
		{checkpoint, "chg-0a1b2c3d", "is the id of a change; a checkpoint was wanted", "sallyport checkpoint list chg-0a1b2c3d"},
		{checkpoint, "lnd-0a1b2c3d", "is the id of a landing; a checkpoint was wanted", "sallyport checkpoint list CHANGE"},
		{change, "", "is not the id of a change", "sallyport change list"},
		{change, "chg-", "is not the id of a change", "sallyport change list"},
		{change, "chg-----", "is not the id of a change", "sallyport change list"},
		{change, "chg-../../etc", "is not the id of a change", "sallyport change list"},
		{change, "chg-\x1b[31m", `\x1b`, "sallyport change list"},
		{change, "chg-" + strings.Repeat("a", 100), "is not the id of a change", "sallyport change list"},
		{change, "-rf", "is not the id of a change", "sallyport change list"},
	} {
		err := c.parse(c.in)
		if c.says == "" {
			if err != nil {
				t.Errorf("%q: %v", c.in, err)
			}
			continue
		}
		if p := problem.Of(err); err == nil || p.Kind != problem.Usage || !strings.Contains(p.Text, c.says) || p.Next != c.next {
			t.Errorf("%q: %+v", c.in, p)
		}
	}
}

func TestASlugIsSafeAnywhere(t *testing.T) {
	for in, want := range map[string]string{
		"Claude Code":            "claude-code",
		"/usr/bin/gofmt":         "usr-bin-gofmt",
		"--rf":                   "rf",
		"a..b":                   "a-b",
		"trailing ":              "trailing",
		"":                       "agent",
		"ÄÖ\u202e":               "agent",
		"K\u212a":                "kk", // the Kelvin sign is a k in lower case
		strings.Repeat("a", 40):  strings.Repeat("a", 32),
		strings.Repeat("ab-", 9): strings.TrimSuffix(strings.Repeat("ab-", 9), "-"),
	} {
		if got := id.Slug(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	rapidtest.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "name")
		s := id.Slug(in)
		if s == "" || len(s) > 32 || strings.Trim(s, base36+"-") != "" || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
			t.Fatalf("%q became %q", in, s)
		}
		if again := id.Slug(s); again != s {
			t.Fatalf("%q became %q and then %q", in, s, again)
		}
	})
}

func TestASessionIsNamedAfterItsAgent(t *testing.T) {
	one, two := string(id.NewSession("Gofmt -w")), string(id.NewSession("Gofmt -w"))
	tail, ok := strings.CutPrefix(one, "gofmt-w-")
	if !ok || len(tail) != 5 || strings.Trim(tail, base36) != "" || one == two {
		t.Errorf("%q and %q", one, two)
	}
	if id.KindOf(one) != "" {
		t.Errorf("%q passes as the id of a %s", one, id.KindOf(one))
	}
}

func TestASessionsIdentityIsKnownByItsForm(t *testing.T) {
	for range 100 {
		made := id.NewSession("My Agent")
		if got, err := id.ParseSession(string(made)); err != nil || got != made {
			t.Fatalf("%q: %v", made, err)
		}
	}
	for text, want := range map[string]string{
		"chg-1a2b3c4d": "is the id of a change", "ckpt-001-0123abcd": "is the id of a checkpoint", "": "is not the identity",
		"sh": "is not the identity", "sh-1a2b": "is not the identity", "sh-1a2b3c": "is not the identity", "-1a2b3": "is not the identity",
		"Sh-1a2b3": "is not the identity", "sh-1A2b3": "is not the identity", "../sh-1a2b3": "is not the identity", "a--b-1a2b3": "is not the identity",
		strings.Repeat("a", 33) + "-1a2b3": "is not the identity",
	} {
		if _, err := id.ParseSession(text); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

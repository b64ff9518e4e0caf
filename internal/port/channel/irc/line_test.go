package irc

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"unicode"

	"sallyport/internal/port/channel"
)

func TestANameMeansOneThing(t *testing.T) {
	for _, row := range []struct {
		casemap, name, want string
	}{
		{"rfc1459", `Ann[\]^`, `ann{|}~`}, {"rfc1459-strict", `Ann[\]^`, `ann{|}^`}, {"ascii", `Ann[\]^`, `ann[\]^`}, {"", "ÄB", "Äb"},
	} {
		if got := fold(row.casemap, row.name); got != row.want {
			t.Errorf("%s: %q is %q", row.casemap, row.name, got)
		}
	}
	for name, want := range map[string]bool{"ann": true, "=ann": true, "#team": true, "": false, "a,b": false, "a b": false, "a\rb": false, ":a": false, "a*": false, "a!b@c": false, "a\u00a0b": false} {
		if word(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestWhatIsSaidIsReadAsAPersonMeansIt(t *testing.T) {
	for text, want := range map[string]string{
		"hello": "hello", "\x02con\x0304,01firm\x0f": "confirm", "\x01ACTION waves\x01": "/me waves", "\x01VERSION\x01": "", "\x01": "", "a\tb": "a b",
		"caf\xe9": "caf\uFFFD", "\x1b[2Jx\u202e": "[2Jx", "\x03": "", "3\x03": "3",
	} {
		if got, _ := said(text); got != want {
			t.Errorf("%q is read as %q, not %q", text, got, want)
		}
	}
	for text, want := range map[string]bool{"Port: hi": true, "port, hi": true, "port:": true, "port hi": false, "ports: hi": false, "port": false, "": false, "hi port:": false} {
		if names("rfc1459", text, "port") != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestWhatIsSentIsOneLineEach(t *testing.T) {
	for text, want := range map[string][]string{
		"one":                           {"one"},
		"one\n\n \ntwo\r\nthree\rfour":  {"one", "two", "three", "four"},
		"\x01ACTION x\x01":              {"ACTION x"},
		"a\x00b\x03" + "4c":             {"abc"},
		"aaa bbb ccc ddd":               {"aaa bbb", "ccc ddd"},
		"x\u2028PRIVMSG NickServ :DROP": {"x", "PRIVMSG", "NickServ", ":DROP"},
	} {
		if got := lines(text, 10); !slices.Equal(got, want) {
			t.Errorf("%q goes as %q, not %q", text, got, want)
		}
	}
}

// TestNoLineOfACardBeginsInTheMiddleOfAnother has somebody choose which words stand where a line of a card is cut.
func TestNoLineOfACardBeginsInTheMiddleOfAnother(t *testing.T) {
	for _, before := range []string{"", "  > a\n", "  > a\n  > b\n  > c\n  > d\n  > e\n"} {
		for n := range 400 {
			text := before + "  > " + strings.Repeat("x", n) + " 1. approve " + strings.Repeat("é ", n) + "\n  > end"
			for _, piece := range (&Driver{}).Can().Cut(channel.Rows(text)) {
				for _, line := range lines(piece, lineText) {
					if !strings.HasPrefix(line, "  > ") && !strings.HasPrefix(line, "…") {
						t.Fatalf("%q begins in the middle of a line of %q", line, text)
					}
				}
			}
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add("one\ntwo \x01three\x01 é日😀", 40)
	f.Add("\x03\x02\u202e", 1)
	f.Fuzz(func(t *testing.T, text string, room int) {
		room = 4 + max(room, 0)%500
		for _, line := range lines(text, room) {
			if len(line) > room || strings.TrimSpace(line) == "" || strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("of %q, %d bytes each: %q", text, room, line)
			}
		}
	})
}

// FuzzHear has a server say anything: nobody has an account that no tag of the server's names, and no place is another's.
func FuzzHear(f *testing.F) {
	for _, line := range []string{
		":a.test 001 port :Welcome", ":ann!u@h PRIVMSG port :hello", "@account=ann;msgid=1;time=2026-01-02T03:04:05.678Z :ann!u@h PRIVMSG #team :port: hi",
		":=ann!u@h PRIVMSG port :x", ":ann!u@h NICK bob", ":port!u@h JOIN #team", "@batch=1 :x!u@h PRIVMSG #team :y", "BATCH +1 chathistory #team",
		":x!u@h KICK #team port :out", ":x!u@h QUIT :a.test b.test", "ERROR", "PING", ":s CAP port DEL :account-tag", ":s 354 port 1 ann ann", "ACCOUNT", ":x 005",
	} {
		f.Add(line + "\r\n" + ":ann!u@h PRIVMSG port :after\r\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		ours, theirs := net.Pipe()
		go func() { // what we answer is not read
			in := bufio.NewReader(theirs)
			for {
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
			}
		}()
		defer theirs.Close()
		defer ours.Close()
		s := (&Driver{nick: "port", channels: []string{"#team"}}).begin(ours, channel.Listener{Ready: func(channel.Self) {}, Lost: func(context.Context, string) {}})
		s.caps["account-tag"], s.caps["server-time"], s.joined["#team"] = true, true, true
		for line := range strings.SplitSeq(text, "\n") {
			e := parse(line)
			if e == nil {
				continue
			}
			if err := s.hear(e); err != nil {
				return
			}
		}
		for {
			select {
			case i := <-s.inbox.queue:
				if i.event == nil {
					continue
				}
				e := i.event
				if e.Sender.Account != "" && !strings.Contains(strings.ToLower(text), "account=") {
					t.Errorf("%q makes somebody %q", text, e.Sender.Account)
				}
				if direct := strings.HasPrefix(e.Place.Address, byAccount); direct != (e.Place.Kind == channel.Direct && e.Sender.Account != "") || direct && e.Place.Address != byAccount+e.Sender.Account {
					t.Errorf("%q comes from %q, of %q", text, e.Place.Address, e.Sender.Account)
				}
			default:
				return
			}
		}
	})
}

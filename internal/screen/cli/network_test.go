package cli

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestWhatWasAskedOfTheNetworkIsShownByVerdictHarmlesslyAndInBounds(t *testing.T) {
	asked := []api.Asked{
		{Host: "registry.npmjs.org", Port: 443, Method: "CONNECT", Verdict: "allowed", Count: 12},
		{Host: "127.0.0.1", Port: 3128, Method: "POST", Route: "model", Verdict: "allowed", Count: 3},
		{Host: "evil.example.org\x1b[31m\u202e", Port: 443, Method: "CONNECT", Verdict: "refused", Why: "no rule names it", Count: 1},
		{Host: "2001:db8::1", Port: 80, Method: "GET", Verdict: "failed", Why: "it does not answer", Count: 2},
		{Verdict: "refused", Count: 900},
	}
	var b strings.Builder
	printNetwork(sheet{w: &b, width: 100}, asked)
	got := b.String()
	want := []string{
		"refused on the network:", `evil.example.org\x1b[31m\u202e:443 (CONNECT): no rule names it`, "other hosts, 900 times",
		"asked for on the network, which did not work:", "[2001:db8::1]:80 (GET), 2 times: it does not answer",
		"asked for on the network:", "registry.npmjs.org:443 (CONNECT), 12 times", "its model (POST), 3 times",
	}
	at := 0
	for _, w := range want {
		found := strings.Index(got[at:], w)
		if found < 0 {
			t.Fatalf("%q is not there, in its place: %s", w, got)
		}
		at += found
	}
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%q", got)
	}
	b.Reset()
	printNetwork(sheet{w: &b, width: 100}, nil)
	if b.Len() > 0 {
		t.Errorf("of nothing it says %q", b.String())
	}
	for n := range 300 {
		asked = append(asked, api.Asked{Host: fmt.Sprintf("h%d", n), Verdict: "refused", Count: 1})
	}
	b.Reset()
	printNetwork(sheet{w: &b, width: 100}, asked)
	if lines := strings.Count(b.String(), "\n"); lines > 50 || !strings.Contains(b.String(), "and 282 more lines") {
		t.Errorf("%d lines: %s", lines, b.String())
	}
}

func TestRefusalsAreSeenAtOnceAndTheRestWithTheAgentsOutput(t *testing.T) {
	notice := func(verdict string) api.Notice {
		return api.Notice{Change: "chg-1a2b3c4d", Kind: api.NoticeEgress, Asked: &api.Asked{Host: "a.example.org", Port: 443, Method: "CONNECT", Verdict: verdict, Count: 1}}
	}
	for _, output := range []bool{false, true} {
		for verdict, seen := range map[string]bool{"refused": true, "failed": true, "allowed": output} {
			var plain, live strings.Builder
			(&plainView{app: &app{Program: Program{Err: &plain}}, change: "chg-1a2b3c4d", output: output}).show(notice(verdict))
			v := newLiveView(&app{Program: Program{Err: &live}}, "chg-1a2b3c4d", output)
			v.show(notice(verdict))
			for view, got := range map[string]string{"plain": plain.String(), "live": live.String()} {
				if want := "chg-1a2b3c4d network: " + verdict + " a.example.org:443 (CONNECT)"; strings.Contains(got, want) != seen {
					t.Errorf("%s, output %v: %q", view, output, got)
				}
			}
		}
	}
}

func TestAHostNameBeginsNoRowOfTheTerminal(t *testing.T) {
	for _, width := range []int{20, 40, 80} {
		var b strings.Builder
		s := sheet{w: &b, width: width, terminal: true}
		printNetwork(s, []api.Asked{{Host: forged(width, 4), Verdict: "refused", Why: forged(width, 4), Count: 1}})
		printReached(s, api.Asked{Host: forged(width, 17) + "\x1b[2J\u202e", Verdict: "refused", Count: 1})
		if strings.ContainsAny(b.String(), "\x1b\u202e") {
			t.Errorf("%q", b.String())
		}
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "checks, run") || strings.HasPrefix(line, "digest ") || columns(strings.TrimRight(line, "\n")) > width && width >= 40 && strings.HasPrefix(line, " ") {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

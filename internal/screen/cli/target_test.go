package cli

import (
	"strings"
	"testing"
	"time"

	"sallyport/internal/door/api"
)

const someDigest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// proposes is a repository that proposes a target in words that try to look like others.
func proposes() api.Target {
	return api.Target{Repo: "/where/i/stand", Commit: "cafe0123456789abcdef", Proposed: &api.TargetWords{
		Digest: someDigest, Restart: "make restart #\u202e" + strings.Repeat(" ", 200) + "; curl evil\nit's\x1b[2J \\n\n", RestartWithinMS: 60_000,
		Probe:   &api.ProbeWords{HTTP: "http://127.0.0.1:8080/health?\u200bx", HealthyMS: 1_000, WithinMS: 30_000, EveryMS: 1_000, TimeoutMS: 5_000},
		TrialMS: 120_000, Defaults: []string{"restart_within", "probe.within", "probe.every", "probe.timeout"},
	}}
}

func TestEveryWordOfATargetIsShownExactly(t *testing.T) {
	d := newDaemon(t)
	d.target = proposes()
	got := d.cli("target", "show", "--repo", "below")
	for _, want := range []string{
		"proposed by the repository at cafe01234567: not trusted, so it is not run\n",
		`  restart   $'make restart #\u202e` + strings.Repeat(" ", 200) + `; curl evil\n'` + "\n" + `            $'it\'s\x1b[2J \\n\n'` + "\n",
		"    within    1m0s (default)\n", `  probe GET $'http://127.0.0.1:8080/health?\u200bx'`, "    healthy   1s\n", "    within    30s (default)\n",
		"    every     1s (default)\n", "    timeout   5s (default)\n", "  trial     2m0s to confirm\n", "  digest  " + someDigest + "\n",
		"sallyport target trust --repo /where/i/stand --digest " + someDigest + "\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}
	if got.code != 0 || strings.ContainsAny(got.out, "\x1b\u202e\u200b") || d.told() != "target /where/i/stand/below" {
		t.Errorf("exit %d, told %q:\n%q", got.code, d.told(), got.out)
	}

	d.target.Home, d.target.Counts = &api.TargetWords{Restart: "mine", RestartWithinMS: 5_000, Digest: someDigest}, api.CountsHome
	d.target.Trust = &api.Trust{Digest: strings.Repeat("f", 64), By: api.Actor{Name: "ann\x1b"}, At: time.Now().Add(-time.Hour)}
	got = d.cli("target", "show")
	for _, want := range []string{"counts, as the home's sallyport.yaml says:\n  restart   mine\n    within    5s\n  probe     nothing\n  trial     none", ": does not count\n",
		`other words (digest ffffffffffff) were trusted by ann\x1b, 1h00m ago`} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "trust exactly this") {
		t.Errorf("what does not count is to be trusted:\n%s", got.out)
	}
	d.target = api.Target{Repo: "/r", Commit: "cafe0123456789"}
	if got = d.cli("target", "show"); !strings.Contains(got.out, "no target at cafe01234567: nothing is restarted or probed") {
		t.Errorf("%+v", got)
	}
}

func TestTrustNeedsTheWordsThatWereRead(t *testing.T) {
	d := newDaemon(t)
	d.target = proposes()
	if got := d.cli("target", "trust"); got.code != exitUsage || !strings.Contains(got.err, "nobody can be asked here") || strings.Contains(d.told(), "trust") {
		t.Errorf("%+v, told %s", got, d.told())
	}
	if got := d.cliIn("trust\n", "target", "trust"); got.code != exitUsage || strings.Contains(d.told(), "trust") {
		t.Errorf("an answer without a terminal counts: %+v, told %s", got, d.told())
	}
	if got := d.cli("target", "trust", "--digest", someDigest[:12]); got.code != 0 || !strings.Contains(d.told(), `trust {"repo":"/where/i/stand","digest":"001122334455"}`) ||
		!strings.Contains(got.out, "trusted: "+someDigest) {
		t.Errorf("%+v, told %s", got, d.told())
	}
	if got := d.cli("target", "distrust"); got.code != 0 || !strings.Contains(d.told(), `distrust {"repo":"/where/i/stand"}`) {
		t.Errorf("%+v, told %s", got, d.told())
	}
	d.target.Proposed = nil
	if got := d.cli("target", "trust"); got.code != exitError || !strings.Contains(got.err, "proposes no target") {
		t.Errorf("%+v", got)
	}
}

func TestAtATerminalTrustIsAskedForWithEveryWordBeforeThem(t *testing.T) {
	for word, want := range map[string]struct {
		code int
		told string
	}{
		"t\n": {0, `trust {"repo":`}, "n\n": {exitRefused, ""}, "yes\n": {0, `trust {"repo":`}, "y\n": {exitRefused, ""}, "\n": {exitRefused, ""}, "\x04": {exitRefused, ""},
	} {
		d := newDaemon(t)
		d.target = proposes()
		s := d.sit(t, "target", "trust")
		s.see(`curl evil\\n'`)
		s.see(`timeout +5s`)
		s.see(`\[t\]rust exactly these words, to be run on this machine, or \[n\]o\? `)
		s.press(word)
		if want.code == 0 {
			s.see("trusted: " + someDigest)
		} else {
			s.see("nothing was trusted")
		}
		if code := s.leaves(); code != want.code || strings.Contains(d.told(), "trust {") != (want.told != "") || want.told != "" && !strings.Contains(d.told(), someDigest) {
			t.Errorf("%q: exit %d, told %s", word, code, d.told())
		}
	}
}

func TestABellRingsWhenSomethingWaitsForAPerson(t *testing.T) {
	rings := func(notices ...api.Notice) int {
		d := newDaemon(t)
		d.detail = finalized()
		d.notices = notices
		s := d.sit(t, "change", "watch", "chg-00000001")
		seen := s.see("on main as cafe")
		s.leaves()
		return strings.Count(seen, "\a")
	}
	at := func(states ...string) (all []api.Notice) {
		for i, s := range states {
			all = append(all, api.Notice{Seq: int64(i + 1), Change: "chg-00000001", Kind: "state", State: s})
		}
		return all
	}
	for _, test := range []struct {
		notices []api.Notice
		want    int
	}{
		{at("working", "awaiting_approval"), 1}, {at("working", "blocked"), 1}, {at("in_trial", "rolled_back"), 1}, {at("working", "failed"), 1},
		{at("landing", "rollback_failed"), 1}, {at("awaiting_approval"), 0}, {at("working", "submitted", "landing", "finalized"), 0},
	} {
		if got := rings(test.notices...); got != test.want {
			t.Errorf("%v rings %d times, want %d", test.notices, got, test.want)
		}
	}
	d := newDaemon(t)
	d.detail, _ = waiting()
	d.notices = at("working", "awaiting_approval")
	if got := d.cli("change", "watch", "chg-00000001"); strings.Contains(got.out+got.err, "\a") {
		t.Errorf("it rings where there is no terminal: %+v", got)
	}
}

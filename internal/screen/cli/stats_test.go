package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

func measured() api.Stats {
	return api.Stats{
		Alerts: []api.Alert{
			{Name: "disk_change", Text: "one change takes 900 MiB" + hostile, LastedMS: 125_000},
			{Name: "pause_over_maximum", Text: "measure pause: 700ms", LastedMS: 10},
		},
		Measures: []api.Measure{
			{Name: "checkpoint", Count: 7, Window: 7, P50MS: 40.26, P95MS: 1500, P99MS: 1500, MaxMS: 1500, TargetMS: 500, MaximumMS: 2000, Verdict: "slow"},
			{Name: "event", TargetMS: 10, MaximumMS: 50, Verdict: "no data"},
		},
		Counts: []api.Count{{Name: "landings", Count: 2}}, Running: 1, Waiting: 3, UpperBytes: 2 << 20, ResidentBytes: 30 << 20, Descriptors: 25, QueueDepth: 1,
		Change: &api.Figures{Change: "chg-00000001", Valid: 4, Invalid: 1, LastMS: 12, LongestMS: 34, UpperMaxBytes: 5000},
	}
}

func TestStatsShowsAlertsFirstAndEachMeasureAgainstWhatItIsHeldTo(t *testing.T) {
	d := newDaemon(t)
	d.stats = measured()
	got := d.cli("stats", "chg-00000001")
	if got.code != exitDone || got.err != "" || d.told() != "stats change=chg-00000001" {
		t.Fatalf("exit %d, %q, told %q", got.code, got.err, d.told())
	}
	d.detail.Change.ID = "chg-ab000001"
	if d.cli("stats", "ab0"); !strings.HasSuffix(d.told(), "stats change=chg-ab000001") {
		t.Errorf("the beginning of an id: told %q", d.told())
	}
	if !strings.HasPrefix(got.out, "ALERT disk_change: one change takes 900 MiB") || strings.ContainsAny(got.out, "\x1b\r\u202e\u009b") {
		t.Errorf("out %q", got.out)
	}
	for _, want := range []string{
		`\nALERT pause_over_maximum: measure pause: 700ms +for 10ms\n`,
		`\ncheckpoint +7 +40\.3ms +1\.5s +1\.5s +1\.5s +500ms +2s +slow\n`,
		`\nevent +0 +- +- +- +- +10ms +50ms +no data\n`,
		`\nlandings +2\n`,
		`\nsessions: 1 running, 3 waiting for a place\n`,
		`2 MiB on disk by all changes, 30 MiB of memory by the daemon, 25 descriptors, 1 waiting event\n`,
		`\nchg-00000001\n  checkpoints  4 valid, 1 invalid, 0 skipped, 0 not taken; the last took 12ms, the longest 34ms\n`,
	} {
		if !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("no %s in\n%s", want, got.out)
		}
	}
	d.stats = api.Stats{}
	if got := d.cli("stats"); !strings.HasPrefix(got.out, "no alert\n") {
		t.Errorf("out %q", got.out)
	}
}

func TestStatsInJSONIsTheAnswerAndInPrometheusFormTheScrape(t *testing.T) {
	d := newDaemon(t)
	d.stats, d.stream = measured(), "# TYPE x counter\nx 1\n"
	var out api.Stats
	if got := d.cli("stats", "--json"); json.Unmarshal([]byte(got.out), &out) != nil || len(out.Measures) != 2 || out.Change == nil {
		t.Errorf("out %q", got.out)
	}
	if got := d.cli("stats", "--prometheus"); got.code != exitDone || got.out != d.stream {
		t.Errorf("exit %d, out %q, err %q", got.code, got.out, got.err)
	}
	for _, words := range [][]string{{"stats", "a", "b"}, {"stats", "apr-00000001"}, {"stats", "--prometheus", "chg-00000001"}, {"stats", "--prometheus", "--json"}} {
		if got := d.cli(words...); got.code != exitUsage {
			t.Errorf("%v: exit %d, %q", words, got.code, got.err)
		}
	}
	d.err = problem.Errorf(problem.NotFound, "sallyport change show chg-00000001", "no figures of chg-00000001 are kept")
	if got := d.cli("stats", "chg-00000001"); got.code != exitError || !strings.Contains(got.err, "no figures of chg-00000001 are kept") {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}

func TestStatusSaysInOneLineWhatIsOverItsLimit(t *testing.T) {
	d := newDaemon(t)
	if got := d.cli("status"); strings.Contains(got.out, "alerts") {
		t.Errorf("out %q", got.out)
	}
	d.stats = measured()
	got := d.cli("status")
	if !strings.Contains(got.out, "alerts  2 figures over their limit: one change takes 900 MiB") || !strings.Contains(got.out, "; see sallyport stats\n") || strings.ContainsAny(got.out, "\x1b\u202e") {
		t.Errorf("out %q", got.out)
	}
}

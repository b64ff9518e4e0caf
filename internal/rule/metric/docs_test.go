package metric

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// The lists in docs/metrics.md are between these and what follows them.
const (
	docsPath   = "../../../docs/metrics.md"
	seriesHead = "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n"
	alertHead  = "| alert | raised when N is over | what N is |\n|---|---|---|\n"
)

// seriesTable is every metric that is registered, with the labels' values.
func seriesTable(t *testing.T) string {
	t.Helper()
	families, err := New(Options{}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		labels := map[string][]string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if !slices.Contains(labels[l.GetName()], l.GetValue()) {
					labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
				}
			}
		}
		var words []string
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			values := strings.Join(labels[name], ", ")
			if name == "alert" {
				values = "below"
			}
			words = append(words, "`"+name+"`: "+values)
		}
		unit := "number"
		switch name := f.GetName(); {
		case strings.HasSuffix(name, "_seconds"):
			unit = "seconds"
		case strings.Contains(name, "_bytes"):
			unit = "bytes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), unit, strings.Join(words, "; "), f.GetHelp())
	}
	return b.String()
}

func alertTable() string {
	var b strings.Builder
	for _, r := range rules {
		of := strings.TrimSuffix(r.say, "; the alert is at %s")
		for _, cut := range []string{"; the limit is %s", ", each over %s", ": %s, and the maximum is %s"} {
			of = strings.TrimSuffix(of, cut)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Name, quantity(r.Limit, r.Unit), strings.ReplaceAll(of, "%s", "N"))
	}
	return b.String()
}

func TestTheDocsNameEveryMetricAndAlertAndNoOther(t *testing.T) {
	raw, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for head, want := range map[string]string{seriesHead: seriesTable(t), alertHead: alertTable()} {
		before, rest, ok := strings.Cut(text, head)
		if !ok {
			t.Fatalf("docs/metrics.md has no table %q", head)
		}
		got := rest
		if end := strings.Index(rest, "\n\n"); end >= 0 {
			got = rest[:end+1]
		}
		if got == want {
			continue
		}
		if os.Getenv("UPDATE_DOCS") == "" {
			t.Errorf("docs/metrics.md is not what is registered; run: make docs\n--- got\n%s--- want\n%s", got, want)
			continue
		}
		text = before + head + want + strings.TrimPrefix(rest, got)
		disktest.Put(t, docsPath, text, 0o644)
	}
}

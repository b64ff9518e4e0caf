// Package bench measures the product's steps and, in turn in the same run, what one would do without it.
// `make bench` writes docs/benchmarks.md with it, `make bench-quick` prints a small run.
package bench_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	wt "sallyport/internal/path/workspace/workspacetest"
)

var (
	reportFile = flag.String("report", "", "the page to write, beside which the picture of the growth goes; none if empty")
	sizes      = flag.String("sizes", "1000", "sizes of the repositories, in files, with commas between")
	rounds     = flag.Int("rounds", 3, "how often ours and the rival take turns; at least 1")
	landings   = flag.Int("landings", 30, "how many landings the growth series has; at least 20")
	agents     = flag.Int("agents", 10, "how many agents wait at once")
)

func TestMain(m *testing.M) { wt.Main(m) }

// row is one comparison: what was measured, how long it took each time, and what the goal is.
type row struct {
	path  string // of PERFORMANCE's table, in a reader's words
	size  int    // files of the repository; 0 = it has no part in it
	ours  string // what ours does
	rival string // what it is compared with; "" = with nothing
	goal  goalAt // ours ÷ rival, or with no rival milliseconds, at the most; nil = it is only told, or it is within
	note  string // where the rival does less, or ours more
	why   string // where its time goes, for a goal that is missed
	// within is the goal where that is a time, whatever the rival takes; 0 = it is none.
	within time.Duration

	took, rivals []time.Duration
}

// spread is the least, the middle and the most of a series.
type spread struct{ min, median, max time.Duration }

func spreadOf(series []time.Duration) spread {
	s := slices.Sorted(slices.Values(series))
	return spread{s[0], s[len(s)/2], s[len(s)-1]}
}

func (s spread) String() string {
	return milliseconds(s.min) + " / " + milliseconds(s.median) + " / " + milliseconds(s.max)
}

// milliseconds has three digits that count, or all before the point.
func milliseconds(d time.Duration) string {
	ms := d.Seconds() * 1e3
	digits := 2
	for n := ms; n >= 10 && digits > 0; n /= 10 {
		digits--
	}
	return strconv.FormatFloat(ms, 'f', digits, 64)
}

// goalAt is a row's goal by the size of its repository, in files: that of the largest size that it has. Below the smallest there is none.
type goalAt map[int]float64

func (g goalAt) of(files int) (most float64) {
	for _, size := range slices.Sorted(maps.Keys(g)) {
		if files >= size*9/10 {
			most = g[size]
		}
	}
	return most
}

// String is the goal in words.
func (g goalAt) String() string {
	var out []string
	for _, size := range slices.Sorted(maps.Keys(g)) {
		text := "≤ " + strconv.FormatFloat(g[size], 'g', 2, 64)
		if size > 0 {
			text += " at " + thousands(size) + " files"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// ratio is how long ours takes for one of the rival's, by the medians; 0 with no rival.
func (r row) ratio() float64 {
	if len(r.rivals) == 0 {
		return 0
	}
	return spreadOf(r.took).median.Seconds() / spreadOf(r.rivals).median.Seconds()
}

// goals are the row's in words.
func (r row) goals() string {
	if r.within > 0 {
		return fmt.Sprintf("≤ %.0f ms", r.within.Seconds()*1e3)
	}
	return r.goal.String()
}

// met says whether the goal is met: yes, no, or nothing where it is only told.
func (r row) met() string {
	figure := r.ratio()
	if len(r.rivals) == 0 && len(r.took) > 0 {
		figure = spreadOf(r.took).median.Seconds() * 1e3
	}
	switch {
	case r.within > 0 && spreadOf(r.took).median <= r.within:
		return "yes"
	case r.within > 0:
		return "no"
	case r.goal.of(r.size) == 0:
		return ""
	case figure <= r.goal.of(r.size):
		return "yes"
	}
	return "no"
}

// timed is how long a step takes.
func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// inTurn measures ours and the rival one after the other, as often as -rounds says. Each is done once before, uncounted, so that neither
// pays for the first look at a file. A rival that is nil is not measured.
func inTurn(b *testing.B, r row, ours, rival func() time.Duration) {
	b.Helper()
	ours()
	if rival != nil {
		rival()
	}
	for range max(*rounds, 1) {
		r.took = append(r.took, ours())
		if rival != nil {
			r.rivals = append(r.rivals, rival())
		}
	}
	record(b, r)
}

// record tells of a row, and writes the page with all that there are: an end in the middle loses nothing.
func record(b *testing.B, r row) {
	b.Helper()
	rows = append(rows, r)
	b.ReportMetric(spreadOf(r.took).median.Seconds()*1e3, "ours-ms")
	said := fmt.Sprintf("%s: %s ms", r.name(), spreadOf(r.took))
	if len(r.rivals) > 0 {
		b.ReportMetric(r.ratio(), "ratio")
		said += fmt.Sprintf(" against %s ms, %s: %.3g (goal: %s)", spreadOf(r.rivals), r.rival, r.ratio(), r.goals())
	}
	b.Log(said)
	write(b)
}

func (r row) name() string {
	if r.size == 0 {
		return r.path
	}
	return r.path + ", " + thousands(r.size) + " files"
}

// thousands writes a number with a comma before each three digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// eachSize runs f for every size that was asked for.
func eachSize(b *testing.B, f func(b *testing.B, files int)) {
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 100 {
			b.Fatalf("-sizes %q: a number of files of at least 100 is wanted", text)
		}
		b.Run(text, func(b *testing.B) { f(b, n) })
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// needs skips, loudly, where a program is absent.
func needs(b *testing.B, programs ...string) {
	b.Helper()
	for _, name := range programs {
		if _, err := lookPath(name); err != nil {
			b.Skipf("SKIPPED: %s is not installed", name)
		}
	}
}

func lookPath(name string) (string, error) {
	for _, dir := range append(strings.Split(os.Getenv("PATH"), ":"), "/usr/lib/postgresql/15/bin") {
		path := dir + "/" + name
		if st, err := os.Stat(path); err == nil && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, os.ErrNotExist)
}

package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rows are what has been measured so far; series is the growth, by landing; idle is what a daemon takes that does nothing.
var (
	rows   []row
	series []landed
	idle   string
)

const preface = `# Benchmarks

Each row is ours and what one would do without it, measured in turn in the same run. The figures are least / median /
most, in milliseconds. The ratio is ours divided by the rival's, by the medians: below 1 ours is faster. A goal that is
missed says no. The machine may be busy with other work meanwhile: then the times grow, and the ratios count.

` + "`make bench`" + ` writes this page. It takes about an hour. ` + "`make bench-quick`" + ` prints a small run in a minute or two. A run
that is ended early has the rows that it came to.
`

// write writes the page and the picture, if a page was asked for.
func write(b *testing.B) {
	b.Helper()
	if *reportFile == "" {
		return
	}
	var page strings.Builder
	page.WriteString(preface + "\n" + machine() + "\n")

	page.WriteString("## Steps\n\n| what | files | ours | rival | ratio | goal | met |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		files, rival, ratio := "", "", ""
		if r.size > 0 {
			files = thousands(r.size)
		}
		if len(r.rivals) > 0 {
			rival, ratio = spreadOf(r.rivals).String(), fmt.Sprintf("%.3g", r.ratio())
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s | %s | %s |\n", r.path, files, spreadOf(r.took), rival, ratio, r.goals(), r.met())
	}

	if idle != "" {
		page.WriteString("\n" + wrapped(idle, ""))
	}

	page.WriteString("\n## What was measured\n\n")
	var told []string
	for _, r := range rows {
		if slices.Contains(told, r.path) {
			continue
		}
		told = append(told, r.path)
		rival := ""
		if r.rival != "" {
			rival = "; the rival: " + r.rival
		}
		note := ""
		if r.note != "" {
			note = " (" + r.note + ")"
		}
		page.WriteString(wrapped("- **"+r.path+"**: "+r.ours+rival+note+".", "  "))
	}

	page.WriteString(missed(rows))
	if len(series) > 0 {
		page.WriteString("\n" + growthTable())
		picture := filepath.Join(filepath.Dir(*reportFile), "growth.svg")
		must(b, os.WriteFile(picture, []byte(growthPicture()), 0o644))
	}
	must(b, os.WriteFile(*reportFile, []byte(page.String()), 0o644))
}

// missed says where the time goes in what misses its goal at some size; nothing if all are met.
func missed(rows []row) string {
	var out strings.Builder
	var told []string
	for _, r := range rows {
		if r.met() != "no" || r.why == "" || slices.Contains(told, r.path) {
			continue
		}
		told = append(told, r.path)
		out.WriteString(wrapped("- **"+r.path+"**: "+r.why+".", "  "))
	}
	if out.Len() == 0 {
		return ""
	}
	return "\n## What misses its goal, and where its time goes\n\n" + out.String()
}

// wrapped breaks a paragraph at 118 columns; lines after the first begin with indent.
func wrapped(text, indent string) string {
	var out strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > 118 {
			out.WriteString(line + "\n")
			line = indent + word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return out.String() + line + "\n"
}

// machine says where the figures come from: its processor, kernel, file system and git, the method, and how busy it was.
func machine() string {
	processor := "an unknown processor"
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				processor = strings.TrimSpace(value)
				break
			}
		}
	}
	var uts unix.Utsname
	_ = unix.Uname(&uts) // then it is told as nothing
	kernel := strings.SplitN(unix.ByteSliceToString(uts.Release[:]), ".", 3)
	version := ""
	if out, err := exec.Command("git", "version").Output(); err == nil {
		version = strings.TrimSpace(string(out))
	}
	load := ""
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		now, _, _ := strings.Cut(string(raw), " ")
		load = " The machine's load was " + now + " at the end."
	}
	return wrapped(fmt.Sprintf("Measured on %d cores of %s, Linux %s, %s, %s on %s, in %d rounds.%s", runtime.NumCPU(), processor,
		strings.Join(kernel[:min(2, len(kernel))], "."), runtime.Version(), version, fileSystem(os.TempDir()), *rounds, load), "")
}

// fileSystem names what a folder lies on.
func fileSystem(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "an unknown file system"
	}
	names := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs"}
	if name, ok := names[int64(fs.Type)]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", fs.Type)
}

func TestARowTellsWhetherItsGoalIsMet(t *testing.T) {
	for name, test := range map[string]struct {
		row  row
		want string
	}{
		"met":              {row{goal: goalAt{0: 0.5}, took: ms(4, 5, 6), rivals: ms(10, 10, 10)}, "yes"},
		"missed":           {row{goal: goalAt{0: 0.49}, took: ms(4, 5, 6), rivals: ms(10, 10, 10)}, "no"},
		"by the median":    {row{goal: goalAt{0: 0.5}, took: ms(5, 5, 500), rivals: ms(10, 10, 10)}, "yes"},
		"no rival, met":    {row{goal: goalAt{0: 5}, took: ms(5)}, "yes"},
		"no rival, missed": {row{goal: goalAt{0: 4.9}, took: ms(5)}, "no"},
		"met at this size": {row{size: 9_500, goal: goalAt{10_000: 0.5, 100_000: 0.1}, took: ms(5), rivals: ms(10)}, "yes"},
		"a small size":     {row{size: 1_000, goal: goalAt{10_000: 0.1}, took: ms(5), rivals: ms(10)}, ""},
		"in time":          {row{within: 5 * time.Millisecond, took: ms(5), rivals: ms(1)}, "yes"},
		"late":             {row{within: 5 * time.Millisecond, took: ms(6), rivals: ms(60)}, "no"},
		"only told of":     {row{took: ms(5), rivals: ms(1)}, ""},
	} {
		if got := test.row.met(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestWhereTheTimeGoesIsToldOnceOfWhatMissesItsGoal(t *testing.T) {
	slow := row{path: "slow", why: "it waits", goal: goalAt{0: 1}, took: ms(5), rivals: ms(1)}
	fast := row{path: "fast", why: "it waits", goal: goalAt{0: 9}, took: ms(5), rivals: ms(1)}
	if got, want := missed([]row{fast, slow, slow}), "\n## What misses its goal, and where its time goes\n\n- **slow**: it waits.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := missed([]row{fast}); got != "" {
		t.Errorf("of what meets its goal: %q", got)
	}
}

func TestAParagraphIsNoWiderThanItsColumns(t *testing.T) {
	text := strings.Repeat("some words ≤ here ", 40)
	lines := strings.Split(strings.TrimSpace(wrapped(text, "  ")), "\n")
	if len(lines) < 6 {
		t.Errorf("%d lines", len(lines))
	}
	for n, line := range lines {
		if len([]rune(line)) > 118 || (n > 0) != strings.HasPrefix(line, "  ") {
			t.Errorf("line %d: %q", n, line)
		}
	}
	if strings.Join(strings.Fields(text), " ") != strings.Join(strings.Fields(strings.Join(lines, " ")), " ") {
		t.Error("words are lost")
	}
}

// ms are times, in milliseconds.
func ms(of ...int) (out []time.Duration) {
	for _, n := range of {
		out = append(out, time.Duration(n)*time.Millisecond)
	}
	return out
}

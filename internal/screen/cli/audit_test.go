package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// audited are entries as a store appends them, with texts that are hard to write.
func audited(n int) (all []api.Entry) {
	texts := []string{"plain", `"quoted"\` + "\n\t\x1b[31m\x7f", "<b>&amp;</b>", "ü€𝄞\u2028\u202e\ufffd", `"}`, `"hash":"x"}`, ""}
	previous := ""
	for i := range n {
		e := api.Entry{Seq: int64(i + 1), At: time.UnixMilli(1e12 + int64(i)*250).UTC(), Change: "chg-00000001", Subject: "chg-00000001",
			Verb: "noted", Reason: texts[i%len(texts)], Previous: previous}
		e.Actor.Kind, e.Actor.Name, e.Actor.UID = "person", texts[(i+1)%len(texts)], 1000
		if i%2 == 0 {
			e.Digests = map[string]string{"tree": "t", "base": texts[i%len(texts)]}
		}
		e.Hash = e.Sum()
		previous = e.Hash
		all = append(all, e)
	}
	return all
}

// checker is the program of the docs page, as it stands there.
func checker(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("SKIPPED: python3 is not installed")
	}
	page, err := os.ReadFile("../../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```python\n")
	program, _, closed := strings.Cut(program, "```")
	if lines := strings.Count(program, "\n"); !found || !closed || lines > 10 {
		t.Fatalf("the page has no program of ten lines, but %d", lines)
	}
	path := filepath.Join(t.TempDir(), "check.py")
	disktest.Put(t, path, program, 0o600)
	return path
}

func TestTheProgramOfTheDocsChecksAnExportAndFindsWhatWasAltered(t *testing.T) {
	program := checker(t)
	all := audited(20)
	d := newDaemon(t)
	d.audit = all
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.jsonl")
	if got := d.cli("audit", "export", "--out", whole); got.code != exitDone || !strings.Contains(got.out, "20 entries") {
		t.Fatalf("%+v", got)
	}
	if info, err := os.Stat(whole); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if got := d.cli("audit", "export", "--out", whole); got.code != exitRefused || !strings.Contains(got.err, inert.Path(whole)) {
		t.Errorf("an export was overwritten: %+v", got)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.cli("audit", "export"); got.code != exitDone || got.out != string(raw) {
		t.Errorf("standard output has something else: %d %s", got.code, got.err)
	}
	check := func(text string, from ...string) (string, bool) {
		t.Helper()
		path := filepath.Join(dir, "checked.jsonl")
		disktest.Put(t, path, text, 0o600)
		out, err := exec.CommandContext(t.Context(), "python3", append([]string{program, path}, from...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err == nil
	}
	mark := func(i int) string { return fmt.Sprintf("%d:%s", all[i].Seq, all[i].Hash) }
	if out, ok := check(string(raw)); !ok || out != mark(19) {
		t.Errorf("a good export: %s", out)
	}
	lines := strings.SplitAfter(string(raw), "\n")[:20]
	join := func(l ...string) string { return strings.Join(l, "") }
	after := d.cli("audit", "export", "--after", "12").out
	if out, ok := check(after, mark(11)); !ok || after != join(lines[12:]...) || out != mark(19) {
		t.Errorf("an export of the rest: %s", out)
	}
	if out, ok := check(after); ok {
		t.Errorf("a rest passes as a whole: %s", out)
	}
	for name, c := range map[string]struct{ text, at string }{
		"a word":        {strings.Replace(string(raw), "plain", "plane", 1), "entry 1 was altered"},
		"a time":        {join(append([]string{strings.Replace(lines[0], "2001", "2002", 1)}, lines[1:]...)...), "entry 1 was altered"},
		"a field more":  {join(strings.Replace(lines[0], `{"seq"`, `{"x":1,"seq"`, 1), join(lines[1:]...)), "entry 1 was altered"},
		"a hash":        {strings.Replace(string(raw), all[4].Hash, strings.Repeat("0", 64), 1), "entry 5 was altered"},
		"one taken out": {join(join(lines[:7]...), join(lines[8:]...)), "entry 9 does not follow entry 7"},
		"two exchanged": {join(join(lines[:7]...), lines[8], lines[7], join(lines[9:]...)), "entry 9 does not follow entry 7"},
		"the first":     {join(lines[1:]...), "entry 2 does not follow entry 0"},
	} {
		if out, ok := check(c.text); ok || out != c.at {
			t.Errorf("%s: %s", name, out)
		}
	}
	if out, ok := check(join(lines[:15]...)); !ok || out != mark(14) {
		t.Errorf("a file that was cut off is not told by its number: %s", out)
	}
}

func TestVerifyNamesWhatIsWrongAndEndsWithAnError(t *testing.T) {
	d := newDaemon(t)
	d.report = api.AuditReport{Entries: 9, Since: 1}
	d.report.Last.Seq, d.report.Last.Hash = 9, strings.Repeat("0a", 32)
	if got := d.cli("audit", "verify"); got.code != exitDone || !strings.Contains(got.out, "9 entries, every hash holds") || !strings.Contains(got.out, "9:0a0a") {
		t.Errorf("%+v", got)
	}
	d.report.Faults = append(d.report.Faults, struct {
		Entry int64  `json:"entry"`
		Text  string `json:"text"`
	}{41, "entries 41 to 43 are missing \x1b[31m"})
	for _, words := range [][]string{{"audit", "verify"}, {"audit", "list", "--verify"}} {
		got := d.cli(words...)
		if got.code != exitError || !strings.Contains(got.out+got.err, "entries 41 to 43 are missing") || !strings.Contains(got.err, "audit list --after 39") || strings.Contains(got.out+got.err, "\x1b") {
			t.Errorf("%+v", got)
		}
	}
	if got := d.cli("audit", "verify", "--json"); got.code != exitError || !strings.Contains(got.out, `"entry": 41`) {
		t.Errorf("%+v", got)
	}
}

// TestAnAuditThatGoesOnSaysSo holds that who lists a part of the audit is not left to take it for all.
func TestAnAuditThatGoesOnSaysSo(t *testing.T) {
	d := newDaemon(t)
	d.audit = audited(3)
	if got := d.cli("audit", "list", "--limit", "3", "--change", "chg-00000001"); got.code != exitDone || !strings.Contains(got.err, "the list ends at its limit, at entry 3\n") ||
		!strings.Contains(got.err, "next: sallyport audit list --after 3 --change chg-00000001\n") {
		t.Errorf("at its limit: %+v", got)
	}
	if got := d.cli("audit", "list"); strings.Contains(got.err, "next:") {
		t.Errorf("all of it: %+v", got)
	}
	d.detail.Change.ID = "chg-ab000001"
	if got := d.cli("audit", "list", "--limit", "3", "--change", "ab0"); !strings.Contains(got.err, "next: sallyport audit list --after 3 --change chg-ab000001\n") {
		t.Errorf("of the beginning of an id: %+v", got)
	}
}

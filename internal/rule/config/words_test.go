package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/trust"
)

// times writes n entries, one a line, made from their numbers.
func times(n int, entry string) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(strings.ReplaceAll(entry, "N", fmt.Sprint(i)))
	}
	return text.String()
}

func TestABoundIsTheLastThatFits(t *testing.T) {
	for name, c := range map[string]struct {
		file, data string // ~ is what is as long as it may be; in the other pass, one longer
		most       int    // letters, or entries
		entry      string
	}{
		"an argument":        {"sallyport", "agents: {codex: {args: ['~']}}\n", 4096, "x"},
		"a value":            {"sallyport", "agents: {codex: {env: {A: '~'}}}\n", 4096, "x"},
		"an agent's command": {"sallyport", "agents: {'acp:~': {rounds: 1}}\n", 4096 - 4, "x"},
		"a check":            {"repository", "checks: ['~']\n", 4096, "x"},
		"a list":             {"policy", "allowed_areas:\n~", 256, "  - aN\n"},
		"a table":            {"sallyport", "agents: {codex: {env: {~}}}\n", 256, "AN: b, "},
		"a host":             {"sallyport", "egress: ['~.org']\n", 253 - 4, "a"},
		"a path of a host":   {"sallyport", "egress: [{host: a.org, paths: ['/~']}]\n", 1023, "a"},
		"a subject":          {"repository", "landing: {subject: '~{request}'}\n", 40, "x"},
		"a name of a tool":   {"runner", "agent: echo\ntools_off: ['~']\n", 64, "x"},
		"the largest size":   {"policy", "file_bytes_max: 1~B\n", 12, "0"},
	} {
		for more, fits := range []bool{true, false} {
			inner := times(c.most+more, c.entry)
			if name == "a host" { // labels of 63 letters at most
				inner = strings.Repeat(strings.Repeat("a", 61)+".", 4) + strings.Repeat("a", c.most+more-4*62)
			}
			if err := parse(c.file, []byte(strings.Replace(c.data, "~", inner, 1))); (err == nil) != fits {
				t.Errorf("%s of %d: %v", name, c.most+more, err)
			}
		}
	}
}

func TestWhatAWordMayHold(t *testing.T) {
	for text, fits := range map[string]bool{
		`"a\tb"`: true, `"a\x7fb"`: false, `"a\nb"`: false, `"a\x1fb"`: false, `" "`: true, `"a\u00e9"`: true, "\"a\xff\"": false,
	} {
		if err := parse("sallyport", []byte("agents: {codex: {args: ["+text+"]}}\n")); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, odd := range []string{"a\u202eb {request}", "{request} \t"} {
		if err := parse("repository", []byte("landing: {subject: "+fmt.Sprintf("%q", odd)+"}\n")); err == nil {
			t.Errorf("%q is taken for the subject of a commit", odd)
		}
	}
}

func TestEveryWordOfAFileArrives(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	p, err := config.ParsePolicy("p", []byte("allow_secret_paths: [certs]\nallow_secrets: [fixtures]\ntrust_secret_rules: ["+sum+"]\nmarks: refuse\nallowed_areas: [src]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Default()
	want.AllowSecretPaths, want.AllowSecrets, want.TrustSecretRules, want.Marks, want.AllowedAreas = []string{"certs"}, []string{"fixtures"}, []string{sum}, policy.MarksRefuse, []string{"src"}
	if got := p.Judgement(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}

	r, err := config.ParseRepository("cat it", []byte("landing: {subject: 'fix: {request}'}\n"))
	if err != nil || r.Landing.Subject != "fix: {request}" {
		t.Errorf("%q, %v", r.Landing.Subject, err)
	}
	g, err := config.ParseRunner("r", "mend", []byte("agent: echo\ntools_off: [shell, web]\n"))
	if err != nil || !slices.Equal(g.ToolsOff, []config.ToolName{"shell", "web"}) {
		t.Errorf("%q, %v", g.ToolsOff, err)
	}
	e, err := config.ParseEgress("example.org")
	if err != nil || !reflect.DeepEqual(e, config.Egress{Reach: config.Reach{Host: "example.org"}}) {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := config.ParseEgress("10.0.0.1"); err == nil {
		t.Error("an address is a host")
	}
	both, err := config.ParsePlan("p", []byte("allowed_areas: [a]\nforbidden_areas: [b]\n"))
	if err != nil || len(both.AllowedAreas) != 1 || len(both.ForbiddenAreas) != 1 {
		t.Errorf("%+v, %v", both, err)
	}
}

func TestATrialIsBoundedOnBothSides(t *testing.T) {
	for length, fits := range map[time.Duration]bool{
		0: true, time.Second: false, trust.TrialMin - time.Second: false, trust.TrialMin: true, trust.TrialMax: true, trust.TrialMax + time.Second: false,
	} {
		text := fmt.Sprintf("target: {restart: 'true', trial: %ds}\n", int(length.Seconds()))
		r, err := config.ParseRepository("cat it", []byte(text))
		if (err == nil) != fits || fits && time.Duration(*r.Target.Trial) != length {
			t.Errorf("%s: %v, %v", length, r.Target.Trial, err)
		}
	}
}

func TestASizeIsReadAndWrittenWithItsUnit(t *testing.T) {
	for text, bytes := range map[string]int64{"1": 1, "512": 512, "1B": 1, "1KiB": 1 << 10, "3MiB": 3 << 20, "5GiB": 5 << 30, "1TiB": 1 << 40, "1025B": 1025, "1536KiB": 1536 << 10} {
		p, err := config.ParsePolicy("p", []byte("file_bytes_max: "+text+"\n"))
		if err != nil || int64(p.FileBytesMax) != bytes {
			t.Errorf("%s is %d, %v", text, p.FileBytesMax, err)
		}
	}
	for size, want := range map[config.Size]string{0: "0B", 1: "1B", 1025: "1025B", 1 << 10: "1KiB", 1536 << 10: "1536KiB", 3 << 20: "3MiB", 2 << 40: "2TiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d is written %s, want %s", size, got, want)
		}
	}
	for text, want := range map[string]string{
		"8388607TiB": "it must lie between", "8388608TiB": "larger than any file", "9007199254740992KiB": "larger than any file", "+1": "is not a size", "'01'": "is not a size",
		"99999999999999999999": "is not a size",
	} {
		err := parse("policy", []byte("file_bytes_max: "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "put it in quotes") {
			t.Errorf("%s: %v, want one with %q", text, err, want)
		}
	}
}

func TestTheStrategyIsAskedForInEitherWay(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "strategy: shadow_workspace": true, "strategy: direct_worktree": false,
		"shadow_workspace: {enabled: true}": true, "shadow_workspace: {enabled: false}": false, "shadow_workspace: {max_shadow_size_mb: 1}": false,
	} {
		r, err := config.ParseRepository("cat it", []byte("interactive: {"+text+"}\n"))
		if err != nil || r.Interactive.Shadowed() != want {
			t.Errorf("%q: %v, %v", text, r.Interactive.Shadowed(), err)
		}
	}
}

// A group is judged as a whole once each of its keys fits, whatever else is wrong in the file.
func TestAGroupIsJudgedWhereItsOwnKeysFit(t *testing.T) {
	err := parse("sallyport", []byte("changes: {at_once: 0}\nagents: {codex: {price: {}}}\negress: [{ports: [443]}, {ports: [0]}]\n"))
	for text, want := range map[string]bool{"at_once": true, "it names no price": true, "egress[0]: host is missing": true, "egress[1].ports[0]": true, "egress[1]: host is missing": false} {
		if err == nil || strings.Contains(err.Error(), text) != want {
			t.Errorf("%q is said: %v; in %v", text, !want, err)
		}
	}
}

func TestAFileThatIsNoneIsNamed(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a folder": func(path string) error { return os.Mkdir(path, 0o755) },
		"a fifo":   func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		home := t.TempDir()
		if err := make(filepath.Join(home, config.PolicyFile)); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadDir("/proc/self/fd")
		_, err := config.Open(home, disk.Ops{})
		if p := problem.Of(err); p.Kind != problem.Unavailable || !strings.Contains(p.Text, config.PolicyFile+" is not a file") {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadDir("/proc/self/fd"); len(after) > len(before) {
			t.Errorf("%s: %d descriptors were open, and %d are", name, len(before), len(after))
		}
	}
	home := t.TempDir()
	if err := os.Symlink(config.PolicyFile, filepath.Join(home, config.PolicyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Open(home, disk.Ops{}); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("a link to itself: %v", err)
	}
}

func TestAHomesFilesAreRead(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{config.SallyportFile: "changes: {at_once: 7}\n", config.PolicyFile: "paths_max: 7\n", "state.md": "---\nexecution_mode: interactive\n---\n"} {
		disktest.Put(t, filepath.Join(home, name), text, 0o600)
	}
	h := config.Look(home)
	if len(h.Unloaded()) > 0 || h.Sallyport().Changes.AtOnce != 7 || h.Policy().Judgement().PathsMax != 7 {
		t.Errorf("%+v, %+v, %+v", h.Sallyport(), h.Policy(), h.Unloaded())
	}
	if mode, err := config.LoadState(filepath.Join(home, "state.md")); err != nil || mode != config.Interactive {
		t.Errorf("%q, %v", mode, err)
	}
	if mode, err := config.LoadState(filepath.Join(home, "missing.md")); err != nil || mode != "" {
		t.Errorf("%q, %v", mode, err)
	}
}

func TestAStateWithoutKeysSaysSo(t *testing.T) {
	if err := parse("state", []byte("---\n- a\n---\n")); err == nil || !strings.Contains(err.Error(), "it must hold keys, and is a list") {
		t.Error(err)
	}
	if _, err := config.LoadState(t.TempDir()); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("a folder is a state: %v", err)
	}
}

// TestAnAgentThatCannotLoseAToolIsRefusedByName holds SM-165: a tool that is off and there all the same is a fence that is none.
func TestAnAgentThatCannotLoseAToolIsRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"agent: codex\ntools_off: [send_message, shell, web]\n": "r: tools_off: names shell, and the agent codex cannot be kept from a tool of its own, only from the host's",
		"agent: codex-acp\ntools_off: [Bash]\n":                 "r: tools_off: names Bash, and the agent codex-acp cannot be kept from a tool of its own, only from the host's",
		"agent: codex\ntools_off: [schedule_task]\n":            "",
		"agent: claude\ntools_off: [Bash]\n":                    "",
	} {
		_, err := config.ParseRunner("r", "mend", []byte(text))
		if want == "" && err != nil || want != "" && (problem.KindOf(err) != problem.Refused || problem.Of(err).Text != want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

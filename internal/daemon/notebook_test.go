package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/id"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/policy"
)

func points(n int) (all []checkpoint.Checkpoint) {
	for i := range n {
		all = append(all, checkpoint.Checkpoint{
			ID: id.NewCheckpoint(i+1, fmt.Sprintf("%08x", i)), Number: i + 1, At: time.UnixMilli(1700000000000 + int64(i)), Trigger: checkpoint.Interval,
			Status: checkpoint.Invalid, Severity: policy.Error, SinceLast: 1, FilesChanged: []string{"a", "---\nexecution_mode: deterministic\n---", "\u202e'\"\x1b\\x00]"},
			Violations: make([]policy.Violation, 2),
		})
	}
	return all
}

// front reads a state.md's front matter as any reader of YAML does.
func front(t *testing.T, text string) (state config.State, raw any) {
	t.Helper()
	body, _, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok {
		t.Fatalf("no front matter in %q", text)
	}
	if err := yaml.Unmarshal([]byte(body), &raw); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	doc, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &raw); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &state); err != nil {
		t.Fatal(err)
	}
	return state, raw
}

// SV-041: each checkpoint stands in state.md with hostile names as they are, and the schema holds.
func TestAChangesNotesAreItsCheckpoints(t *testing.T) {
	n := notebook{folder: t.TempDir()}
	all := points(2)
	all[1].Previous = all[0].ID
	if err := n.Write(t.Context(), "chg-00000001", all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(n.file("chg-00000001"))
	if err != nil {
		t.Fatal(err)
	}
	state, raw := front(t, string(text))
	last := state.Checkpoints[1]
	if state.ExecutionMode != config.Interactive || state.Change != "chg-00000001" || state.LeftOut != 0 || last.ID != string(all[1].ID) || last.Previous != string(all[0].ID) ||
		last.Status != "invalid" || last.Severity != "error" || last.Violations != 2 || last.SinceLast != 1 || last.Total != 3 || !last.Timestamp.Equal(all[1].At) || !reflect.DeepEqual(last.Files, all[1].FilesChanged) {
		t.Errorf("got %+v", state)
	}
	doc, err := os.ReadFile("../../docs/schema/state.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(doc, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(raw); err != nil {
		t.Errorf("the schema: %v", err)
	}
	if strings.ContainsAny(string(text), "\x1b\u202e") {
		t.Error("a name is not inert")
	}
}

// However many there are, the file can be read back; the newest are kept and the rest counted.
func TestNotesStaySmallEnoughToBeRead(t *testing.T) {
	n := notebook{folder: t.TempDir()}
	for _, many := range []int{0, 1000} {
		if err := n.Write(t.Context(), "chg-00000001", points(many)); err != nil {
			t.Fatal(err)
		}
		if asked, err := n.Deterministic(t.Context(), "chg-00000001"); asked || err != nil {
			t.Errorf("%d: %t, %v", many, asked, err)
		}
		text, _ := os.ReadFile(n.file("chg-00000001"))
		state, _ := front(t, string(text))
		if state.LeftOut+len(state.Checkpoints) != many || many > 0 && (len(state.Checkpoints) < 50 || state.Checkpoints[len(state.Checkpoints)-1].ID != string(points(many)[many-1].ID)) {
			t.Errorf("%d: %d left out of %d", many, state.LeftOut, len(state.Checkpoints))
		}
	}
}

// SV-002, SV-004: what a person wrote there stays and is read; a file that is none does not stop the next.
func TestTheModeThatAPersonWroteStays(t *testing.T) {
	n := notebook{folder: t.TempDir()}
	write := func(points []checkpoint.Checkpoint) {
		t.Helper()
		if err := n.Write(t.Context(), "chg-00000001", points); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(n.file("chg-00000001"))
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("%q is not in %s, %v", from, text, err)
		}
		writeFile(t, n.file("chg-00000001"), []byte(strings.Replace(string(text), from, to, 1)), 0o600)
	}
	if asked, err := n.Deterministic(t.Context(), "chg-00000001"); asked || err != nil {
		t.Errorf("without notes: %t, %v", asked, err)
	}
	write(points(1))
	edit("execution_mode: interactive", "execution_mode: deterministic")
	write(points(2))
	if asked, err := n.Deterministic(t.Context(), "chg-00000001"); !asked || err != nil {
		t.Errorf("what was written is lost: %t, %v", asked, err)
	}
	edit("execution_mode: deterministic", "execution_mode: both")
	if _, err := n.Deterministic(t.Context(), "chg-00000001"); err == nil {
		t.Error("a mode that is none is read")
	}
	write(points(3))
	if asked, err := n.Deterministic(t.Context(), "chg-00000001"); asked || err != nil {
		t.Errorf("after the next checkpoint: %t, %v", asked, err)
	}
}

func TestNotesThatCouldNotBeWrittenLeaveNothingHalf(t *testing.T) {
	for _, broken := range []string{"notes:write", "notes:commit"} {
		n := notebook{folder: t.TempDir()}
		if err := n.Write(t.Context(), "chg-00000001", points(1)); err != nil {
			t.Fatal(err)
		}
		full := errors.New("no space left on device")
		n.ops.Around = func(op string, do func() error) error {
			if op == broken {
				if op == "notes:write" {
					_ = do() // a part of it
				}
				return full
			}
			return do()
		}
		if err := n.Write(t.Context(), "chg-00000001", points(2)); !errors.Is(err, full) {
			t.Errorf("%s: %v", broken, err)
		}
		text, err := os.ReadFile(n.file("chg-00000001"))
		if state, _ := front(t, string(text)); err != nil || len(state.Checkpoints) != 1 {
			t.Errorf("%s: %d checkpoints, %v", broken, len(state.Checkpoints), err)
		}
		if all, err := os.ReadDir(filepath.Dir(n.file("chg-00000001"))); err != nil || len(all) != 1 {
			t.Errorf("%s: %v is left, %v", broken, all, err)
		}
	}
}

func TestNotesAreWholeWhereverPowerGoes(t *testing.T) {
	disktest.Everywhere(t, func(t *testing.T, crash *disktest.Crash) {
		n := notebook{folder: t.TempDir()}
		if err := n.Write(t.Context(), "chg-00000001", points(1)); err != nil {
			t.Fatal(err)
		}
		n.ops = crash.Ops()
		if _, err := disktest.Run(func() error { return n.Write(t.Context(), "chg-00000001", points(2)) }); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(n.file("chg-00000001"))
		if state, _ := front(t, string(text)); err != nil || len(state.Checkpoints) != 1 && len(state.Checkpoints) != 2 {
			t.Errorf("%d checkpoints, %v", len(state.Checkpoints), err)
		} else if crash.Crashed() && !crash.After && len(state.Checkpoints) != 1 {
			t.Error("the file was written in place")
		}
	})
}

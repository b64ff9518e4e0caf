package apitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
)

// advice is what whoever has broken the wire is to do.
const advice = `a client or a daemon of one release back says or reads that. Keep it; or raise api.Version, name it in leaving (apitest/recording.go), and run: make docs`

// TestWhatThisVersionSaysIsRecorded holds that nothing is renamed or removed on the wire within a version, and that what is new is recorded.
// With UPDATE_DOCS it is; what this program does not understand any more is never taken from a recording.
func TestWhatThisVersionSaysIsRecorded(t *testing.T) {
	now, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(now, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	path := file(api.Version)
	was, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil {
		for _, r := range Recorded(t) {
			for _, fault := range r.Faults(api.Verbs()) {
				t.Errorf("%s\n%s", fault, advice)
			}
		}
	}
	switch {
	case t.Failed() || bytes.Equal(was, text):
	case os.Getenv("UPDATE_DOCS") != "":
		disktest.Put(t, path, text, 0o600)
	default:
		t.Errorf("%s has not all that version %d says: make docs", path, api.Version)
	}
	for what, last := range leaving {
		if last < api.Version-1 {
			t.Errorf("nobody of one release back says %s any more: take it out, and its line in leaving too", what)
		}
	}
}

// TestARecordingNoticesWhatIsBroken breaks the wire in each way, as seen from what was recorded.
func TestARecordingNoticesWhatIsBroken(t *testing.T) {
	now, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	if faults := now.Faults(api.Verbs()); len(faults) > 0 {
		t.Fatalf("as it is: %q", faults)
	}
	for name, broken := range map[string]struct {
		asked    string
		old, was string // in what is recorded of the verb; was is what an earlier version had there
		want     string
	}{
		"a verb was renamed":                    {"POST /v1/changes/{change}/tell", `POST /v1/changes/{change}/tell`, `POST /v1/changes/{change}/told`, "is gone"},
		"a field of a request was renamed":      {"POST /v1/changes", `"dir":`, `"folder":`, `unknown field "folder"`},
		"a field of a request was removed":      {"POST /v1/changes", `"dir":`, `"color":"red","dir":`, `unknown field "color"`},
		"a field within one was renamed":        {"POST /v1/groups", `"ask":`, `"asks":`, `unknown field "asks"`},
		"a field of a request is always said":   {"POST /v1/changes", `"approve":"word",`, ``, "it is understood as"},
		"a field of a request changed its kind": {"POST /v1/changes", `"text":"word"`, `"text":["word"]`, "cannot unmarshal array"},
		"a parameter was renamed":               {"GET /v1/changes", `limit=`, `most=`, `"most" is not a parameter`},
		"a parameter was removed":               {"GET /v1/changes", `?limit=`, `?color=red\u0026limit=`, `"color" is not a parameter`},
		"a field of an answer was renamed":      {"GET /v1/changes/{change}", `"sessions":`, `"runs":`, ".runs is not read any more"},
		"a field within one was removed":        {"GET /v1/approvals/{question}", `"digest":`, `"color":"red","digest":`, ".color is not read any more"},
		"a field of an answer changed":          {"GET /v1/daemon", `"pid":`, `"pid":"one","x":`, "cannot unmarshal string"},
		"a line of a stream was renamed":        {"GET /v1/groups/{group}/watch", `"kind":"word"`, `"sort":"word"`, ".sort is not read any more"},
		"a stream has another kind":             {"GET /v1/changes/{change}/diff", `text/x-diff`, `text/diff`, `no longer with "text/diff"`},
		"a verb answers one version only":       {"GET /v1/changes", `"kind"`, `"kind"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			one := slices.IndexFunc(now.Verbs, func(v Verb) bool { return v.Asked == broken.asked })
			text, err := json.Marshal(now.Verbs[one])
			if err != nil {
				t.Fatal(err)
			}
			changed := bytes.ReplaceAll(text, []byte(broken.old), []byte(broken.was))
			r := now
			r.Verbs = slices.Clone(now.Verbs)
			r.Verbs[one] = Verb{}
			if err := json.Unmarshal(changed, &r.Verbs[one]); err != nil {
				t.Fatalf("%s: %v", changed, err)
			}
			if broken.want == "" {
				r.Verbs[one].Any, broken.want = true, "does not answer any version"
			} else if bytes.Equal(changed, text) {
				t.Fatalf("%s has no %s", text, broken.old)
			}
			if faults := r.Faults(api.Verbs()); len(faults) == 0 || !strings.Contains(strings.Join(faults, "\n"), broken.want) {
				t.Errorf("%q do not say %q", faults, broken.want)
			}
		})
	}

	// Of what is two versions back, only what answers any is still understood.
	old := now
	old.Version = api.Version - 2
	old.Verbs = slices.Clone(now.Verbs)
	for i, v := range old.Verbs {
		old.Verbs[i].Asked = strings.Replace(v.Asked, "/v1/", "/v0/", 1)
	}
	faults := old.Faults(api.Verbs())
	for _, v := range old.Verbs {
		if said := slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, v.Asked+" is gone") }); said != v.Any {
			t.Errorf("%s, any version %t: %t", v.Asked, v.Any, said)
		}
	}
}

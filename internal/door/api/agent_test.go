package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestOnTheWireAKeyIsReadAndInNoPrintShown(t *testing.T) {
	run := api.Run{Agent: "codex", Keys: api.Keys{"OPENAI_API_KEY": "sk-Tulip4711"}}
	raw, err := json.Marshal(run)
	var back api.Run
	if err != nil || json.Unmarshal(raw, &back) != nil || !reflect.DeepEqual(back, run) {
		t.Errorf("%s: %+v, %v", raw, back, err)
	}
	const verb = 'd' // one that no text has: fmt asks no String for it
	odd := "%" + string(verb)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "run", run, "key", run.Keys["OPENAI_API_KEY"], "keys", run.Keys)
	for _, shown := range []string{log.String(), fmt.Sprint(run), fmt.Sprintf("%v %+v %#v %s", run, run, run, run.Keys), fmt.Sprintf("%x %q %s", run.Keys, run.Keys, run.Keys["OPENAI_API_KEY"]), fmt.Sprintf(odd, run.Keys)} {
		if strings.Contains(shown, "Tulip") || strings.Contains(shown, fmt.Sprintf("%x", "Tulip")) {
			t.Errorf("shown: %s", shown)
		}
	}
}

package socket

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/code"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// underWay writes the record of a change of the host into a home, as its keeper has it at a step.
func underWay(t *testing.T, home string, step keeper.Step) {
	t.Helper()
	_, hash, err := code.New()
	if err != nil {
		t.Fatal(err)
	}
	now, err := deadman.Now()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(keeper.Record{
		Change: "chg-1a2b3c4d", Step: step, Old: strings.Repeat("0a", 32), New: strings.Repeat("0b", 32), Armed: now, Handed: now,
		Due: deadman.Deadline{Set: now, In: time.Hour}, Code: hash, Tries: 2,
	})
	if err == nil {
		err = os.MkdirAll(keeper.Folder(home), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(keeper.Folder(home), "record.json"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestADaemonIsNotStoppedWhileTheHostIsOnTrial holds that its trial ends by a word, and what is told of it (SM-923).
func TestADaemonIsNotStoppedWhileTheHostIsOnTrial(t *testing.T) {
	home := t.TempDir()
	c, h := serve(t, &verbs{}, func(o *Options) { o.Home = home })
	shown := func() *api.HostChange {
		t.Helper()
		d, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Host
	}
	if got := shown(); got != nil {
		t.Errorf("it shows %+v", got)
	}

	for step, want := range map[keeper.Step]string{
		keeper.Armed: "is on trial until", keeper.Asked: "confirm it or roll it back first", keeper.Confirmed: "is being finished", keeper.Back: "is being rolled back",
	} {
		underWay(t, home, step)
		err := client.Do(t.Context(), c, api.DaemonStop, api.Nothing{})
		if p := problem.Of(err); p.Kind != problem.Conflict || !strings.Contains(p.Text, "chg-1a2b3c4d") || !strings.Contains(p.Text, want) || !strings.HasSuffix(p.Next, "chg-1a2b3c4d") {
			t.Errorf("at %s: %v, next %q", step, err, p.Next)
		}
		got := shown()
		if got == nil || got.Change != "chg-1a2b3c4d" || got.Step != string(step) || got.Tries != 2 || got.Left() < 59*time.Minute || got.Left() > time.Hour || got.New == got.Old {
			t.Errorf("at %s it shows %+v", step, got)
		}
	}
	record := filepath.Join(keeper.Folder(home), "record.json")
	disktest.Put(t, record, "{", 0o600)
	if err := client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("with a record that cannot be read: %v", err)
	}
	if got := shown(); got == nil || got.Problem == "" {
		t.Errorf("with a record that cannot be read it shows %+v", got)
	}
	select {
	case <-h.stopped:
		t.Error("it was stopped")
	default:
	}
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil {
		t.Error(err)
	}
	<-h.stopped
}

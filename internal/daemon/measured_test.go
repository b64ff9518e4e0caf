package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
)

func TestTheScansCacheCountsHowOftenItKnew(t *testing.T) {
	meter := metric.New(metric.Options{})
	cache := measured{secret.NewMemory(8), meter}
	k := secret.Key{Blob: "b"}
	if _, ok := cache.Find(k); ok {
		t.Fatal("it knew")
	}
	cache.Keep(k, nil)
	for range 2 {
		if _, ok := cache.Find(k); !ok {
			t.Fatal("it forgot")
		}
	}
	got := meter.Report().Counts
	if len(got) != 2 || got[0] != (metric.Count{Name: "secret lookups hit", Count: 2}) || got[1] != (metric.Count{Name: "secret lookups miss", Count: 1}) {
		t.Errorf("counts %v", got)
	}
}

func TestAnAlertIsLoggedOnceAndIsOneLineOfDoctor(t *testing.T) {
	var log bytes.Buffer
	d := &Daemon{log: slog.New(slog.NewTextHandler(&log, nil))}
	d.meter = metric.New(metric.Options{Alert: d.alerted, Process: func() (metric.Process, error) { return metric.Process{}, nil }})
	if c := d.checkMeasures(); !c.OK {
		t.Errorf("%+v", c)
	}
	for range 3 {
		d.meter.Paused("chg-00000001", time.Second, nil)
	}
	d.meter.Upper("chg-00000001", 1<<30)
	if n := strings.Count(log.String(), "level=WARN msg=alert alert=pause_over_maximum"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
	if c := d.checkMeasures(); c.OK || c.Needed || c.Mark != "over" || strings.HasPrefix(c.Detail, "measure") || !strings.HasSuffix(c.Detail, "(and 1 more)") || c.Fix != "sallyport stats" {
		t.Errorf("%+v", c)
	}
	d.meter.Moved("chg-00000001", "cancelled", false, true)
	if !strings.Contains(log.String(), `msg="alert is over" alert=disk_change`) {
		t.Errorf("log:\n%s", log.String())
	}
}

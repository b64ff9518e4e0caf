package checkpoint_test

import (
	"context"
	"testing"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/checkpoint"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/metric"
)

func TestACheckpointIsMeasuredWhateverItsVerdictAndAlsoWithoutOne(t *testing.T) {
	with := ready(t)
	with.Meter = metric.New(metric.Options{})
	with.Trigger = checkpoint.Changes
	with.Freeze = func(context.Context) error { return nil }
	wt.Edit(t, with.Workspace, wt.Write("src/a.go", "package z\n"), wt.Write("out/x", "left over"))
	first := take(t, with)
	with.Previous = &first.Checkpoint
	wt.Edit(t, with.Workspace, wt.Write("src/.git/config", "x"))
	second := take(t, with)
	if second.Checkpoint.Status != checkpoint.Invalid {
		t.Fatalf("it is %s", second.Checkpoint.Status)
	}
	with.Previous = &second.Checkpoint
	with.Host.Path += "-gone"
	if _, err := checkpoint.Take(gittest.Context(t), with); err == nil {
		t.Fatal("no error")
	}
	f, ok := with.Meter.Of(change)
	if !ok || f.Valid != 1 || f.Invalid != 1 || f.Failed != 1 || f.UpperBytes < int64(len("package z\nleft over")) || f.Last <= 0 {
		t.Errorf("figures %+v", f)
	}
	counts := map[string]int64{}
	for _, row := range with.Meter.Report().Rows {
		counts[string(row.Measure)] = row.Count
	}
	if counts["checkpoint"] != 3 || counts["diff"] != 2 || counts["validation"] != 2 || counts["file"] != 2 || counts["frozen"] != 3 {
		t.Errorf("samples %v", counts)
	}
}

package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"sallyport/internal/sandbox"
)

func testLimits(t *testing.T, s Setup) {
	need(t, "python3")
	mark := marker()
	for _, row := range []struct {
		limit, value string
		limits       sandbox.Limits
		script       string
	}{
		{"output", "100 KiB", sandbox.Limits{OutputBytes: 100 << 10}, "yes; sleep " + mark},
		{"output", "100 KiB", sandbox.Limits{OutputBytes: 100 << 10}, "(yes & yes >&2 & wait); sleep " + mark},
		{"time", "300ms", sandbox.Limits{Timeout: 300 * time.Millisecond}, "trap '' TERM INT; sleep " + mark},
		{"time", "300ms", sandbox.Limits{Timeout: 300 * time.Millisecond}, "setsid sh -c 'sleep " + mark + "' & wait"},
		{"memory", "64 MiB", sandbox.Limits{MemoryBytes: 64 << 20},
			"python3 -c 'import time\nb=[]\nwhile True:\n b.append(bytearray(1<<20)); time.sleep(0.001)'"},
		{"memory", "96 MiB", sandbox.Limits{MemoryBytes: 96 << 20}, // a tree of which no process alone is too big
			"for i in 1 2 3 4 5 6 7 8; do python3 -c 'import time\nb=bytearray(20<<20); time.sleep(100)' & done; wait"},
		{"processes", "40", sandbox.Limits{ProcessesMax: 40}, "f() { f | f & }; f; i=0; while [ $i -lt 80 ]; do sleep " + mark + " & i=$((i+1)); done; wait"},
		{"descriptors", "50 per process", sandbox.Limits{DescriptorsMax: 50}, "python3 -c 'f=[open(\"/dev/null\") for i in range(100)]'"},
	} {
		t.Run(row.limit, func(t *testing.T) {
			spec := s.Spec(t, row.script)
			row.limits.Timeout = cmpOr(row.limits.Timeout, Patience)
			spec.Limits = row.limits
			got := s.run(t, spec)
			if got.Limit == nil || got.Limit.Name != row.limit || got.Limit.Value != row.value || got.Limit.Observed == "" {
				t.Fatalf("exit %+v, limit %+v, stderr %.500q", got.Exit, got.Limit, got.err)
			}
			t.Logf("%s %s: observed %s", got.Limit.Name, got.Limit.Value, got.Limit.Observed)
			if row.limit == "output" && len(got.out)+len(got.err) > int(row.limits.OutputBytes) {
				t.Errorf("%d bytes were handed on", len(got.out)+len(got.err))
			}
			if left := alive(t, mark); len(left) > 0 {
				t.Errorf("left alive: %s", strings.Join(left, " "))
			}
		})
	}
	t.Run("what stays below its limits is left alone", func(t *testing.T) {
		spec := s.Spec(t, "head -c 90000 /dev/zero; python3 -c 'b=bytearray(30<<20); f=[open(\"/dev/null\") for i in range(30)]'; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1 & done; wait")
		spec.Limits = sandbox.Limits{OutputBytes: 100 << 10, MemoryBytes: 128 << 20, ProcessesMax: 20, DescriptorsMax: 50}
		if got := s.run(t, spec); got.Code != 0 || got.Limit != nil {
			t.Errorf("%+v %+v %q", got.Exit, got.Limit, got.err)
		}
	})
}

func cmpOr(a, b time.Duration) time.Duration {
	if a != 0 {
		return a
	}
	return b
}

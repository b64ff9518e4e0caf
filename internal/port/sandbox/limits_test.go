package sandbox_test

import (
	"strings"
	"testing"

	"sallyport/internal/port/sandbox"
)

func TestOfALimitAPersonIsToldWhatRaisesIt(t *testing.T) {
	for name, want := range map[string]string{
		sandbox.Memory: "`limits: memory:` in sallyport.yaml", sandbox.Processes: "`limits: processes:` in sallyport.yaml",
		sandbox.Output: "`limits: output:` in sallyport.yaml", sandbox.Descriptors: "`limits: descriptors:` in sallyport.yaml",
		sandbox.Files: "`limits: files:` in sallyport.yaml", sandbox.Time: "--timeout, or `limits: timeout:` in sallyport.yaml",
		sandbox.Processor: "`limits: processor:` in sallyport.yaml",
		sandbox.Depth:     "", sandbox.FreeDisk: "", "another": "",
	} {
		if got := (sandbox.Limit{Name: name}).Setting(); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := (sandbox.Limit{Name: sandbox.Disk}).Setting(); !strings.Contains(got, "max_shadow_size_mb") {
		t.Errorf("disk: %q", got)
	}
}

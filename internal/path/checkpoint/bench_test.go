package checkpoint_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/path/checkpoint"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/secret"
)

// A whole checkpoint of 65 changed files of 4 KiB: each scanned anew, and each known from before.
func BenchmarkCheckpointOf65(b *testing.B) {
	for _, c := range []struct {
		name  string
		cache secret.Cache
	}{{"scanned", nil}, {"known", secret.NewMemory(1000)}} {
		b.Run(c.name, func(b *testing.B) {
			scanner, err := secret.New(secret.Config{Cache: c.cache})
			if err != nil {
				b.Fatal(err)
			}
			with := ready(b)
			with.Secrets = scanner
			var ops []wt.Op
			for i := range 65 {
				ops = append(ops, wt.Write(fmt.Sprintf("src/n%02d.go", i), strings.Repeat(fmt.Sprintf("// line %d says: token := get(key, \"secret\") // %d\n", i, i*i), 80)))
			}
			wt.Edit(b, with.Workspace, ops...)
			for b.Loop() {
				if _, err := checkpoint.Take(b.Context(), with); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

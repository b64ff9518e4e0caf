package policy_test

import (
	"fmt"
	"testing"

	"sallyport/internal/rule/policy"
)

// BenchmarkValidate judges 10,000 added files in 100 folders by the default rules and a plan.
func BenchmarkValidate(b *testing.B) {
	var changes []policy.Change
	for i := range 10_000 {
		changes = append(changes, added(fmt.Sprintf("src/d%d/f%d.go", i%100, i)))
	}
	in := base("src/d1/old.go", "README.md").input(policy.Default(), changes...)
	in.Plan = policy.Plan{Allow: []string{"src/**/*.go", "docs"}, Forbid: []string{"**/secret"}}
	for b.Loop() {
		if vs := policy.Validate(in); len(vs) != 0 {
			b.Fatal(vs[0])
		}
		policy.Reach(changes)
	}
}

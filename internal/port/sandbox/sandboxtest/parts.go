package sandboxtest

import (
	"slices"
	"testing"
)

// suites are the parts of the port's promises.
func suites() []suite {
	return []suite{
		{"program", testProgram},
		{"streams", testStreams},
		{"trees", testTrees},
		{"hostile", testHostile},
		{"limits", testLimits},
		{"kill", testKill},
		{"freeze", testFreeze},
		{"attach", testAttach},
		{"apart", testApart},
		{"view", testView},
		{"egress", testEgress},
		{"home", testHome},
		{"cache", testCache},
		{"extra", testExtra},
		{"image", testImage},
	}
}

type suite struct {
	name string
	test func(*testing.T, Setup)
}

// Parts are the names of the parts of the port's promises.
func Parts() (names []string) {
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// Run holds a driver to the port's promises, or to the named parts of them.
func Run(t *testing.T, open func(t *testing.T) Setup, parts ...string) {
	for _, s := range suites() {
		if len(parts) > 0 && !slices.Contains(parts, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.test(t, open(t)) })
	}
}

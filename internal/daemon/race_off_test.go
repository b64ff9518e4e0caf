//go:build !race

package daemon_test

// raced says that this binary has the race detector in it.
const raced = false

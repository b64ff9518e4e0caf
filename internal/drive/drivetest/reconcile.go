package drivetest

import (
	"testing"
	"testing/synctest"
)

// Bubble runs a test in which time passes only when everybody waits for it.
func Bubble(t *testing.T, test func(t *testing.T, h *Home)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, NewHome(t)) })
}

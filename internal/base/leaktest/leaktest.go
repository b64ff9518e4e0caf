// Package leaktest fails a package whose tests leave a goroutine behind.
package leaktest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, and ends.
func Main(m *testing.M) { goleak.VerifyTestMain(unhurried{m}) }

// unhurried is tests whose last goroutines may take longer to end than goleak waits, half a second, on a machine that has much else to do.
type unhurried struct{ *testing.M }

func (u unhurried) Run() int {
	code := u.M.Run()
	for tries := 0; code == 0 && tries < 60 && goleak.Find() != nil; tries++ {
	}
	return code
}

// Package rapidtest tries properties of any input (pgregory.net/rapid).
package rapidtest

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/disk/disktest"
)

// Check tries a property with the cases that RAPID_SEED chooses. The library reads the seed before go notes what a test reads: go would
// take the result of one seed, in its cache, for that of any other. So it is read here.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	os.Getenv("RAPID_SEED")
	rapid.Check(t, property)
}

// Cases has the properties of a test tried with so many cases, where each starts processes; with SALLYPORT_LONG, and where a number was
// asked for, with that many.
func Cases(t testing.TB, most int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if disktest.Long() || checks.Value.String() != "100" {
		return
	}
	t.Cleanup(func() { _ = checks.Value.Set("100") })
	if err := checks.Value.Set(strconv.Itoa(most)); err != nil {
		t.Fatal(err)
	}
}

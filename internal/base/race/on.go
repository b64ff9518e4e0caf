//go:build race

package race

// Enabled says whether this program has the race detector in it.
const Enabled = true

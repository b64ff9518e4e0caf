// Sallyport-keeper has what a daemon began brought to an end when the daemon cannot.
// It stands outside of what it watches: standard library, deadman and disk, nothing else.
package main

import (
	"os"

	"sallyport/internal/base/deadman"
)

func main() { os.Exit(deadman.Main(os.Args[1:], os.Stdout, os.Stderr)) }

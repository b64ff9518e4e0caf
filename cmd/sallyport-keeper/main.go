// Sallyport-keeper has what a daemon began brought to an end when the daemon cannot, and is the parent of the daemon of a home that
// `sallyport serve` keeps up. It stands outside of what it watches: standard library, deadman, disk, release and keeper, nothing else.
package main

import (
	"os"

	"sallyport/internal/base/keeper"
)

func main() { os.Exit(keeper.Main(os.Args[1:], os.Stdout, os.Stderr)) }

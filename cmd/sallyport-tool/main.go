// Sallyport-tool is what an agent in a sandbox asks its host by, over MCP or as a plain program. It is a program of its
// own: what it links for MCP would make the start of every sandbox slower, if the runner linked it.
package main

import (
	"context"
	"os"

	"sallyport/internal/inside/tools"
)

func main() { os.Exit(tools.Main(context.Background(), tools.System())) }

package cli

import (
	"context"
	"errors"
	"slices"

	"sallyport/internal/base/problem"
)

// Main runs one command line (without the program's name) and returns its exit status.
func Main(p Program, args []string) int {
	results := &checked{Writer: p.Out}
	if _, shown := terminal(p.Out); !shown {
		p.Out = results
	}
	a := &app{Program: p, words: args}
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(context.Background())
	if lost := results.err; lost != nil && (err == nil || errors.As(err, new(exit))) {
		err = problem.Errorf(problem.Unavailable, "df -h", "not all of the output could be written: %w", lost)
	}
	if err == nil {
		return exitDone
	}
	var code exit
	if errors.As(err, &code) {
		return int(code)
	}
	if !a.began {
		err = usage(cmd, err)
	}
	return a.fail(err, wantsJSON(args))
}

// wantsJSON looks for the flag itself: when flags could not be read, nothing else knows.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

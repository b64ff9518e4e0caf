package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sallyport/internal/base/problem"
)

// given refuses flags and words that are there and say nothing. A script hands over an empty value when a file or
// a variable of its is missing: what the flag was to hold would silently not be held.
//
// What stands behind -- is COMMAND's own, but for its name.
func given(cmd *cobra.Command, words []string) (err error) {
	next := cmd.CommandPath() + " --help"
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if why := senseless(f); why != "" && err == nil {
			err = problem.Errorf(problem.Usage, next, "%s", why)
		}
	})
	if err != nil {
		return err
	}
	if strings.Contains(cmd.Use, "COMMAND") {
		words = words[:min(len(words), 1)]
	}
	if slices.Contains(words, "") {
		return problem.Errorf(problem.Usage, next, `an empty word ("") names nothing; say what you mean, or leave it out`)
	}
	return nil
}

// senseless says why the value of a flag that was given means nothing; "" = it means something.
func senseless(f *pflag.Flag) string {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	for _, value := range values {
		if value == "" {
			return "--" + f.Name + ` "" has no value; give it one, or leave the flag out`
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if number(f) && err == nil && (n < 0 || n == 0 && f.Name == "limit") {
			return "--" + f.Name + " " + value + " is too small a number"
		}
	}
	return ""
}

func number(f *pflag.Flag) bool { return f.Value.Type() == "int" || f.Value.Type() == "int64" }

// plain says in a person's words that a flag cannot have its value.
func plain(err error) string {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return strings.TrimSpace(err.Error())
	}
	f, what := bad.GetFlag(), "a value that it takes"
	switch {
	case number(f):
		what = "a whole number"
	case f.Value.Type() == "duration":
		what = "a length of time, such as 90s or 2h"
	case f.Value.Type() == "bool":
		what = "true or false"
	}
	return "--" + f.Name + " " + strconv.Quote(bad.GetValue()) + " is not " + what
}

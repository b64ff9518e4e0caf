package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// admits reports whether a word is the id of a question about a stranger or a place.
func admits(word string) bool { return id.KindOf(word) == "question" }

// admit says yes to a question about a stranger or a place.
func admit(cmd *cobra.Command, a *app, of, option string) error {
	return answerTo(cmd, a, of, []string{"option", "yes"}, func(all []api.Choice) (string, error) {
		next := "sallyport approval show " + of
		var yes []string
		for i, o := range all {
			if o.No && (option == fmt.Sprint(i+1) || strings.EqualFold(option, o.Key) || strings.EqualFold(option, o.Label)) {
				return "", problem.Errorf(problem.Usage, "sallyport refuse "+of, "--option %s is no yes", option)
			}
			if !o.No {
				yes = append(yes, o.Key)
			}
		}
		if option == "" && len(yes) != 1 {
			return "", problem.Errorf(problem.Usage, next, "%s has %d answers that are a yes; say which, with --option", of, len(yes))
		}
		if option == "" {
			option = yes[0]
		}
		return option, nil
	})
}

// turnAway says no to one.
func turnAway(cmd *cobra.Command, a *app, of string) error {
	return answerTo(cmd, a, of, nil, func(all []api.Choice) (string, error) {
		for _, o := range all {
			if o.No {
				return o.Key, nil
			}
		}
		return "", problem.Errorf(problem.Conflict, "sallyport approval show "+of, "%s has no answer that is a no", of)
	})
}

// answerTo answers a question about a stranger or a place by the option that choose names. Flags that are about a change are refused.
func answerTo(cmd *cobra.Command, a *app, of string, flags []string, choose func([]api.Choice) (string, error)) error {
	if err := noneBut(cmd, of, flags); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	q, err := admissionOf(ctx, c, of)
	if err != nil {
		return err
	}
	words, err := choose(q.Admission.Options)
	if err != nil {
		return err
	}
	done, err := client.Call(ctx, c, api.ApprovalAnswer, api.Answer{Of: of, Text: words})
	if err != nil {
		return err
	}
	if !a.json {
		a.sheet(a.Out).line("%s: %s", of, inert.Line(done.Told))
		return nil
	}
	if q, err = admissionOf(ctx, c, of); err == nil {
		a.line(q)
	}
	return err
}

// noneBut refuses flags of the command itself that say nothing of a stranger or a place.
func noneBut(cmd *cobra.Command, of string, flags []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(flags, f.Name) || cmd.InheritedFlags().Lookup(f.Name) != nil {
			return
		}
		err = problem.Errorf(problem.Usage, "sallyport approval show "+of, "--%s is for a change, and %s is about a stranger or a place", f.Name, of)
	})
	return err
}

// admissionOf asks for one. Errors: problem.NotFound.
func admissionOf(ctx context.Context, c *client.Client, of string) (api.Question, error) {
	q, err := client.Call(ctx, c, api.ApprovalShow, of)
	if err == nil && q.Admission == nil {
		err = problem.Errorf(problem.NotFound, "sallyport approval list", "%s is about no stranger and no place", of)
	}
	return q, err
}

// printAdmission shows what is asked about a stranger or a place, and while an answer is wanted the commands that give it. What strangers have
// written stands in marks.
func printAdmission(a *app, s sheet, q api.Question) {
	of := q.Approval.ID
	for i, text := range q.Admission.Lines {
		if i == 0 {
			s.line("%s  %s", s.bold(of), s.bold(inert.Line(text)))
			continue
		}
		s.hung("  ", "  ", inert.Line(text))
	}
	s.line("")
	if q.Approval.Decision != api.Pending {
		line := of + " " + q.Approval.Decision
		if q.Approval.By != nil {
			line += " by " + inert.Line(q.Approval.By.Name)
		}
		s.hung("", "  ", line+": "+inert.Line(q.Approval.Reason))
		return
	}

	yes := 0
	for _, o := range q.Admission.Options {
		if !o.No {
			yes++
		}
	}
	s.line("answer it by one of:")
	for _, o := range q.Admission.Options {
		command := "sallyport approve " + of
		switch {
		case o.No:
			command = "sallyport refuse " + of
		case o.Named:
			command += " --option '" + o.Key + " NAME'"
		case yes > 1:
			command += " --option " + inert.Line(o.Label)
		}
		s.line("  %s  %s", a.command(command), s.dim(inert.Line(o.Label)))
	}
}

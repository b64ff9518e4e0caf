package cli

import (
	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// printUsage lists what models used for a change.
func printUsage(s sheet, all []api.Usage) {
	var lines []string
	for _, u := range all {
		model := u.Model
		if model == "" {
			model = "other models"
		}
		lines = append(lines, model+": "+u.Line())
	}
	s.list("what its models used", lines, "-")
}

// printSpending says what models used, and how much of the budgets that is.
func printSpending(s sheet, v api.Spending) {
	s.line("models: %s in the last hour; %s in the last day", v.Hour.Line(), v.Day.Line())
	if v.Change != nil {
		s.line("        %s by this change", v.Change.Line())
	}
	for _, b := range v.Budgets {
		line := "budget " + inert.Line(b.Line())
		switch {
		case b.Used >= b.Limit:
			line = s.red(line)
		case b.Percent >= budgetNear:
			line = s.yellow(line)
		}
		s.line("%s", line)
	}
}

// budgetNear is from where a budget is shown as nearly used up, in percent.
const budgetNear = 80

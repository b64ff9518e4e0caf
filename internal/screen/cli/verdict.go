package cli

import (
	"fmt"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// violationsShown bounds what a command says of one checkpoint's violations.
const violationsShown = 20

// printCheckpoint lists a checkpoint's paths and what is wrong with them.
func printCheckpoint(s sheet, c api.Checkpoint) {
	printVerdict(s, c)
	printPaths(s, c.Files, c.Total)
	printViolations(s, c, violationsShown)
	printLeftOver(s, c.LeftOver)
}

// printVerdict shows a checkpoint in one line; its number stands in its id.
func printVerdict(s sheet, c api.Checkpoint) {
	s.line("checkpoint %s %s, %s", inert.Line(c.ID), s.mark(c.Status), count(max(c.Total, len(c.Files)), "file")+" changed")
}

// printPaths lists some of many paths.
func printPaths(s sheet, all []string, total int) {
	const shown = 40
	for _, path := range all[:min(len(all), shown)] {
		s.line("  %s", inert.Path(path))
	}
	if more := max(total, len(all)) - min(len(all), shown); more > 0 {
		s.line("  … and %s more", count(more, "path"))
	}
}

// printViolations shows at most so many of the rules that a checkpoint breaks, and what to do about each.
func printViolations(s sheet, c api.Checkpoint, shown int) {
	for i, v := range c.Violations {
		if i == shown {
			s.line("  … and %s more", count(len(c.Violations)-shown, "violation"))
			return
		}
		file := "the whole change"
		if v.File != "" {
			file = inert.Path(v.File)
		}
		s.rows("  "+s.red("!")+" ", "    ", fmt.Sprintf("%s: %s: %s", file, inert.Line(v.Constraint), inert.Line(v.Message)))
		if v.Suggestion != "" {
			s.rows("    ", "    ", inert.Line(v.Suggestion))
		}
	}
}

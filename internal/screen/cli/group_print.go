package cli

import (
	"fmt"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/mount"
)

// printGroup shows a group in one line, and why it cannot run in a second.
func printGroup(s sheet, g api.Group) {
	s.line("%s  %s", s.bold(fmt.Sprintf("%-12s", g.Name)), strings.Join(standingWords(s, g), ", "))
	if g.Problem != "" {
		s.line("    %s", inert.Line(g.Problem))
	}
}

// standingWords say how a group stands.
func standingWords(s sheet, g api.Group) []string {
	words := []string{"agent " + g.Agent}
	switch {
	case g.Tree == "":
		words = []string{s.yellow("not committed yet")}
	case g.Problem != "":
		words = []string{s.red("cannot run")}
	}
	if g.DriftTotal > 0 {
		words = append(words, count(g.DriftTotal, "file")+" unlike the template")
	}
	if g.EditsTotal > 0 && g.Tree != "" {
		words = append(words, s.yellow(count(g.EditsTotal, "hand edit")+" not committed"))
	}
	return words
}

func printGroupWhole(a *app, s sheet, g api.Group) {
	printGroup(s, g)
	row := func(what, text string) { s.rows(fmt.Sprintf("  %-9s ", what), strings.Repeat(" ", 12), text) }
	list := func(what string, words []string) {
		text := "none"
		if len(words) > 0 {
			text = inert.Line(strings.Join(words, ", "))
		}
		row(what, text)
	}
	if g.Tree != "" {
		row("runs", "tree "+g.Tree)
	}
	if g.Tree != "" && g.Problem == "" {
		switch {
		case g.Model != "":
			row("model", inert.Line(g.Model))
		case g.Agent == config.Echo:
			row("model", "none")
		default:
			row("model", "what the home says, or the agent's own")
		}
		list("tools off", g.Off)
		list("hooks", g.Hooks)
		list("prompts", g.Prompts)
		list("skills", g.Skills)
		if len(g.Mounts) == 0 {
			row("mounts", "none")
		}
		printMounts(s, g)
		row("memory", remembered(g))
	}
	printSwap(a, s, g.Swap)
	if g.DriftTotal+g.EditsTotal > 0 {
		s.line("  look:     %s", a.command("sallyport group drift "+g.Name))
	}
	if g.EditsTotal > 0 {
		s.line("  commit:   %s", a.command("sallyport group commit "+g.Name))
	}
}

// printSwap shows the change of itself that a group has asked for, and what a person says to it.
func printSwap(a *app, s sheet, c *api.Change) {
	if c == nil {
		return
	}
	s.rows("  change    ", strings.Repeat(" ", 12), fmt.Sprintf("%s  %s: %s", c.ID, c.State, wish(*c)))
	if c.Trial != nil {
		s.line("            %s", trialLine(*c))
	}
	if !waitsForPerson(*c) {
		s.line("  watch:    %s", a.command("sallyport change watch "+c.ID))
		return
	}
	switch c.State {
	case api.InTrial:
		s.line("  say:      confirm or rollback, in %s", a.command("sallyport chat "+c.Group))
	case api.AwaitingApproval:
		s.line("  say:      approve or refuse, in %s", a.command("sallyport chat "+c.Group))
	}
	s.line("  next:     %s", a.command(wayOn(*c)))
}

// remembered is how much a group's agent has written; "" where nobody has looked.
func remembered(g api.Group) string {
	if g.Memory == nil {
		return ""
	}
	return size(*g.Memory)
}

// printMounts shows a row for each folder of this machine that a group asks for.
func printMounts(s sheet, g api.Group) {
	label := "mounts"
	for _, m := range g.Mounts {
		s.rows(fmt.Sprintf("  %-9s ", label), strings.Repeat(" ", 12), mountWords(s, m))
		label = ""
	}
}

// mountWords say how a group's next session is shown a folder of this machine.
func mountWords(s sheet, m api.GroupMount) string {
	words := m.At + " is " + inert.Path(m.Path)
	switch {
	case m.Mode == "":
		return words + ", " + s.yellow("not shown") + ": " + inert.Line(m.Problem)
	case m.Mode == mount.Mode(true):
		words += ", " + s.yellow(m.Mode+": its agent can change and remove what is there")
	default:
		words += ", " + m.Mode
	}
	if m.Problem != "" {
		words += ", although its runner.yaml asks for " + m.Asked + ": " + inert.Line(m.Problem)
	}
	return words
}

// printDrift shows each file of a group that differs.
func printDrift(a *app, s sheet, g api.Group) {
	files := func(what string, total int, list []api.GroupFile) {
		s.line("  %s:", what)
		for _, f := range list {
			why := ""
			if f.Why != "" {
				why = s.red("  cannot be committed: " + inert.Line(f.Why))
			}
			s.line("    %-8s %s%s", f.Kind, inert.Path(f.Path), why)
		}
		if more := total - len(list); more > 0 {
			s.line("    … and %d more", more)
		}
	}
	if g.DriftTotal+g.EditsTotal == 0 {
		s.line("%s is as the template, and as it is committed", s.bold(g.Name))
		return
	}
	s.line("%s", s.bold(g.Name))
	if g.DriftTotal > 0 {
		files("unlike the template", g.DriftTotal, g.Drift)
	}
	if g.EditsTotal > 0 {
		files("edited and not committed", g.EditsTotal, g.Edits)
		s.line("  commit:  %s", a.command("sallyport group commit "+g.Name))
	}
}

// printGroups names the groups of a home in one line, and in one each those that cannot run or have edits that do not count.
func printGroups(a *app, s sheet, all []api.Group) {
	var names []string
	for _, g := range all {
		names = append(names, g.Name)
	}
	if len(names) > 0 {
		s.line("groups  %s", strings.Join(names, ", "))
	}
	for _, g := range all {
		if g.Problem != "" {
			s.line("  %s %s: %s", g.Name, s.red("cannot run"), inert.Line(g.Problem))
		}
		if g.EditsTotal > 0 {
			s.line("  %s: %s; %s", g.Name, s.yellow(count(g.EditsTotal, "hand edit")+" not committed"), a.command("sallyport group drift "+g.Name))
		}
	}
}

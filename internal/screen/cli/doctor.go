package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/config"
)

// spaceWanted is how much room a home should have: base layers are whole trees.
const spaceWanted = 1 << 30

// spaceNeeded is what the database of a home needs to be written at all.
const spaceNeeded = 8 << 20

func newDoctorCommand(a *app) *cobra.Command {
	var tries bool
	var repo string
	cmd := a.cmd("doctor", "say what works on this machine, and how to mend what does not",
		`Tries what sallyport needs: the home and its files, git, the sandbox, the agents that are installed.
In a sandbox it tries what a program there must not be able to do. Each such try has a control: the
same where nothing forbids it. --self-test shows every try. A change that is stuck is named, too.

In a repository it also says whether changes can be made there, and what the repository's own files
say that does not count. It writes nothing there.

What does not work comes with a command that mends it, behind fix:.

Exit status: 1 if something is missing that sallyport cannot run without, or if a try in the sandbox
worked. What it says of a repository does not change the status.`,
		"  sallyport doctor\n  sallyport doctor --repo ~/src/project\n  sallyport doctor --self-test\n  sallyport doctor --json",
		exactly(), func(cmd *cobra.Command, _ []string) error {
			home, err := a.home()
			if err != nil {
				return err
			}
			dir, err := repositoryHere(a, repo)
			if err != nil {
				return err
			}
			var report api.Doctor
			a.sheet(a.Err).meanwhile("looking at this machine", func() { report = examine(cmd.Context(), a, home, dir) })
			unrepeated(report.Checks, tries)
			code := exitDone
			for _, c := range report.Checks {
				if c.Needed && !c.OK {
					code = exitError
				}
			}
			if !a.document(report) {
				printDiagnosis(a, a.sheet(a.Out), home, report)
				if tries {
					printTries(a.sheet(a.Out), report.Tries)
				}
			}
			return ended(code)
		})
	cmd.Flags().StringVar(&repo, "repo", "", "look at the repository that holds `DIR` (default: where you stand)")
	cmd.Flags().BoolVar(&tries, "self-test", false, "show everything that was tried in a sandbox, and how it failed")
	return cmd
}

// unrepeated replaces a fix that is the command which has just been run, by one that shows what the kernel has refused: errors of
// sandboxes name the doctor. tries says that the self-test was asked for.
func unrepeated(checks []api.Check, tries bool) {
	for i, c := range checks {
		if c.Fix == "sallyport doctor" || tries && c.Fix == "sallyport doctor --self-test" {
			checks[i].Fix = "sudo dmesg | tail"
		}
	}
}

// printTries shows what must not work in a sandbox, a line each.
func printTries(s sheet, all []api.Try) {
	s.line("")
	s.line("tried inside a sandbox:")
	for _, t := range all {
		mark, control := s.green("fails"), "; it works "+t.Control
		if !t.Held {
			mark = s.red("WORKS")
		}
		if t.Control == "" {
			control = "; it works nowhere on this machine, so this try proves little"
		}
		s.line("  %s  %s%s", mark, inert.Line(t.Name), inert.Line(control))
		s.line("         %s", s.dim(inert.Line(t.Detail)))
	}
}

// examine looks at the home from here, and asks the daemon for the rest; dir is a folder in a repository, or "".
func examine(ctx context.Context, a *app, home, dir string) api.Doctor {
	p := a.Program
	checks := []api.Check{writable(home), space(home)}
	checks = append(checks, checkSettings(home, time.Now())...)
	c, err := a.connect(ctx)
	other := err
	if c != nil { // it runs, and may be of another build: what it says of the machine holds all the same
		err = nil
	}
	var report api.Doctor
	if err == nil {
		report, err = client.Call(ctx, c, api.DoctorShow, api.Nothing{})
	}
	if err == nil {
		checks = append(checks, checkAgents(ctx, p, c)...)
	}
	daemon := api.Check{Name: "daemon", OK: err == nil, Needed: true, Detail: "answers"}
	if other != nil && c != nil && err == nil {
		p := problem.Of(other)
		checks = append(checks, api.Check{Name: "build", Detail: p.Text, Fix: p.Next})
	}
	if err != nil {
		p := problem.Of(cmp.Or(other, err))
		daemon.Detail, daemon.Fix = p.Text+"; git, the sandbox, agents and repositories are looked at once it answers", p.Next
		daemon.Refused = c != nil // it is there
	} else if d, err := client.Call(ctx, c, api.DaemonShow, api.Nothing{}); err == nil {
		daemon.Detail = "answers, and is build " + d.Build
	}
	report.Checks = merged(append(append(checks, daemon), report.Checks...))
	if err == nil && dir != "" {
		report.Checks = append(report.Checks, checkRepository(ctx, p.Getenv, c, dir)...)
	}
	return report
}

// checkAgents makes a line for each agent that is installed here; what is not is no fault.
func checkAgents(ctx context.Context, p Program, c *client.Client) (checks []api.Check) {
	at, err := placeOf(p)
	if err != nil {
		return nil
	}
	all, err := client.Call(ctx, c, api.AgentList, at)
	if err != nil {
		p := problem.Of(err)
		return []api.Check{{Name: "agents", Detail: p.Text, Fix: p.Next}}
	}
	for _, one := range all {
		if !one.Installed {
			continue
		}
		known := one.KeyFrom != ""
		findKey(p.Getenv, &one)
		check := api.Check{Name: "agent " + one.Name, OK: one.Problem == "" && (one.KeyFrom != "" || one.Keyless)}
		switch {
		case one.Problem != "":
			check.Detail, check.Fix = one.Problem, "sallyport agent test "+one.Name
		case check.OK:
			check.Detail = strings.TrimSpace("version "+one.Version) + ", its key is there"
			switch {
			case !known && one.KeyFrom != "":
				check.Detail += " for changes, in " + one.KeyFrom + ", and reaches no group"
			case one.KeyFrom == "":
				check.Detail = strings.TrimSpace("version "+one.Version) + ", its model asks for no key"
			}
		default:
			check.Mark = "no key"
			check.Detail = strings.TrimSpace("version "+one.Version) + ", no key: set " + strings.Join(one.Keys, " or ")
			if one.Login != "" {
				check.Detail += ", or key: login below agents: " + one.Name + ": in the home's sallyport.yaml, for it is logged in"
			}
			check.Fix = "sallyport agent list"
		}
		checks = append(checks, check)
	}
	return append(checks, checkRunners(ctx, c, all)...)
}

// checkRunners makes a line for each group whose agent is not installed here, or has no key in a group.
func checkRunners(ctx context.Context, c *client.Client, all []api.Agent) (checks []api.Check) {
	groups, _ := client.Call(ctx, c, api.GroupList, api.OfUser{}) // what keeps groups from being listed has a line of its own
	for _, g := range groups.Groups {
		for _, one := range all {
			if one.Name != g.Agent {
				continue
			}
			check := api.Check{Name: "group " + g.Name, Refused: true}
			if uninstalled(one) {
				check.Detail, check.Fix = "its agent "+one.Name+" is not installed here, and it answers nobody without it", one.Install
			} else if lack := unseen(one); lack != "" {
				check.Detail, check.Fix = "its agent "+lack, "sallyport daemon stop"
			} else if lack := keyLack(one); lack != "" {
				check.Detail, check.Fix = "its agent "+lack, "sallyport agent list"
			}
			if check.Detail != "" {
				checks = append(checks, check)
			}
		}
	}
	return checks
}

// checkSettings says whether the home's files load, and what counts in the place of one that does not; one that is not there has its
// defaults. Without what loaded before, nothing runs.
func checkSettings(home string, now time.Time) []api.Check {
	checks := []api.Check{
		{Name: config.SallyportFile, OK: true, Needed: true, Detail: "can be read"},
		{Name: config.PolicyFile, OK: true, Needed: true, Detail: "can be read"},
	}
	for _, u := range config.Look(home).Unloaded() {
		for i, c := range checks {
			if c.Name == u.File {
				checks[i] = api.Check{Name: u.File, Needed: u.Kept == "", Refused: u.Kept != "",
					Detail: unloadedLine(u.Since, now, u.Text(), u.InForce()), Fix: problem.Of(u.Why).Next}
			}
		}
	}
	return checks
}

// unloadedLine says since when a file does not load, why, and what counts instead.
func unloadedLine(since, now time.Time, why, inForce string) string {
	text := "it does not load"
	if !since.IsZero() {
		text += ", found " + ago(since, now)
	}
	return text + ": " + why + ". " + inForce
}

// merged keeps one check of a name: the first that fails, else the first.
func merged(checks []api.Check) []api.Check {
	out := make([]api.Check, 0, len(checks))
	at := map[string]int{}
	for _, c := range checks {
		i, seen := at[c.Name]
		switch {
		case !seen:
			at[c.Name] = len(out)
			out = append(out, c)
		case out[i].OK && !c.OK:
			out[i] = c
		}
	}
	return out
}

// writable tries the nearest folder of the home that exists; it writes nothing.
func writable(home string) api.Check {
	c := api.Check{Name: "home", Needed: true, Detail: home + " can be written"}
	at := existing(home)
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		c.Detail = fmt.Sprintf("%s cannot be written: %s", at, err)
		c.Fix = "sallyport init DIR"
		return c
	}
	c.OK = true
	return c
}

func space(home string) api.Check {
	c := api.Check{Name: "room"}
	var fs unix.Statfs_t
	at := existing(home)
	if err := unix.Statfs(at, &fs); err != nil {
		c.Detail = fmt.Sprintf("%s: %s", at, err)
		return c
	}
	free := int64(fs.Bavail) * fs.Bsize
	c.OK = free >= spaceWanted
	c.Needed = free < spaceNeeded
	c.Detail = fmt.Sprintf("%s free in %s", size(free), home)
	if !c.OK {
		c.Fix = fmt.Sprintf("free some disk space, %s at least, or make another home with sallyport init DIR", size(spaceWanted))
	}
	return c
}

// existing is the nearest folder above a path that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func printDiagnosis(a *app, s sheet, home string, r api.Doctor) {
	s.line("home %s; this program is build %s", inert.Path(home), api.Build())
	printCheckLines(a, s, r.Checks)
	if r.Driver == "" {
		return
	}
	uid := "the user's own"
	if r.OwnUID {
		uid = "one of its own"
	}
	s.line("sandboxes: %s, uid %s, memory limited by %s, frozen by %s", inert.Line(r.Driver), uid, inert.Line(r.Memory), inert.Line(r.Freezer))
	s.line("workspaces: %s", inert.Line(r.Strategy))
}

// printCheckLines writes a line for each check, and one with the way out of what is not well.
func printCheckLines(a *app, s sheet, all []api.Check) {
	for _, c := range all {
		mark := s.green("ok     ")
		switch {
		case c.Refused:
			mark = s.red("REFUSED")
		case !c.OK && c.Needed:
			mark = s.red("MISSING")
		case c.Stuck:
			mark = s.red("STUCK  ")
		case c.Limited:
			mark = s.yellow("limited")
		case c.Ignored:
			mark = s.yellow("ignored")
		case !c.OK && c.Mark != "":
			mark = s.yellow(fmt.Sprintf("%-7s", inert.Line(c.Mark)))
		case !c.OK:
			mark = s.yellow("absent ")
		}
		s.line("  %s %s: %s", mark, inert.Line(c.Name), inert.Line(c.Detail))
		if !c.OK && c.Fix != "" {
			s.line("          fix: %s", inert.Line(a.command(c.Fix)))
		}
	}
}

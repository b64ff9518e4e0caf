package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newUninstallCommand(a *app) *cobra.Command {
	var dry, yes, all bool
	var repo string
	cmd := a.cmd("uninstall", "remove all that sallyport left in repositories and on this machine",
		`Lists all that this home's sallyport has left, asks, and removes it:

  in each repository    refs below refs/sallyport/, and the folders of landings that were cut off
  on the machine        the home's state (database, audit, transcripts, copies of repositories),
                        its sockets and its control groups

With --repo DIR it removes only what is in that repository; the home stays.

Your work stays: every commit that has landed, every file of your work trees, other files in the
home, files of yours that a landing put aside (sallyport-kept-…), and what belongs to another home.
Once you have changed the home's settings, its template or a group, they all stay with the
repository that tracks them, and the next command begins on them again. What stays is named.

The work of a change that has not landed goes with the home; the list names the command that keeps
it as a patch. The audit goes, too: "sallyport audit export --out FILE" keeps it. The program itself
is removed as it was installed, such as by "apt remove sallyport".

While a change is open nothing is removed, nor listed for --dry-run; the message names every such
change, and what ends it. The same holds while a service of systemd serves the home. The
daemon is stopped first, also for --dry-run; the next command starts it again. What no command
would start again, --dry-run leaves alone: it is refused while "sallyport serve" keeps the daemon
up, and while an assistant is at work.

Exit status: 0 also when you said no, and nothing was removed.`,
		`  sallyport uninstall --dry-run         # only look
  sallyport uninstall                   # look, and be asked
  sallyport uninstall --repo ~/app      # only in this repository; the home stays
  sallyport uninstall --all --yes       # everything, without asking`, exactly(), func(cmd *cobra.Command, _ []string) error {
			if all && cmd.Flags().Changed("repo") {
				return problem.Errorf(problem.Usage, "sallyport uninstall --help", "--all and --repo cannot be used together; give one of them")
			}
			if cmd.Flags().Changed("repo") {
				dir, err := a.Dir()
				if err != nil {
					return fmt.Errorf("find this folder: %w", err)
				}
				if !filepath.IsAbs(repo) {
					repo = filepath.Join(dir, repo)
				}
			}
			return uninstall(cmd.Context(), a, repo, dry, yes)
		})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "remove nothing; list what would go, and what would stay")
	cmd.Flags().BoolVar(&all, "all", false, "remove in every repository and on the machine; the same as without --repo")
	cmd.Flags().BoolVar(&yes, "yes", false, "remove without asking")
	cmd.Flags().StringVar(&repo, "repo", "", "remove only what is in the repository that holds `DIR`")
	return cmd
}

func uninstall(ctx context.Context, a *app, repo string, dry, yes bool) error {
	if !dry && !yes && !a.canAsk() {
		return problem.Errorf(problem.Usage, "sallyport uninstall --dry-run", "nobody can be asked here: say --yes, or --dry-run to see what would go")
	}
	home, err := a.home()
	if err != nil {
		return err
	}
	if err := a.unserved(home); err != nil {
		return err
	}
	if err := retireDaemon(ctx, a.Program, home, dry); err != nil {
		return err
	}
	s := a.sheet(a.Out)
	out, err := a.Uninstall(ctx, home, repo, func(found api.Uninstall) (bool, error) {
		if !a.json {
			printLeftovers(a, s, found, yes && !dry)
		}
		if dry || len(found.Pieces) == 0 || yes {
			return !dry && len(found.Pieces) > 0, nil
		}
		return a.sure(fmt.Sprintf("remove all of this (%s)?", count(len(found.Pieces), "item"))), nil
	})
	if err != nil || a.document(out) {
		return err
	}
	switch {
	case out.Removed:
		s.line("removed")
	case len(out.Pieces) == 0:
		s.line("there is nothing of sallyport's to remove")
	case dry:
		next := "sallyport uninstall"
		if repo != "" {
			next += " --repo " + inert.Path(repo)
		}
		s.line("next: %s", a.command(next))
	default:
		s.line("nothing was removed")
	}
	return nil
}

// retireDaemon stops the home's daemon, if one runs and no change is open. Who only looks ends nothing that the next command would not
// begin again: no keeper, and no turn of an assistant.
func retireDaemon(ctx context.Context, p Program, home string, dry bool) error {
	c, err := p.Connect(ctx, home, false)
	if errors.Is(err, client.ErrNoDaemon) {
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := client.Call(ctx, c, api.ChangeList, api.Filter{Limit: 10_000})
	if err != nil {
		return err
	}
	if err := allEnded(rows); err != nil {
		return err
	}
	d, err := client.Call(ctx, c, api.DaemonShow, api.Nothing{})
	if err != nil {
		return err
	}
	if dry && d.Keeper != nil {
		return problem.Errorf(problem.Refused, "sallyport daemon stop", "\"sallyport serve\" keeps the daemon of this home up, and both would have to end for you to look: "+
			"end them, look, and start \"sallyport serve\" again")
	}
	if dry {
		chats, err := client.Call(ctx, c, api.ChatList, api.InGroup{})
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(chats, func(c api.Chat) bool { return c.Working }); i >= 0 {
			return problem.Errorf(problem.Refused, "sallyport session show "+chats[i].ID,
				"the assistant of %s is at work, and the daemon would have to end for you to look: wait for its answer", chats[i].Group)
		}
	}
	return stopDaemon(ctx, c, d)
}

// allEnded refuses because of changes that are open, and names them all, by where they stand, and what ends each.
func allEnded(rows []api.Change) error {
	next, named := "", map[string][]string{}
	landed := func(state string) bool {
		return state == api.InTrial || state == api.RollbackFailed || state == api.Landing
	}
	for _, row := range rows {
		if api.Final(row.State) {
			continue
		}
		if named[row.State] = append(named[row.State], row.ID); next != "" {
			continue
		}
		next = "sallyport change cancel " + row.ID
		if landed(row.State) {
			next = "sallyport change show " + row.ID
		}
	}
	var groups []string
	ways := map[string]bool{}
	for _, state := range slices.Sorted(maps.Keys(named)) { // also those that this program does not know
		groups = append(groups, api.Words(state)+": "+strings.Join(named[state], ", "))
		if landed(state) {
			ways["sallyport change show CHANGE names what ends one that has landed or is about to"] = true
		} else {
			ways["sallyport change cancel CHANGE ends one that has not landed"] = true
		}
	}
	if len(groups) == 0 {
		return nil
	}
	return problem.Errorf(problem.Conflict, next, "nothing is removed before every change has ended. %s. %s", strings.Join(groups, "; "),
		strings.Join(slices.Sorted(maps.Keys(ways)), ", and "))
}

// printLeftovers shows what goes and what stays; goes says that nobody is asked first.
func printLeftovers(a *app, s sheet, v api.Uninstall, goes bool) {
	refs := map[string]int{}
	var order []string
	for _, p := range v.Pieces {
		if p.What != "ref" {
			continue
		}
		dir := strings.SplitN(p.Path, " refs/", 2)[0]
		if refs[dir]++; refs[dir] == 1 {
			order = append(order, dir)
		}
	}
	for _, dir := range order {
		s.line("  %s of changes that have ended, in %s", count(refs[dir], "ref"), inert.Path(dir))
	}
	for _, p := range v.Pieces {
		switch {
		case p.What == "ref":
		case p.Bytes > 0:
			s.line("  %s %s, %s", inert.Line(p.What), inert.Path(p.Path), size(p.Bytes))
		default:
			s.line("  %s %s", inert.Line(p.What), inert.Path(p.Path))
		}
	}
	if n := len(v.Unlanded); n > 0 && goes {
		s.line("%s", s.yellow(fmt.Sprintf("the work of %s has not landed and goes with the home, as --yes says", count(n, "change"))))
	} else if n > 0 {
		s.line("%s", s.yellow(fmt.Sprintf("the work of %s has not landed and is removed with the home. To keep it, run first:", count(n, "change"))))
		for i, change := range v.Unlanded {
			if i == remarksMax {
				s.line("  and %d more; --json has them all", n-i)
				break
			}
			s.line("  %s", a.command(keepWork(change)))
		}
	}
	printRemarks(s, v.Stays)
}

// keepWork is how work that has not landed is kept.
func keepWork(change string) string {
	return fmt.Sprintf("sallyport change export %s > %s.patch", change, change)
}

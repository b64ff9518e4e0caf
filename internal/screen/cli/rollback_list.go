package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// point is a landing that can be rolled back (CW-085).
type point struct {
	Change string    `json:"id"`
	State  string    `json:"state"` // finalized, or in_trial
	Landed time.Time `json:"landed"`
	Repo   string    `json:"repo"`
	Branch string    `json:"branch"`
	Commit string    `json:"commit"`
	Paths  int       `json:"paths"`
	Text   string    `json:"text"`
	wish   string    // the first line of it, as it is listed
}

// pointsMax is how many are listed; pointsLooked how many changes are looked at to find them.
const (
	pointsMax    = 20
	pointsLooked = 60
)

// printPoints lists what has landed last and can be rolled back.
func printPoints(a *app, cmd *cobra.Command, c *client.Client, repo string) error {
	f := api.Filter{States: []string{api.Finalized, api.InTrial}, Limit: pointsLooked}
	if err := filterByRepo(a.Program, cmd, repo, &f); err != nil {
		return err
	}
	all, err := pointsOf(cmd.Context(), c, f)
	if err != nil || a.document(all) {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(a.Out, "nothing has landed that could be rolled back")
		return nil
	}
	now := time.Now()
	err = table(a.Out, "CHANGE\tLANDED\tCOMMIT\tPATHS\tBRANCH\tREPOSITORY\tREQUEST", all, func(t io.Writer, p point) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", p.Change, ago(p.Landed, now), short(p.Commit), p.Paths, clip(inert.Path(p.Branch), 24),
			clip(inert.Path(p.Repo), 40), clip(p.wish, 60))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "next: %s\n", a.command("sallyport rollback "+all[0].Change))
	return nil
}

// pointsOf finds them, what landed last first. A change that was finalized with nothing changed has landed nothing.
func pointsOf(ctx context.Context, c *client.Client, f api.Filter) ([]point, error) {
	rows, err := client.Call(ctx, c, api.ChangeList, f)
	if err != nil {
		return nil, err
	}
	all := []point{}
	for _, r := range rows {
		d, err := client.Call(ctx, c, api.ChangeShow, r.ID)
		if err != nil {
			return nil, err
		}
		l := d.Landing
		if l == nil || l.Commit == "" || l.Paths == 0 || l.Ended == nil || d.Change.State != r.State {
			continue
		}
		all = append(all, point{Change: r.ID, State: r.State, Landed: *l.Ended, Repo: r.Repo, Branch: l.Branch, Commit: l.Commit,
			Paths: l.Paths, Text: r.Text, wish: wish(r)})
	}
	slices.SortStableFunc(all, func(a, b point) int { return b.Landed.Compare(a.Landed) }) // asked for first may land last
	return all[:min(len(all), pointsMax)], nil
}

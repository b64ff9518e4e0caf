package cli

import (
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// checkRepository says whether changes can be made in the repository that a folder lies in, and what of its own words does
// not count.
func checkRepository(ctx context.Context, getenv func(string) string, c *client.Client, dir string) []api.Check {
	const name = "repository"
	r, err := client.Call(ctx, c, api.RepositoryShow, api.InFolder{Dir: dir})
	if err != nil {
		p := problem.Of(err)
		return []api.Check{{Name: name, Refused: true, Detail: p.Text, Fix: p.Next}}
	}

	checks := []api.Check{{Name: name, OK: true, Detail: "changes can be made in " + inert.Path(r.Top) + " on " + inert.Path(r.Branch)}}
	if len(r.Converts) > 0 {
		shown := strings.Join(r.Converts[:min(len(r.Converts), convertsShown)], ", ")
		if more := len(r.Converts) - convertsShown; more > 0 {
			shown += fmt.Sprintf(" and %d more", more)
		}
		checks = append(checks, api.Check{Name: name, Limited: true, Detail: "git converts files here (" + shown +
			"): the agent sees what git stores, and a change to such a file is refused"})
	}
	checks = append(checks, unseenSettings(getenv)...)
	for _, text := range r.Ignored {
		checks = append(checks, api.Check{Name: name, Ignored: true, Detail: text})
	}
	return checks
}

// convertsShown is how much of what converts files is named.
const convertsShown = 5

// foresee returns what a first run in a repository would meet: nothing if all is well.
func foresee(ctx context.Context, a *app, dir string) []api.Check {
	c, err := a.connect(ctx)
	if err != nil {
		p := problem.Of(err)
		return []api.Check{{Name: "daemon", Detail: "whether changes can be made here is not known: " + p.Text, Fix: p.Next}}
	}
	odd := []api.Check{}
	for _, check := range checkRepository(ctx, a.Getenv, c, dir) {
		if !check.OK {
			odd = append(odd, check)
		}
	}
	return odd
}

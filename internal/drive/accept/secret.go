package accept

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/path/request"
)

// secretsIn refuses a request that carries a secret: its words are kept, shown, and stand in the commit that lands (CW-028).
// What is said of it is kind and place alone.
func (rs *Requests) secretsIn(ctx context.Context, r request.Request) error {
	for _, part := range []struct {
		flag  string
		words []string
	}{
		{"--request", []string{r.Text}}, {"--message", []string{r.Message}}, {"--reason", []string{r.Reason}}, {"--replay", []string{string(r.Script)}},
		{"COMMAND", r.Argv}, {"COMMAND", []string{strings.Join(r.Argv, " ")}},
		{"--check", r.Checks}, {"--setup", r.Setup}, {"--allow", r.Allow}, {"--forbid", r.Forbid}, {"--include-ignored", r.IncludeIgnored},
		{"--agent", []string{r.Agent}}, {"--model", []string{r.Model}}, {"--egress", r.Egress}, {"the model's URL", slices.Sorted(maps.Values(r.Bases))},
		{"what env: refers to", slices.Sorted(maps.Values(r.Env))},
	} {
		for i, words := range part.words {
			what := part.flag
			if len(part.words) > 1 {
				what = fmt.Sprintf("word %d of %s", i+1, part.flag)
			}
			if err := rs.Secrets.RefuseIn(ctx, "sallyport run --help", what, words); err != nil {
				return err
			}
		}
	}
	return nil
}

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/policy"
)

// secretsIn refuses a request that carries a secret: its words are kept, shown, and stand in the commit that lands (CW-028).
// What is said of it is kind and place alone.
func (c *Controller) secretsIn(ctx context.Context, r request.Request) error {
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
			if err := c.secretIn(ctx, "sallyport run --help", what, words); err != nil {
				return err
			}
		}
	}
	return nil
}

// secretIn refuses words that hold a secret, naming them by what.
func (c *Controller) secretIn(ctx context.Context, next, what, words string) error {
	found, err := c.Secrets.Scan(ctx, "", strings.NewReader(words), int64(len(words)))
	switch {
	case err != nil:
		return problem.Errorf(problem.Usage, next, "%s could not be scanned for secrets: %w", what, err)
	case len(found) > 0:
		return problem.Errorf(problem.Usage, next, "%s holds a secret (%s, line %d) and is refused: sallyport keeps these words, shows them and gives them to agents",
			what, found[0].Rule, max(found[0].Line, 1))
	}
	return nil
}

// exportable returns why a checkpoint's bytes are not given out as they are: they hold a secret, or may.
func exportable(cp checkpoint.Checkpoint) error {
	hidden := cp.Status == checkpoint.Skipped || slices.ContainsFunc(cp.Violations, func(v policy.Violation) bool {
		return v.Constraint == policy.SecretFound || v.Constraint == policy.NotScanned
	})
	if !hidden {
		return nil
	}
	return problem.Errorf(problem.Refused, "sallyport checkpoint diff "+string(cp.ID),
		"%s holds a secret, or could not be scanned for one, so sallyport gives out no patch of it; its diff is shown with secrets removed", cp.ID)
}

// showing is a difference to be shown or given out.
type showing struct {
	from, to git.OID
	binary   bool  // as a patch that git apply takes
	exact    error // why it may not be given out as it is; nil = it may
}

// show writes a difference: for reading without secrets, as a patch byte for byte.
func (c *Controller) show(ctx context.Context, host git.Dir, s showing, w io.Writer) error {
	if s.binary {
		if s.exact != nil {
			return s.exact
		}
		return host.Patch(ctx, w, s.from, s.to, true)
	}
	clean := c.Secrets.DiffRedactor(w)
	err := host.Patch(ctx, clean, s.from, s.to, false)
	return errors.Join(err, clean.Close())
}

// together lets the two streams of a program be written to one place.
type together struct {
	mu sync.Mutex
	to io.Writer
}

func (t *together) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.to.Write(p)
}

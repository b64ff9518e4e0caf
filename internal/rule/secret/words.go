package secret

import (
	"context"
	"strings"

	"sallyport/internal/base/problem"
)

// RefuseIn refuses words that hold a secret, naming them by what; next is the command that says how it is done without.
func (s *Scanner) RefuseIn(ctx context.Context, next, what, words string) error {
	found, err := s.Scan(ctx, "", strings.NewReader(words), int64(len(words)))
	switch {
	case err != nil:
		return problem.Errorf(problem.Usage, next, "%s could not be scanned for secrets: %w", what, err)
	case len(found) > 0:
		return problem.Errorf(problem.Usage, next,
			"%s holds a secret (%s, line %d) and is refused: sallyport keeps these words, shows them and gives them to agents",
			what, found[0].Rule, max(found[0].Line, 1))
	}
	return nil
}

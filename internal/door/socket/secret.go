package socket

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// SecretScan looks for secrets on behalf of a person.
type SecretScan interface {
	// Scan reads the files below path (absolute), and the blobs of the last commits that many back if commits is not 0, and says
	// each what it found. An error says that the scan came to no end.
	Scan(ctx context.Context, path string, commits int, each func(api.SecretLine) error) error
}

// historyMax is how many commits one scan may look at.
const historyMax = 1_000_000

// scans answers who looks for secrets.
type scans struct{ part SecretScan }

func (n scans) scan(ctx context.Context, in api.Scan, out io.Writer) error {
	const next = "sallyport secret scan --help"
	if !filepath.IsAbs(in.Path) {
		return problem.Errorf(problem.Usage, next, "the path %q is not absolute", in.Path)
	}
	if in.History > historyMax {
		return problem.Errorf(problem.Usage, next, "--history %d is not between 1 and %d", in.History, historyMax)
	}
	lines := json.NewEncoder(out)
	return n.part.Scan(ctx, in.Path, in.History, func(line api.SecretLine) error { return lines.Encode(line) })
}

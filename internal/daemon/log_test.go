package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sallyport/internal/rule/secret"
)

// What is logged comes from agents, platforms and git, and a log is sent to whoever helps.
func TestTheLogHoldsNoSecret(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	plain, err := secret.New(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	log := slog.New(slog.NewTextHandler(clean{&file, plain}, nil))
	log.Warn("it said "+planted, "error", fmt.Errorf("no way with %s", planted), "bytes", []byte(planted))
	if said := file.String(); strings.Contains(said, planted) || strings.Count(said, "[secret: ") < 2 || !strings.HasSuffix(said, "\n") {
		t.Errorf("%s", said)
	}
}

package authorship

import (
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/path/landing"
	"sallyport/internal/rule/secret"
)

// A commit says what a person or an agent said, to whoever reads the repository.
func TestACommitSaysNoSecret(t *testing.T) {
	m := landing.Message{Change: "chg-1", Subject: "Use it", Body: "with ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"}
	made := Composer{Secrets: secret.Default()}.seal(git.Person{}, m, time.Unix(1, 0))
	if want := "Use it\n\nwith [secret: github-token]\n\nSallyport-Change: chg-1\n"; made.Message != want {
		t.Errorf("%q", made.Message)
	}
}

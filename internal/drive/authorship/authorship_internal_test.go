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
	const key = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	m := landing.Message{Change: "chg-1", Subject: "Use " + key, Body: "with " + key, CoAuthor: key + " <a@b>", Approver: key + " <c@d>"}
	made := Composer{Secrets: secret.Default()}.seal(git.Person{}, m, time.Unix(1, 0))
	const hidden = "[secret: github-token]"
	want := "Use " + hidden + "\n\nwith " + hidden + "\n\nCo-authored-by: " + hidden + " <a@b>\nSallyport-Change: chg-1\nApproved-by: " + hidden + " <c@d>\n"
	if made.Message != want {
		t.Errorf("%q", made.Message)
	}
}

package accept_test

import (
	"slices"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/request"
)

func TestWhatIsAskedForIsInTheAuditLogWithoutSecrets(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		got, err := c.TakeRequest(t.Context(), request.Request{By: h.By(), Text: "Use ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
			Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if said := h.Reasons(c, got.Change.ID, "requested"); !slices.Equal(said, []string{"requested: Use [secret: github-token]"}) {
			t.Errorf("%q", said)
		}
	})
}

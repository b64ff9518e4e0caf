package land_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
)

// What stopped a landing may be words of git or of the disk: they are kept without secrets.
func TestWhyALandingWasUndoneIsKeptWithoutSecrets(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "ref:update" {
				return errors.New("no way with ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi")
			}
			return do()
		}}
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Yes(c, chg)
		if l := h.Is(c, chg, change.AwaitingApproval).Landing; l == nil || l.State != landing.Undone || !strings.Contains(l.Reason, "no way with [secret: github-token]") {
			t.Errorf("%+v", l)
		}
	})
}

package cli

import (
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestUninstallNamesEveryChangeThatIsOpen(t *testing.T) {
	d := newDaemon(t)
	d.detail, _ = waiting()
	d.others = []api.Change{{ID: "chg-zz000002", State: api.Finalized}, {ID: "chg-zz000003", State: api.InTrial}}
	got := d.cli("uninstall", "--dry-run")
	if got.code != exitError || !strings.Contains(got.err, "chg-00000001 has not ended (awaiting_approval), chg-zz000003 has not ended (in_trial)\nnext: sallyport change cancel chg-00000001\n") || strings.Contains(got.err, "chg-zz000002") {
		t.Errorf("%+v", got)
	}
}

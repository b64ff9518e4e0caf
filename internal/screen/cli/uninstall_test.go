package cli

import (
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestUninstallNamesEveryChangeThatIsOpen(t *testing.T) {
	d := newDaemon(t)
	d.detail, _ = waiting()
	d.others = []api.Change{{ID: "chg-zz000002", State: api.Finalized}, {ID: "chg-zz000003", State: api.InTrial}, {ID: "chg-zz000004", State: api.AwaitingApproval}}
	got := d.cli("uninstall", "--dry-run")
	words := strings.Join(strings.Fields(got.err), " ")
	if got.code != exitError || !strings.Contains(words, "waiting for approval: chg-00000001, chg-zz000004; on trial: chg-zz000003.") || strings.Count(words, "change cancel CHANGE ends") != 1 ||
		!strings.Contains(words, "change show CHANGE names") || !strings.HasSuffix(got.err, "\nnext: sallyport change cancel chg-00000001\n") || strings.Contains(got.err, "chg-zz000002") {
		t.Errorf("%+v", got)
	}
}

// A daemon that is newer may have states of changes that this program does not know.
func TestUninstallRefusesWhereItDoesNotKnowTheStateOfAChange(t *testing.T) {
	if err := allEnded([]api.Change{{ID: "chg-00000001", State: api.Failed}, {ID: "chg-zz000002", State: "held"}}); err == nil || !strings.Contains(err.Error(), "held: chg-zz000002") {
		t.Errorf("it goes on: %v", err)
	}
}

// Who only looks ends no turn: which assistant is at work is said, and where its turn is shown.
func TestUninstallOnlyLooksOnceNoAssistantIsAtWork(t *testing.T) {
	d := newDaemon(t)
	d.detail.Change.State = api.Finalized
	d.chats = []api.Chat{{ID: "chat-1", Group: "bob"}, {ID: "chat-2", Group: "ada", Working: true}}
	if got := d.cli("uninstall", "--dry-run"); got.code != exitRefused || !strings.Contains(got.err, "the assistant of ada is at work") ||
		!strings.HasSuffix(got.err, "\nnext: sallyport session show chat-2\n") {
		t.Errorf("%+v", got)
	}
}

package daemon

import (
	"strings"
	"testing"

	"sallyport/internal/path/session"
	"sallyport/internal/rule/config"
)

func TestDoctorSaysHowManyAgentsTheMachineHolds(t *testing.T) {
	d := &Daemon{room: session.Room{Sessions: 40, Short: "50 instances of inotify, one for each", More: "sudo sysctl -w more"}}
	if c := d.checkRoom(); !c.OK || c.Detail != "5 (at_once in sallyport.yaml); this machine holds 40: it has 50 instances of inotify, one for each" {
		t.Errorf("%+v", c)
	}
	d.began.Changes = config.Changes{AtOnce: 100}
	if c := d.checkRoom(); c.OK || c.Needed || c.Fix != "sudo sysctl -w more" || !strings.HasPrefix(c.Detail, "40: at_once in sallyport.yaml is 100") {
		t.Errorf("%+v", c)
	}
}

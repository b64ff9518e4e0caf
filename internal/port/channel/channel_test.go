package channel_test

import (
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

func TestASettingThatIsNoneIsRefused(t *testing.T) {
	known := []channel.Setting{{Name: "server", About: "its address", Required: true}, {Name: "nick", Default: "port"}}
	got, err := channel.Check(known, map[string]string{"server": "h.example"})
	if err != nil || got["nick"] != "port" || got["server"] != "h.example" {
		t.Errorf("%v, %v", got, err)
	}
	for want, said := range map[string]map[string]string{
		"the setting server is missing: its address": {"nick": "x"},
		`this platform has no setting "sever"`:       {"server": "x", "sever": "y"},
	} {
		if _, err := channel.Check(known, said); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", said, err)
		}
	}
}

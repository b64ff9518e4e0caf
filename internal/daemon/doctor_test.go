package daemon

import (
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/zone"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/dispatch"
)

// TestTheDoctorTellsSessionsMessagesAndSchedules holds that what was given up is no line of good news, and that nothing is told of nothing.
func TestTheDoctorTellsSessionsMessagesAndSchedules(t *testing.T) {
	drops := tellDrops([]message.Drop{{Reason: "no mention", Count: 2}})
	if len(drops) != 1 || drops[0].Name != "dropped messages" || !strings.Contains(drops[0].Detail, "2 no mention") || len(tellDrops(nil)) != 0 {
		t.Errorf("%+v", drops)
	}
	for _, c := range tellChats([]dispatch.Seen{{Dead: 1}}, nil) {
		if c.Name == drops[0].Name {
			t.Errorf("what was dropped and %q have one name, and one of them would not be seen", c.Detail)
		}
	}
	if none := tellChats(nil, nil); len(none) != 0 {
		t.Errorf("of nothing it tells %+v", none)
	}
	var got []string
	tasks := []message.In{{Status: message.Pending}, {Status: message.Processing}, {Status: message.Dead}}
	for _, c := range tellChats([]dispatch.Seen{{Live: true, Waiting: 2}, {Waiting: 1, Dead: 3}}, tasks) {
		if c.OK != (c.Fix == "") {
			t.Errorf("%+v", c)
		}
		got = append(got, c.Name+": "+c.Detail+c.Fix)
	}
	want := []string{
		"sessions: 1 of 2 conversations have one now; messages that wait: 3",
		"messages: given up, and answered by nobody: 3sallyport message list --status dead",
		"schedules: tasks that groups have at a time: 2",
		"stopped schedules: tasks that were not done, and do not come again until they are tried again: 1sallyport schedule list",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestTheDoctorTellsChannelsThatAreDownAndWhatWillNotArrive holds that a channel without a session, and what is lost by one, are told with a way on.
func TestTheDoctorTellsChannelsThatAreDownAndWhatWillNotArrive(t *testing.T) {
	up := channels.Standing{
		Channel: conversation.Channel{Name: "team", Platform: "irc"}, State: channels.State{Connected: true, Account: "port"},
		Counts: map[message.DeliveryStatus]int{message.Waiting: 2, message.Undelivered: 5}, Failed: 3,
	}
	down := channels.Standing{Channel: conversation.Channel{Name: "work", Platform: "slack"}, State: channels.State{Reason: "invalid_auth"}, Counts: map[message.DeliveryStatus]int{message.Undelivered: 1}}
	fresh := channels.Standing{Channel: conversation.Channel{Name: "home", Platform: "matrix"}}
	var got []string
	for _, c := range tellChannels([]channels.Standing{up, down, fresh}) {
		if c.OK != (c.Fix == "") {
			t.Errorf("%+v", c)
		}
		got = append(got, c.Name+": "+c.Detail+"; "+c.Fix)
	}
	want := []string{
		"channel team: connected to irc as port; messages that wait: 2; ",
		"channel team: messages of the last day that will never arrive: 3; sallyport channel show team",
		"channel work: not connected, and tried again: invalid_auth; sallyport channel show work",
		"channel home: connecting to matrix; ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestTheDoctorTellsByWhoseClockGroupsHaveTheirTimes holds that a name which is no zone does not pass in silence (CH-131).
func TestTheDoctorTellsByWhoseClockGroupsHaveTheirTimes(t *testing.T) {
	good := checkZone(zone.Of(zone.Sources{Environment: "Europe/Berlin", DotEnv: "TZ=Not/Read"}))
	if want := (api.Check{Name: "times", OK: true, Detail: "groups have their times by the clock of Europe/Berlin, from TZ"}); good != want {
		t.Errorf("%+v", good)
	}
	bad := checkZone(zone.Of(zone.Sources{Environment: "Europe/Berln", DotEnv: "TZ=Mars/Base"}))
	if want := `groups have their times by the clock of UTC, from the default; TZ names "Europe/Berln", which is no zone; .env names "Mars/Base", which is no zone`; bad.OK || bad.Detail != want || bad.Fix == "" {
		t.Errorf("%+v", bad)
	}
}

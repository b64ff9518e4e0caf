package daemon

import (
	"slices"
	"testing"

	"sallyport/internal/drive/dispatch"
)

// TestTheDoctorTellsSessionsMessagesAndSchedules holds that what was given up is no line of good news, and that nothing is told of nothing.
func TestTheDoctorTellsSessionsMessagesAndSchedules(t *testing.T) {
	if none := tellChats(nil, 0); len(none) != 0 {
		t.Errorf("of nothing it tells %+v", none)
	}
	var got []string
	for _, c := range tellChats([]dispatch.Seen{{Live: true, Waiting: 2}, {Waiting: 1, Dead: 3}}, 4) {
		if c.OK != (c.Fix == "") {
			t.Errorf("%+v", c)
		}
		got = append(got, c.Name+": "+c.Detail+c.Fix)
	}
	want := []string{
		"sessions: 1 of 2 conversations have one now; messages that wait: 3",
		"messages: given up, and answered by nobody: 3sallyport message list --status dead",
		"schedules: tasks that groups have at a time: 4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

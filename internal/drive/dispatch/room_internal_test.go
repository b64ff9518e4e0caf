package dispatch

import (
	"testing"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/port/sandbox"
)

// TestWhatAnAgentHasWrittenTooMuchNamesTheCommandThatTakesItAway holds that no agent can end its group for good by what it writes.
func TestWhatAnAgentHasWrittenTooMuchNamesTheCommandThatTakesItAway(t *testing.T) {
	const memory, kept = "sallyport group memory clear echo", "sallyport session forget cht-1a2b3c4d"
	may := sandbox.Limits{DiskBytes: 100, FilesMax: 10}
	for _, c := range []struct {
		what       string
		work, home beneath.Extent
		next, text string
	}{
		{"as much as it may", beneath.Extent{Bytes: 60, Entries: 6}, beneath.Extent{Bytes: 40, Entries: 4}, "", ""},
		{"deep notes", beneath.Extent{Deep: true}, beneath.Extent{}, memory, "folders lie more than 128 deep in each other in the memory of group echo"},
		{"deep notes and a deep home", beneath.Extent{Deep: true}, beneath.Extent{Deep: true}, memory, "folders lie more than 128 deep in each other in the memory of group echo"},
		{"a deep home", beneath.Extent{}, beneath.Extent{Deep: true}, kept, "folders lie more than 128 deep in each other in the home folder that the agent of group echo keeps for this chat"},
		{"large notes", beneath.Extent{Bytes: 60}, beneath.Extent{Bytes: 41}, memory, "there is more than the 100 B that a session may take, in the memory of group echo"},
		{"a large home", beneath.Extent{Bytes: 40}, beneath.Extent{Bytes: 61}, kept, "there is more than the 100 B that a session may take, in the home folder that the agent of group echo keeps for this chat"},
		{"many notes", beneath.Extent{Entries: 11}, beneath.Extent{}, memory, "there are more than the 10 files that a session may have, in the memory of group echo"},
		{"a home of many files", beneath.Extent{Entries: 5}, beneath.Extent{Entries: 6}, kept, "there are more than the 10 files that a session may have, in the home folder that the agent of group echo keeps for this chat"},
	} {
		err := tooMuch(conversation.Chat{ID: "cht-1a2b3c4d", Group: "echo"}, c.work, c.home, may)
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		if p := problem.Of(err); p.Kind != problem.Refused || p.Next != c.next || p.Text != c.text {
			t.Errorf("%s: %+v", c.what, p)
		}
	}
}

package change

import (
	"strings"
	"testing"
)

func TestAReaderWhoIsTooSlowIsToldWhatTheyMissed(t *testing.T) {
	f := NewFeed(func(s string) string { return s })
	s := f.Subscribe("chg-00000001")
	for range queueMax + 40 {
		f.Publish(Notice{Change: "chg-00000001", Kind: "output", Text: "a line"})
	}
	f.Publish(Notice{Change: "chg-00000001", Kind: "progress"})
	f.Publish(Notice{Change: "chg-00000001", Kind: "round"})
	f.Publish(Notice{Change: "chg-00000001", Kind: "state", State: Submitted})
	got := f.Next(t.Context(), s)
	said, last := got[queueMax], got[len(got)-1]
	if len(got) != queueMax+2 || last.State != Submitted || said.Kind != NoticeMissed ||
		!strings.HasPrefix(said.Text, "40 lines of the program's output and 1 other notice left out here") || said.Seq >= last.Seq {
		t.Errorf("%d notices, %+v", len(got), said)
	}
	f.Publish(Notice{Change: "chg-00000001", Kind: "output", Text: "a line"})
	if got := f.Next(t.Context(), s); len(got) != 1 {
		t.Errorf("told again: %+v", got)
	}
}

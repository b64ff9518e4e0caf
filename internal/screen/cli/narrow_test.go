package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sallyport/internal/door/api"
)

func TestWhereATerminalIsTooNarrowATableHasItsLastColumnBelow(t *testing.T) {
	var out bytes.Buffer
	cells := "CHANGE\tSTATE\tREQUEST\n" +
		"chg-00000001\tfinalized\tmake the group ada, and say so\n" +
		"chg-2\tawaiting_approval\t\n" +
		"a word\n"
	if err := tabulate(sheet{w: &out, width: 33, terminal: true}, cells); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"CHANGE        STATE", "    REQUEST",
		"chg-00000001  finalized", "    make the group ada, and say", "    so",
		"chg-2         awaiting_approval",
		"", "    a word",
	}
	if got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("shown:\n%s", out.String())
	}
}

func TestWhereATerminalIsTooNarrowARowOfStatusSaysBelowWhereItIs(t *testing.T) {
	now := time.Now()
	c := api.Change{ID: "chg-00000001", State: api.Finalized, Text: "make the group ada, and say so", Branch: "main", Repo: "/home/ann/notes", Moved: now.Add(-9 * time.Second)}
	const row, place = "  chg-00000001  finalized          make the group ada, and say so", "main in /home/ann/notes, 9s ago"
	for _, at := range []struct {
		s    sheet
		want string
	}{
		{sheet{width: len(row) + 2 + len(place), terminal: true}, row + "  " + place + "\n"},
		{sheet{width: 80, terminal: true}, row + "\n    " + place + "\n"},
		{sheet{width: 60, terminal: true}, "  chg-00000001  finalized          make the group ada, and …\n    " + place + "\n"},
		{sheet{width: 60}, row + "  " + place + "\n"}, // a program reads it line by line
	} {
		var out bytes.Buffer
		at.s.w, at.s.now = &out, now
		if printRow(at.s, c); out.String() != at.want {
			t.Errorf("in %d columns:\n%s\nwant:\n%s", at.s.width, out.String(), at.want)
		}
	}
}

package cli

import (
	"bytes"
	"strings"
	"testing"
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

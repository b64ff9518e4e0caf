package group

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/git"
	"sallyport/internal/base/rapidtest"
)

// TestEveryFileOfTheTemplateHasOneCopyInAGroup: a refresh brings a file to the path that the group's agent means where it edits it at the
// template's, and a promotion brings it to where it was.
func TestEveryFileOfTheTemplateHasOneCopyInAGroup(t *testing.T) {
	parts := []string{templateFolder, groupsFolder, "ada", runnerFolder, skillsFolder, instructionsFile, "runners", "a", "b"}
	rapidtest.Check(t, func(t *rapid.T) {
		p := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 5).Draw(t, "parts"), "/")
		if rapid.Bool().Draw(t, "of the template") {
			p = templateFolder + "/" + p
		}
		to := Folder("ada").copyOf(p)
		m, err := Target("ada", p)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case m.Relocated() && to != m.Target:
			t.Fatalf("an agent that edits %s means %s, and a refresh brings it to %s", p, m.Target, to)
		case to == "":
			return
		case !Folder("ada").Holds(to) || templateFolder+"/"+Folder("ada").Within(to) != p:
			t.Fatalf("%s is brought to %s", p, to)
		}

		e := git.Edit{Path: to, New: git.Entry{Mode: git.File, OID: "1"}}
		back := Promotable("ada", []git.Edit{e})
		if m.Relocated() != (len(back) == 1) || len(back) == 1 && back[0].Path != p {
			t.Fatalf("%s is brought to %s, and back to %+v", p, to, back)
		}
	})
}

package group

import (
	"strings"
	"testing"
)

// TestWhatASkillSaysOfItselfIsFoundHoweverItIsWritten holds it for what people write as front matter, and for what is none.
func TestWhatASkillSaysOfItselfIsFoundHoweverItIsWritten(t *testing.T) {
	for head, want := range map[string]string{
		"---\nname: x\ndescription: Sing: in plain words, \"la\".\n---\nbody\n": `Sing: in plain words, "la".`,
		"---\ndescription: \"Say \\\"x\\\"\"\n---\n":                            `Say "x"`,
		"---\ndescription: 'It''s one'\n---\n":                                  "It's one",
		"---\ndescription: >-\n  One line\n  and another.\nname: x\n---\n":      "One line and another.",
		"---\ndescription: |\n  One line\n\n  and another.\n---\n":              "One line and another.",
		"---\r\ndescription: of a\r\n  Windows editor\r\n---\r\n":               "of a Windows editor",
		"---\nname: x\n---\ndescription: of the body\n":                         "",
		"---\ndescription: it never ends\n":                                     "",
		"Sing.\n":                                                               "",
		"":                                                                      "",
		"---\ndescription:\n---\n":                                              "",
		"---\ndescription: a\x1b[31mb\u202e\n---\n":                             "a\\x1b[31mb\\u202e",
	} {
		if got := described(head); got != want {
			t.Errorf("%q says %q, want %q", head, got, want)
		}
	}
	if got := described("---\ndescription: " + strings.Repeat("long ", 1000) + "\n---\n"); len(got) > descriptionMax+len("…") {
		t.Errorf("a description has %d bytes", len(got))
	}
}

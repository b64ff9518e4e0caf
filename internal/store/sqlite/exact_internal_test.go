package sqlite

import (
	"strings"
	"testing"
	"time"
)

func TestATextThatCouldNotComeBackIsNamed(t *testing.T) {
	type leaf struct {
		Text   string
		hidden string
	}
	type value struct {
		Name  string
		At    time.Time
		Raw   []byte
		Leaf  *leaf
		Parts []leaf
		Any   any
	}
	for name, c := range map[string]struct {
		in   value
		want string // "" = it can be kept
	}{
		"nothing":              {value{}, ""},
		"texts and bytes":      {value{Name: "ä", At: time.Now(), Raw: []byte{0xff}, Leaf: &leaf{Text: "b"}, Parts: []leaf{{Text: "c"}}, Any: 7}, ""},
		"a field that is ours": {value{Leaf: &leaf{hidden: "\xff"}}, ""},
		"a field":              {value{Name: "a\xff"}, `.Name "a\xff"`},
		"behind a pointer":     {value{Leaf: &leaf{Text: "\xff"}}, `.Leaf.Text "\xff"`},
		"in a list":            {value{Parts: []leaf{{}, {Text: "\xff"}}}, `.Parts[1].Text "\xff"`},
		"in anything":          {value{Any: []string{"\xff"}}, `.Any[0] "\xff"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := exact("keep it", c.in)
			if c.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "keep it cannot be kept exactly: "+c.want+" is not UTF-8") {
				t.Fatalf("%v, want %s named", err, c.want)
			}
		})
	}
}

package config

import "testing"

func TestAGroupIsOnesOwnWhereNobodyElseIsInIt(t *testing.T) {
	users := "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\ncid:x:1002:100::/:\nbroken\n"
	groups := "root:x:0:\nstaff:x:50:\nusers:x:100:\nann:x:1000:\nbob:x:1001:ann\nwheel:x:10:root,ann\nteam:x:20:ann,bob\nghost:x:30:gone\nann:x:40:ann\nmore:x:40:bob\nshort:x:60\n"
	for name, test := range map[string]struct {
		gid  uint32
		want bool
	}{
		"their own":                      {1000, true},
		"of root":                        {0, true},
		"with nobody in it":              {50, true},
		"with root":                      {10, true},
		"another's":                      {1001, false},
		"the first group of another":     {100, false},
		"with another":                   {20, false},
		"with who is not known":          {30, false},
		"with another by another name":   {40, false},
		"that is not known":              {70, false},
		"of a line that says too little": {60, false},
	} {
		if got := aloneIn(groups, users, test.gid, []uint32{1000, 0}); got != test.want {
			t.Errorf("a group %s: %v", name, got)
		}
	}
}

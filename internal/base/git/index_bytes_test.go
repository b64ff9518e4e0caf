package git_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
)

// indexEntry is an entry of an index that a test writes itself.
type indexEntry struct {
	git.Staged
	path string
}

// indexFile is an index that a test writes itself, byte by byte as git's documents describe it.
type indexFile struct {
	format  string
	version uint32
	entries []indexEntry
	more    string // extensions
	count   uint32 // that it says it has; 0 = as many as it has
	bare    bool   // without a checksum
}

// extension is one as it stands in an index.
func extension(name, data string) string {
	return name + string(binary.BigEndian.AppendUint32(nil, uint32(len(data)))) + data
}

// offset is git's encoding of how much of a name goes.
func offset(n int) []byte {
	switch {
	case n < 128:
		return []byte{byte(n)}
	case n < 128+128*128:
		n -= 128
		return []byte{0x80 | byte(n>>7), byte(n & 0x7f)}
	}
	n -= 128 + 128*128
	return []byte{0x80 | byte(n>>14), 0x80 | byte(n>>7&0x7f), byte(n & 0x7f)}
}

func (f indexFile) ends() hash.Hash {
	if f.format == "sha256" {
		return sha256.New()
	}
	return sha1.New()
}

// body is all but the checksum.
func (f indexFile) body(t *testing.T) []byte {
	t.Helper()
	count := uint32(len(f.entries))
	if f.count > 0 {
		count = f.count
	}
	out := binary.BigEndian.AppendUint32([]byte("DIRC"), f.version)
	out = binary.BigEndian.AppendUint32(out, count)
	before := ""
	for _, e := range f.entries {
		begin := len(out)
		var mode uint32
		if _, err := fmt.Sscanf(string(e.Mode), "%o", &mode); err != nil {
			t.Fatal(err)
		}
		s := e.Stat
		for _, v := range []uint32{s.CtimeSec, s.CtimeNsec, s.MtimeSec, s.MtimeNsec, s.Dev, s.Ino, mode, s.UID, s.GID, s.Size} {
			out = binary.BigEndian.AppendUint32(out, v)
		}
		id, err := hex.DecodeString(string(e.OID))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, id...)
		flags, extended := uint16(min(len(e.path), 0xfff)), uint16(0)
		flags |= uint16(e.Stage) << 12
		if e.AssumeValid {
			flags |= 1 << 15
		}
		if e.SkipWorktree {
			extended |= 1 << 14
		}
		if e.IntentToAdd {
			extended |= 1 << 13
		}
		if extended != 0 {
			flags |= 1 << 14
		}
		out = binary.BigEndian.AppendUint16(out, flags)
		if extended != 0 {
			out = binary.BigEndian.AppendUint16(out, extended)
		}
		if f.version == 4 {
			same := 0
			for same < len(before) && same < len(e.path) && before[same] == e.path[same] {
				same++
			}
			out = append(out, offset(len(before)-same)...)
			out = append(append(out, e.path[same:]...), 0)
			before = e.path
			continue
		}
		out = append(append(out, e.path...), 0)
		for (len(out)-begin)%8 != 0 {
			out = append(out, 0)
		}
	}
	return append(out, f.more...)
}

func (f indexFile) bytes(t *testing.T) []byte {
	t.Helper()
	out, sum := f.body(t), f.ends()
	if f.bare {
		return append(out, make([]byte, sum.Size())...)
	}
	sum.Write(out)
	return sum.Sum(out)
}

// id is one that is easy to tell from others.
func (f indexFile) id(of byte) git.OID {
	return git.OID(hex.EncodeToString(bytes.Repeat([]byte{of}, f.ends().Size())))
}

// entry is one at a path with an id and stat data of its own.
func (f indexFile) entry(path string, of byte) indexEntry {
	n := uint32(of) << 16
	return indexEntry{path: path, Staged: git.Staged{
		Entry: git.Entry{Mode: git.File, OID: f.id(of)},
		Stat: git.Stat{
			CtimeSec: n + 1, CtimeNsec: n + 2, MtimeSec: n + 3, MtimeNsec: n + 4, Dev: n + 5, Ino: n + 6, UID: n + 7, GID: n + 8, Size: n + 9,
		},
	}}
}

// kinds are indexes of every version and of both formats, with names of every length of padding and flags of every kind.
func kinds() (all []indexFile) {
	for _, format := range []string{"sha1", "sha256"} {
		for version := range uint32(5) {
			if version < 2 {
				continue
			}
			f := indexFile{format: format, version: version}
			for i := range 9 {
				f.entries = append(f.entries, f.entry("d/"+strings.Repeat("n", i+1), byte(i+1)))
			}
			if version > 2 {
				f.entries[1].SkipWorktree = true
				f.entries[2].IntentToAdd = true
			}
			f.entries[0].AssumeValid = true
			f.entries = append(f.entries, f.entry("d0", 20), f.entry("e/"+strings.Repeat("long/", 900)+"x", 21), f.entry("f", 22))
			for stage := 1; stage <= 3; stage++ {
				e := f.entry("g", byte(30+stage))
				e.Stage = stage
				f.entries = append(f.entries, e)
			}
			e := f.entry("h/i", 40)
			e.Mode, e.Stage = git.Symlink, 2
			f.entries = append(f.entries, e, f.entry("j", 41))
			all = append(all, f)
		}
	}
	return all
}

func parsed(t *testing.T, f indexFile) *git.Index {
	t.Helper()
	x, err := git.ParseIndex(f.bytes(t), f.format)
	if err == nil {
		err = x.Check()
	}
	if err != nil {
		t.Fatalf("%s version %d: %v", f.format, f.version, err)
	}
	return x
}

func TestAnIndexIsReadAsItsBytesSay(t *testing.T) {
	for _, f := range kinds() {
		x := parsed(t, f)
		for _, e := range f.entries {
			want := e.Staged
			if e.Stage > 0 {
				want = git.Staged{}
			}
			if got := x.Entry(e.path); got != want {
				t.Errorf("%s version %d, %.20q: %+v, want %+v", f.format, f.version, e.path, got, want)
			}
		}
		for _, none := range []string{"", "a", "d", "d/", "e", "z"} {
			if got := x.Entry(none); got != (git.Staged{}) {
				t.Errorf("%s version %d has %+v at %q", f.format, f.version, got, none)
			}
		}
		if got := x.Unmerged(); !slices.Equal(got, []string{"g", "h/i"}) {
			t.Errorf("%s version %d: %q are in conflict", f.format, f.version, got)
		}
		if got := x.Below("d"); len(got) != 9 || got[0] != "d/n" || got[8] != f.entries[8].path {
			t.Errorf("%s version %d: %q lie below d", f.format, f.version, got)
		}
		if got := x.Below("j"); len(got) > 0 {
			t.Errorf("%q lie below a file", got)
		}
	}
}

func TestAnIndexWithoutEntriesIsRead(t *testing.T) {
	for _, f := range kinds() {
		f.entries = nil
		x := parsed(t, f)
		if x.Split || x.Sparse || x.Entry("a") != (git.Staged{}) {
			t.Errorf("%s version %d: %+v", f.format, f.version, x)
		}
		f.version = 2
		e := f.entry("a", 1)
		fresh, err := git.ParseIndex(nil, f.format)
		if err == nil {
			err = fresh.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := fresh.Replace(map[string]git.Staged{"a": e.Staged})
		f.entries = []indexEntry{e}
		if err != nil || !bytes.Equal(out, f.bytes(t)) {
			t.Errorf("%s: what is staged first is written as %x, %v", f.format, out, err)
		}
	}
}

// What Replace writes is, byte for byte, the index that has what stays and what is new.
func TestReplaceWritesWhatStaysAndWhatIsNew(t *testing.T) {
	for _, f := range kinds() {
		without := func(gone ...string) (left []indexEntry) {
			for _, e := range f.entries {
				if !slices.Contains(gone, e.path) {
					left = append(left, e)
				}
			}
			return left
		}
		with := func(left []indexEntry, more ...indexEntry) []indexEntry {
			left = append(slices.Clone(left), more...)
			slices.SortStableFunc(left, func(a, b indexEntry) int { return strings.Compare(a.path, b.path) })
			return left
		}
		long := f.entry("e/"+strings.Repeat("long/", 4000), 60) // more than the flags can say, and than two bytes of an offset
		long.path += "y"
		program := f.entry("d/n", 61)
		program.Mode, program.AssumeValid = git.Executable, true
		all := map[string]git.Staged{}
		for _, e := range f.entries {
			all[e.path] = git.Staged{}
		}
		for name, c := range map[string]struct {
			set  map[string]git.Staged
			want []indexEntry
		}{
			"nothing":                    {nil, f.entries},
			"the first goes":             {map[string]git.Staged{"d/n": {}}, without("d/n")},
			"the last goes":              {map[string]git.Staged{"j": {}}, without("j")},
			"two next to each other go":  {map[string]git.Staged{"d/nn": {}, "d/nnn": {}}, without("d/nn", "d/nnn")},
			"a conflict goes":            {map[string]git.Staged{"g": {}}, without("g")},
			"a conflict is settled":      {map[string]git.Staged{"g": f.entry("g", 62).Staged}, with(without("g"), f.entry("g", 62))},
			"what is not there goes":     {map[string]git.Staged{"dd": {}, "zz": {}}, f.entries},
			"one is another":             {map[string]git.Staged{"d/n": program.Staged}, with(without("d/n"), program)},
			"one comes before all":       {map[string]git.Staged{"a": f.entry("a", 63).Staged}, with(f.entries, f.entry("a", 63))},
			"one comes behind all":       {map[string]git.Staged{"z/z": f.entry("z/z", 64).Staged}, with(f.entries, f.entry("z/z", 64))},
			"one with a very long name":  {map[string]git.Staged{long.path: long.Staged}, with(f.entries, long)},
			"all go":                     {all, nil},
			"one goes and another comes": {map[string]git.Staged{"d0": {}, "d1": f.entry("d1", 65).Staged}, with(without("d0"), f.entry("d1", 65))},
		} {
			out, err := parsed(t, f).Replace(c.set)
			want := f
			want.entries = c.want
			if err != nil || !bytes.Equal(out, want.bytes(t)) {
				t.Errorf("%s version %d, %s: %v, or other bytes", f.format, f.version, name, err)
			}
		}
		bare := f
		bare.bare = true
		if out, err := parsed(t, bare).Replace(nil); err != nil || !bytes.Equal(out, bare.bytes(t)) {
			t.Errorf("%s version %d without a checksum: %v, or other bytes", f.format, f.version, err)
		}
	}
}

func TestReplaceRefusesToStageWhatIsNoEntry(t *testing.T) {
	for _, f := range kinds() {
		x, ok := parsed(t, f), f.entry("a", 1).Staged
		with := func(change func(s *git.Staged)) git.Staged {
			s := ok
			change(&s)
			return s
		}
		for name, set := range map[string]map[string]git.Staged{
			"no name":               {"": ok},
			"a name of two":         {"a\x00b": ok},
			"a name with a NUL":     {"\x00a": ok},
			"an id of another kind": {"a": with(func(s *git.Staged) { s.OID = s.OID[:len(s.OID)-2] })},
			"an id that is none":    {"a": with(func(s *git.Staged) { s.OID = git.OID(strings.Repeat("x", len(s.OID))) })},
			"a mode that is none":   {"a": with(func(s *git.Staged) { s.Mode = "what" })},
			"a mode too large":      {"a": with(func(s *git.Staged) { s.Mode = "77777777777777" })},
		} {
			if out, err := x.Replace(set); err == nil || out != nil {
				t.Errorf("%s version %d: %s was staged", f.format, f.version, name)
			}
		}
	}
}

func TestAnIndexThatMakesNoSenseIsRefused(t *testing.T) {
	for _, f := range kinds() {
		plain := f
		plain.entries = []indexEntry{f.entry("a", 1), f.entry("b", 2)}
		changed := func(change func(f *indexFile)) []byte {
			c := plain
			c.entries = slices.Clone(plain.entries)
			change(&c)
			return c.bytes(t)
		}
		raw, fixed := plain.bytes(t), 40+f.ends().Size()+2
		at := func(off int, to ...byte) []byte {
			out := bytes.Clone(raw)
			copy(out[off:], to)
			return out
		}
		for name, bad := range map[string][]byte{
			"a byte":                      {1},
			"no room for a checksum":      append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"), make([]byte, f.ends().Size()-1)...),
			"another magic":               at(0, 'd'),
			"version 1":                   at(4, 0, 0, 0, 1),
			"version 5":                   at(4, 0, 0, 0, 5),
			"more entries than it has":    changed(func(c *indexFile) { c.count = 3 }),
			"far more than have room":     changed(func(c *indexFile) { c.count = 1 << 30 }),
			"out of order":                changed(func(c *indexFile) { slices.Reverse(c.entries) }),
			"one twice":                   changed(func(c *indexFile) { c.entries[1].path = "a" }),
			"stages out of order":         changed(func(c *indexFile) { c.entries[0].Stage, c.entries[1].Stage, c.entries[1].path = 2, 1, "a" }),
			"one without a name":          changed(func(c *indexFile) { c.entries[0].path = "" }),
			"a needed extension":          changed(func(c *indexFile) { c.more = extension("some", "x") }),
			"a needed extension, other":   changed(func(c *indexFile) { c.more = extension("\x7fOME", "x") }),
			"an extension without a size": changed(func(c *indexFile) { c.more = "SOME\x00\x00\x00" }),
			"an extension cut off":        changed(func(c *indexFile) { c.more = extension("SOME", "xy")[:9] }),
			"an extension's end missing":  changed(func(c *indexFile) { c.more = extension("OKAY", "x") + extension("SOME", "x")[:8] }),
			"an entry cut off":            append(bytes.Clone(raw[:12+fixed+1]), make([]byte, f.ends().Size())...),
		} {
			if x, err := git.ParseIndex(bad, f.format); !errors.Is(err, git.ErrIndex) || x != nil {
				t.Errorf("%s version %d, %s: %v", f.format, f.version, name, err)
			}
		}
		long := plain
		long.entries = []indexEntry{f.entry(strings.Repeat("a", 200), 1), f.entry("b", 2)}
		if f.version > 2 {
			long.entries[1].SkipWorktree = true
		}
		begins := bytes.Index(long.body(t), []byte{0, 2, 0, 1, 0, 2, 0, 2}) // the second entry
		for _, more := range []int{1, fixed - 1, fixed, fixed + 1} {
			bad := append(bytes.Clone(long.body(t)[:begins+more]), make([]byte, f.ends().Size())...)
			if x, err := git.ParseIndex(bad, f.format); !errors.Is(err, git.ErrIndex) || x != nil {
				t.Errorf("%s version %d, an entry of %d bytes: %v", f.format, f.version, more, err)
			}
		}
		for name, fine := range map[string][]byte{
			"an extension that may be left out": changed(func(c *indexFile) { c.more = extension("AOME", "x") + extension("ZOME", "") }),
			"stages in order":                   changed(func(c *indexFile) { c.entries[0].Stage, c.entries[1].Stage, c.entries[1].path = 1, 2, "a" }),
		} {
			if _, err := git.ParseIndex(fine, f.format); err != nil {
				t.Errorf("%s version %d, %s: %v", f.format, f.version, name, err)
			}
		}
		if f.version == 2 { // which has no such flags
			bad := changed(func(c *indexFile) { c.entries[0].IntentToAdd = true })
			if _, err := git.ParseIndex(bad, f.format); !errors.Is(err, git.ErrIndex) {
				t.Errorf("version 2 with the flags of version 3: %v", err)
			}
		}
		if f.version == 4 {
			second := 12 + fixed + 3 + fixed // the second entry's name, behind "\x00a\x00"
			for name, bad := range map[string][]byte{
				"more goes than was there":        at(second, 2),
				"an offset without an end":        append(append(bytes.Clone(raw[:second]), 0x80, 0x80), make([]byte, 0)...),
				"an offset that is far too large": append(append(bytes.Clone(raw[:second]), 0x90, 0x80, 0x80, 0x80), raw[second+1:]...),
			} {
				if _, err := git.ParseIndex(bad, f.format); !errors.Is(err, git.ErrIndex) {
					t.Errorf("%s, %s: %v", f.format, name, err)
				}
			}
		}
		for name, link := range map[string]string{"split": "link", "sparse": "sdir"} {
			x, err := git.ParseIndex(changed(func(c *indexFile) { c.more = extension(link, "") }), f.format)
			if err != nil || x.Split != (name == "split") || x.Sparse != (name == "sparse") {
				t.Errorf("%s: %+v, %v", name, x, err)
				continue
			}
			if _, err := x.Replace(nil); !errors.Is(err, git.ErrIndex) {
				t.Errorf("a %s index is written anew: %v", name, err)
			}
		}
		split := changed(func(c *indexFile) { c.more, c.entries[0].path = extension("link", ""), "" })
		if _, err := git.ParseIndex(split, f.format); err != nil {
			t.Errorf("a split index has entries without a name: %v", err)
		}
	}
}

// What an index keeps beside its entries stays as long as it is true of the entries that stay.
func TestReplaceKeepsOfTheExtensionsWhatStaysTrue(t *testing.T) {
	for _, f := range kinds() {
		id := string(bytes.Repeat([]byte{7}, f.ends().Size()))
		tree := func(name string, count, below int) string {
			s := fmt.Sprintf("%s\x00%d %d\n", name, count, below)
			if count >= 0 {
				s += id
			}
			return s
		}
		untracked := "\x03env" + strings.Repeat("\x00", 2*36) + "flag" + strings.Repeat("\x00", 2*len(id)) + "dir\x00"
		for name, c := range map[string]struct{ more, want string }{
			"the trees above go": {
				extension("TREE", tree("", 9, 3)+tree("c", 1, 0)+tree("d", 4, 2)+tree("w", 1, 0)+tree("x", 1, 0)+tree("e", 0, 0)),
				extension("TREE", tree("", -1, 3)+tree("c", 1, 0)+tree("d", -1, 1)+tree("w", 1, 0)+tree("e", 0, 0)),
			},
			"trees that were not known": {
				extension("TREE", tree("", -1, 2)+tree("b", -1, 0)+tree("d", -1, 0)),
				extension("TREE", tree("", -1, 2)+tree("b", -1, 0)+tree("d", -1, 0)),
			},
			"settled conflicts stay":      {extension("REUC", "some"), extension("REUC", "some")},
			"what only speeds up goes":    {extension("EOIE", "x") + extension("IEOT", "x") + extension("FSMN", "x") + extension("REUC", "y"), extension("REUC", "y")},
			"untracked are emptied":       {extension("UNTR", untracked+"\x01folders"), extension("UNTR", untracked+"\x00")},
			"untracked that are cut off":  {extension("UNTR", untracked[:len(untracked)-1]), ""},
			"untracked that say nothing":  {extension("UNTR", ""), ""},
			"untracked without a folder":  {extension("UNTR", untracked[:len(untracked)-4]), ""},
			"untracked of another hash":   {extension("UNTR", untracked[:len(untracked)-5]), ""},
			"trees that are cut off":      {extension("TREE", tree("", 1, 0)[:20]), ""},
			"trees with more behind":      {extension("TREE", tree("", 1, 0)+"x"), ""},
			"a tree less than said":       {extension("TREE", tree("", 1, 1)), ""},
			"less than no trees":          {extension("TREE", tree("", 1, -1)), ""},
			"more trees than have room":   {extension("TREE", tree("", -1, 2)+"x"), ""},
			"no number of entries":        {extension("TREE", "\x00x 0\n"+id), ""},
			"no number of trees":          {extension("TREE", "\x001 x\n"+id), ""},
			"no number at all":            {extension("TREE", "\x001\n"+id), ""},
			"no line":                     {extension("TREE", "\x001 0"), ""},
			"no name":                     {extension("TREE", "1 0\n"), ""},
			"trees within trees for ever": {extension("TREE", strings.Repeat(tree("x", -1, 1), 5000)+tree("", -1, 0)), ""},
			"trees as deep as can be":     {extension("TREE", strings.Repeat(tree("x", -1, 1), 4096)+tree("", -1, 0)), extension("TREE", strings.Repeat(tree("x", -1, 1), 4096)+tree("", -1, 0))},
			"no line of an unknown one":   {extension("TREE", "\x00-1 0"), ""},
			"untracked of no file":        {extension("UNTR", untracked[:len(untracked)-4]+"\x00folders"), extension("UNTR", untracked[:len(untracked)-4]+"\x00\x00")},
		} {
			f.more = c.more
			want := f
			want.more = c.want
			out, err := parsed(t, f).Replace(map[string]git.Staged{"d/x": {}})
			if err != nil || !bytes.Equal(out, want.bytes(t)) {
				t.Errorf("%s version %d, %s: %v, or other bytes", f.format, f.version, name, err)
			}
		}
	}
}

func TestACheckSeesEveryByteThatIsAnother(t *testing.T) {
	for _, f := range kinds() {
		f.entries = []indexEntry{f.entry("a", 1)}
		raw := f.bytes(t)
		for _, at := range []int{20, len(raw) - 1, len(raw) - f.ends().Size()} {
			bad := bytes.Clone(raw)
			bad[at] ^= 1
			x, err := git.ParseIndex(bad, f.format)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Check(); !errors.Is(err, git.ErrIndex) {
				t.Errorf("%s version %d, byte %d: %v", f.format, f.version, at, err)
			}
		}
		f.bare = true
		_ = parsed(t, f)
	}
}

package git

import (
	"bufio"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
)

func TestAnIDHasTheLettersAndTheLengthOfAHash(t *testing.T) {
	for id, want := range map[string]bool{
		strings.Repeat("0", 40): true, strings.Repeat("f", 64): true, strings.Repeat("9a", 20): true,
		"": false, "abc": false, strings.Repeat("a", 39): false, strings.Repeat("a", 41): false, strings.Repeat("a", 63): false, strings.Repeat("a", 65): false,
		strings.Repeat("g", 40): false, strings.Repeat("A", 40): false, strings.Repeat("a", 20) + "x" + strings.Repeat("a", 19): false, strings.Repeat("a", 39) + "\n": false,
	} {
		if got := OID(id).Valid(); got != want {
			t.Errorf("%q is valid: %v", id, got)
		}
	}
	for format, length := range map[string]int{"sha1": 40, "sha256": 64} {
		if got := none(length).Format(); got != format || !EmptyTree(format).Valid() || len(EmptyTree(format)) != length || idBytes(format)*2 != length {
			t.Errorf("%d digits are %s", length, got)
		}
	}
}

func TestATreeIsReadAsItsBytesSayOrRefused(t *testing.T) {
	for _, hash := range []int{20, 32} {
		id := strings.Repeat("\x0a", hash)
		entry := func(head string) string { return head + "\x00" + id }
		oid := OID(strings.Repeat("0a", hash))
		for name, c := range map[string]struct {
			raw  string
			want map[string]Entry
		}{
			"nothing": {"", map[string]Entry{}},
			"all kinds": {
				entry("100644 a") + entry("100755 b c") + entry("120000 d") + entry("160000 e") + entry("40000 f"),
				map[string]Entry{"a": {File, oid}, "b c": {Executable, oid}, "d": {Symlink, oid}, "e": {Submodule, oid}, "f": {Folder, oid}},
			},
			"a name in the id":       {entry("100644 a") + "100644 b\x00" + strings.Repeat(" ", hash), map[string]Entry{"a": {File, oid}, "b": {File, OID(strings.Repeat("20", hash))}}},
			"no mode":                {entry(" a"), nil},
			"no space":               {entry("100644"), nil},
			"no space but in the id": {"100644\x00" + strings.Repeat(" ", hash), nil},
			"no end of the name":     {"100644 abc", nil},
			"an id that is cut off":  {entry("100644 a")[:9+hash-1], nil},
			"no id":                  {"100644 a\x00", nil},
			"a mode that is none":    {entry("10x644 a"), nil},
			"a mode too large":       {entry("7777777777777 a"), nil},
			"a name twice":           {entry("100644 a") + entry("40000 a"), nil},
			"more behind":            {entry("100644 a") + "1", nil},
		} {
			got := map[string]Entry{}
			err := parseTree(strings.NewReader(c.raw), hash, got)
			if (err == nil) != (c.want != nil) || err == nil && !maps.Equal(got, c.want) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
	no := errors.New("no")
	if err := parseTree(iotest.ErrReader(no), 20, map[string]Entry{}); !errors.Is(err, no) {
		t.Errorf("what cannot be read: %v", err)
	}
}

func TestAListIsReadRecordByRecordOrRefused(t *testing.T) {
	id := strings.Repeat("a", 40)
	record := "100644 blob " + id + "       5\tname\x00"
	for name, c := range map[string]struct {
		raw, err string
		count    int
	}{
		"nothing":            {"", "", 0},
		"two":                {record + "160000 commit " + id + "       -\tsub\x00", "", 2},
		"one cut off":        {record + record[:20], "EOF", 1},
		"one without a path": {"100644 blob " + id + " 5\x00", "unexpected record", 0},
		"one of too few":     {"100644 blob " + id + "\tname\x00", "unexpected record", 0},
		"one of too many":    {"100644 blob " + id + " 5 6\tname\x00", "unexpected record", 0},
		"one far too long":   {record + strings.Repeat("x", 5000) + "\x00", "a path has more than", 1},
	} {
		count := 0
		err := listed(bufio.NewReaderSize(strings.NewReader(c.raw), 4096), func(path string, e Entry, size int64) error {
			if count == 0 && (path != "name" || e != (Entry{File, OID(id)}) || size != 5) || count == 1 && (path != "sub" || e.Mode != Submodule || size != -1) {
				t.Errorf("%s: %q, %+v, %d", name, path, e, size)
			}
			count++
			return nil
		})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || count != c.count {
			t.Errorf("%s: %d read, %v", name, count, err)
		}
		if refused := problem.KindOf(err) == problem.Refused; refused != (name == "one far too long") {
			t.Errorf("%s is refused: %v", name, refused)
		}
	}
}

// A tree that makes no sense is refused each time that it is asked for.
func TestATreeThatMakesNoSenseIsNotRemembered(t *testing.T) {
	p, _, _ := configuredPlace(t)
	d := p.Common(disk.Ops{})
	out, err := d.Do(t.Context(), "t:w", Cmd{Args: []string{"hash-object", "-t", "tree", "-w", "--literally", "--stdin"}, Stdin: strings.NewReader("100644 a\x00" + strings.Repeat("1", 20) + "bad")})
	if err != nil {
		t.Fatal(err)
	}
	bad := OID(strings.TrimSpace(string(out)))
	s := d.Session(t.Context())
	defer s.Close()
	for range 2 {
		if root, err := s.tree(bad); root != "" || err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("%q, %v", root, err)
		}
		if in, err := s.entries(bad); in != nil || err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("%v, %v", in, err)
		}
	}
}

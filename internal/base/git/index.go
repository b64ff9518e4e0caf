package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ErrIndex is wrapped by every refusal to read an index.
var ErrIndex = errors.New("the index cannot be read")

// Stat is what an index remembers of a file so that an untouched one need not be
// read again. The zero Stat makes git look at the bytes.
type Stat struct {
	CtimeSec, CtimeNsec uint32
	MtimeSec, MtimeNsec uint32
	Dev, Ino            uint32 // the low 32 bits, as git keeps them
	UID, GID            uint32
	Size                uint32 // bytes, the low 32 bits
}

// Staged is one entry of an index.
type Staged struct {
	Entry
	Stage        int // 0, or 1 to 3 in a conflict
	AssumeValid  bool
	SkipWorktree bool
	IntentToAdd  bool
	Stat         Stat
}

// Index is an index file as it was read; it is never changed. Replace makes the
// bytes of the next one.
//
// It is read and written in process because git offers no way to give touched
// entries their stat data without looking at every other file and running the
// filters that a repository's attributes name.
type Index struct {
	Split  bool // entries live in a shared index as well: Replace refuses
	Sparse bool // folders stand for their files: Replace refuses

	raw     []byte
	version uint32
	hashLen int
	entries []span
	rest    int // offset of the extensions
	end     int // offset of the checksum
}

// span is one entry's place in raw.
type span struct {
	path     string
	off, end int
	flags    uint16
	extended uint16
}

const (
	flagAssumeValid  = 0x8000
	flagExtended     = 0x4000
	flagStage        = 0x3000
	flagNameMax      = 0x0fff
	flagSkipWorktree = 0x4000
	flagIntentToAdd  = 0x2000
	statLen          = 40 // nine fields of stat and the mode
)

func (s span) stage() int { return int(s.flags&flagStage) >> 12 }

// ParseIndex reads an index file's bytes; empty ones are an index without entries.
// It does not check the checksum: Check does.
func ParseIndex(raw []byte, objectFormat string) (*Index, error) {
	x := &Index{raw: raw, version: 2, hashLen: idBytes(objectFormat)}
	if len(raw) == 0 {
		return x, nil
	}
	if len(raw) < 12+x.hashLen || string(raw[:4]) != "DIRC" {
		return nil, fmt.Errorf("%w: it does not begin as one", ErrIndex)
	}
	x.version = binary.BigEndian.Uint32(raw[4:])
	if x.version < 2 || x.version > 4 {
		return nil, fmt.Errorf("%w: version %d is unknown", ErrIndex, x.version)
	}
	x.end = len(raw) - x.hashLen
	if err := x.parseEntries(int(binary.BigEndian.Uint32(raw[8:]))); err != nil {
		return nil, err
	}
	err := x.extensions(func(name string, _ []byte) error {
		switch {
		case name == "link":
			x.Split = true
		case name == "sdir":
			x.Sparse = true
		case name[0] < 'A' || name[0] > 'Z':
			return fmt.Errorf("%w: it needs the unknown extension %q", ErrIndex, name)
		}
		return nil
	})
	if err == nil && !x.Split && !x.ordered() { // a split index has entries without a name
		err = fmt.Errorf("%w: its entries are out of order", ErrIndex)
	}
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (x *Index) parseEntries(count int) error {
	fixed := statLen + x.hashLen + 2
	if count < 0 || count > (x.end-12)/(fixed+1) {
		return fmt.Errorf("%w: it says it has %d entries", ErrIndex, count)
	}
	x.entries = make([]span, 0, count)
	text := ""
	if x.version < 4 {
		text = string(x.raw)
	}
	at, previous := 12, ""
	for range count {
		if at+fixed > x.end {
			return fmt.Errorf("%w: it ends early", ErrIndex)
		}
		s := span{off: at, flags: binary.BigEndian.Uint16(x.raw[at+fixed-2:])}
		name := at + fixed
		if s.flags&flagExtended != 0 {
			if x.version < 3 || name+2 > x.end {
				return fmt.Errorf("%w: an entry is malformed", ErrIndex)
			}
			s.extended = binary.BigEndian.Uint16(x.raw[name:])
			name += 2
		}
		strip := 0
		if x.version == 4 {
			var n int
			strip, n = varint(x.raw[name:x.end])
			if n == 0 || strip > len(previous) {
				return fmt.Errorf("%w: an entry's name is malformed", ErrIndex)
			}
			name += n
		}
		length := bytes.IndexByte(x.raw[name:x.end], 0)
		if length < 0 {
			return fmt.Errorf("%w: an entry has no end", ErrIndex)
		}
		if x.version == 4 {
			s.path = previous[:len(previous)-strip] + string(x.raw[name:name+length])
			s.end = name + length + 1
		} else {
			s.path = text[name : name+length]
			s.end = at + (name+length-at+8)&^7
		}
		if s.end > x.end {
			return fmt.Errorf("%w: it ends early", ErrIndex)
		}
		x.entries = append(x.entries, s)
		at, previous = s.end, s.path
	}
	x.rest = at
	return nil
}

// ordered reports whether every entry has a name and a place after the one before it.
func (x *Index) ordered() bool {
	for i, s := range x.entries {
		if s.path == "" {
			return false
		}
		if i == 0 {
			continue
		}
		before := x.entries[i-1]
		if before.path > s.path || before.path == s.path && before.stage() >= s.stage() {
			return false
		}
	}
	return true
}

// extensions calls each with every extension, in order.
func (x *Index) extensions(each func(name string, data []byte) error) error {
	for at := x.rest; at < x.end; {
		size := int(binary.BigEndian.Uint32(x.raw[at+4:])) // the checksum stands behind all of them, and is longer
		if size > x.end-at-8 {
			return fmt.Errorf("%w: an extension is cut off", ErrIndex)
		}
		if err := each(string(x.raw[at:at+4]), x.raw[at+8:at+8+size]); err != nil {
			return err
		}
		at += 8 + size
	}
	return nil
}

// unsigned reports whether the index was written without a checksum (index.skipHash).
func (x *Index) unsigned() bool { return len(bytes.Trim(x.raw[x.end:], "\x00")) == 0 }

// Check compares the checksum.
func (x *Index) Check() error {
	if len(x.raw) == 0 || x.unsigned() {
		return nil
	}
	h := newHash(x.hashLen)
	h.Write(x.raw[:x.end])
	if !bytes.Equal(h.Sum(nil), x.raw[x.end:]) {
		return fmt.Errorf("%w: its checksum is wrong", ErrIndex)
	}
	return nil
}

// Entry returns what is staged at a path, stage 0 only; the zero Staged if nothing is.
func (x *Index) Entry(path string) Staged {
	i := x.find(path)
	if i == len(x.entries) || x.entries[i].path != path || x.entries[i].stage() != 0 {
		return Staged{}
	}
	return x.staged(x.entries[i])
}

// find returns where the first entry not before path is.
func (x *Index) find(path string) int {
	return sort.Search(len(x.entries), func(i int) bool { return x.entries[i].path >= path })
}

// Below returns the paths staged below a folder.
func (x *Index) Below(folder string) []string {
	var paths []string
	for i := x.find(folder + "/"); i < len(x.entries) && strings.HasPrefix(x.entries[i].path, folder+"/"); i++ {
		paths = append(paths, x.entries[i].path)
	}
	return paths
}

// Unmerged returns the paths in conflict.
func (x *Index) Unmerged() []string {
	var paths []string
	for _, s := range x.entries {
		if s.stage() != 0 && (len(paths) == 0 || paths[len(paths)-1] != s.path) {
			paths = append(paths, s.path)
		}
	}
	return paths
}

func (x *Index) staged(s span) Staged {
	field := func(i int) uint32 { return binary.BigEndian.Uint32(x.raw[s.off+4*i:]) }
	return Staged{
		Entry: Entry{
			Mode: Mode(fmt.Sprintf("%06o", field(6))),
			OID:  OID(hex.EncodeToString(x.raw[s.off+statLen : s.off+statLen+x.hashLen])),
		},
		Stage:        s.stage(),
		AssumeValid:  s.flags&flagAssumeValid != 0,
		SkipWorktree: s.extended&flagSkipWorktree != 0,
		IntentToAdd:  s.extended&flagIntentToAdd != 0,
		Stat: Stat{
			CtimeSec: field(0), CtimeNsec: field(1), MtimeSec: field(2), MtimeNsec: field(3),
			Dev: field(4), Ino: field(5), UID: field(7), GID: field(8), Size: field(9),
		},
	}
}

// varint reads git's offset encoding; n is 0 if it is malformed.
func varint(raw []byte) (value, n int) {
	for i, c := range raw {
		if i == 0 {
			value = int(c & 0x7f)
		} else {
			value = (value+1)<<7 | int(c&0x7f)
		}
		if value > 1<<24 {
			return 0, 0
		}
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// appendVarint writes git's offset encoding.
func appendVarint(out []byte, value int) []byte {
	var buf [8]byte
	at := len(buf) - 1
	buf[at] = byte(value & 0x7f)
	for value >>= 7; value > 0; value >>= 7 {
		value--
		at--
		buf[at] = 0x80 | byte(value&0x7f)
	}
	return append(out, buf[at:]...)
}

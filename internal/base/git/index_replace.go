package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Replace returns the bytes of an index in which each path of set is staged as given,
// or not at all if absent. Every other entry keeps its bytes: flags, stat data, conflicts.
//
// Of the extensions, the cached trees above the paths are invalidated, the untracked
// cache is emptied but stays switched on, resolved conflicts stay, and what only speeds
// up reading is left for git to make again.
func (x *Index) Replace(set map[string]Staged) ([]byte, error) {
	if x.Split || x.Sparse {
		return nil, fmt.Errorf("%w: it is split or sparse", ErrIndex)
	}
	w := indexWriter{x: x, out: make([]byte, 12, len(x.raw)+len(set)*256+64)}
	paths := slices.Sorted(maps.Keys(set))
	from := 0
	for _, p := range paths {
		to := x.find(p)
		w.keep(x.entries[from:to])
		if err := w.add(p, set[p]); err != nil {
			return nil, err
		}
		for from = to; from < len(x.entries) && x.entries[from].path == p; {
			from++ // all stages of it go
		}
	}
	w.keep(x.entries[from:])
	copy(w.out, "DIRC")
	binary.BigEndian.PutUint32(w.out[4:], x.version)
	binary.BigEndian.PutUint32(w.out[8:], uint32(w.count))
	if err := w.extensions(paths); err != nil {
		return nil, err
	}
	if len(x.raw) > 0 && x.unsigned() {
		return append(w.out, make([]byte, x.hashLen)...), nil
	}
	h := newHash(x.hashLen)
	h.Write(w.out)
	return h.Sum(w.out), nil
}

type indexWriter struct {
	x        *Index
	out      []byte
	count    int
	previous string // path of the entry before, for version 4
}

// keep copies a run of entries; in version 4 their names are packed anew, for the one before may have gone.
func (w *indexWriter) keep(run []span) {
	w.count += len(run)
	if len(run) == 0 {
		return
	}
	if w.x.version < 4 {
		w.out = append(w.out, w.x.raw[run[0].off:run[len(run)-1].end]...)
		return
	}
	for _, s := range run {
		fixed := statLen + w.x.hashLen + 2
		if s.flags&flagExtended != 0 {
			fixed += 2
		}
		w.out = append(w.out, w.x.raw[s.off:s.off+fixed]...)
		w.packName(s.path)
	}
}

func (w *indexWriter) packName(path string) {
	common := 0
	for common < len(path) && common < len(w.previous) && path[common] == w.previous[common] {
		common++
	}
	w.out = appendVarint(w.out, len(w.previous)-common)
	w.out = append(w.out, path[common:]...)
	w.out = append(w.out, 0)
	w.previous = path
}

func (w *indexWriter) add(path string, s Staged) error {
	if s.Absent() {
		return nil
	}
	mode, err := strconv.ParseUint(string(s.Mode), 8, 32)
	oid, hexErr := hex.DecodeString(string(s.OID))
	if err != nil || hexErr != nil || len(oid) != w.x.hashLen || strings.IndexByte(path, 0) >= 0 || path == "" {
		return fmt.Errorf("stage %q: %s %s is no entry", path, s.Mode, s.OID)
	}
	w.count++
	start := len(w.out)
	for _, v := range []uint32{
		s.Stat.CtimeSec, s.Stat.CtimeNsec, s.Stat.MtimeSec, s.Stat.MtimeNsec, s.Stat.Dev,
		s.Stat.Ino, uint32(mode), s.Stat.UID, s.Stat.GID, s.Stat.Size,
	} {
		w.out = binary.BigEndian.AppendUint32(w.out, v)
	}
	w.out = append(w.out, oid...)
	flags := uint16(min(len(path), flagNameMax))
	if s.AssumeValid {
		flags |= flagAssumeValid
	}
	w.out = binary.BigEndian.AppendUint16(w.out, flags)
	if w.x.version == 4 {
		w.packName(path)
		return nil
	}
	w.out = append(w.out, path...)
	for pad := 8 - (len(w.out)-start)%8; pad > 0; pad-- {
		w.out = append(w.out, 0)
	}
	return nil
}

func (w *indexWriter) extensions(paths []string) error {
	return w.x.extensions(func(name string, data []byte) error {
		switch name {
		case "TREE":
			root, left, err := parseCachedTree(data, w.x.hashLen, 0)
			if err != nil || len(left) > 0 {
				return nil // a cache that makes no sense is left for git to make again
			}
			for _, p := range paths {
				root.invalidate(p)
			}
			data = root.append(nil)
		case "UNTR":
			if data = emptyUntracked(data, w.x.hashLen); data == nil {
				return nil
			}
		case "REUC":
		default:
			return nil
		}
		w.out = append(w.out, name...)
		w.out = binary.BigEndian.AppendUint32(w.out, uint32(len(data)))
		w.out = append(w.out, data...)
		return nil
	})
}

// emptyUntracked keeps of an untracked cache what says that it is wanted and how; nil if it makes no sense.
func emptyUntracked(data []byte, hashLen int) []byte {
	size, n := varint(data)
	at := n + size + 2*36 + 4 + 2*hashLen // environment; two files' stat data; flags; two files' ids
	if n == 0 || at > len(data) {
		return nil
	}
	name := bytes.IndexByte(data[at:], 0)
	if name < 0 {
		return nil
	}
	return append(bytes.Clone(data[:at+name+1]), 0) // no folders follow
}

// cachedTree is a node of the TREE extension.
type cachedTree struct {
	name  string
	count int // entries it covers; negative = invalid
	oid   []byte
	below []*cachedTree
}

func parseCachedTree(data []byte, hashLen, depth int) (*cachedTree, []byte, error) {
	bad := fmt.Errorf("%w: its cached trees are malformed", ErrIndex)
	name, data, ok := bytes.Cut(data, []byte{0})
	line, data, ok2 := bytes.Cut(data, []byte{'\n'})
	counts, subtrees, ok3 := strings.Cut(string(line), " ")
	if !ok || !ok2 || !ok3 || depth > 4096 {
		return nil, nil, bad
	}
	t := &cachedTree{name: string(name)}
	n, err := strconv.Atoi(subtrees)
	if err != nil || n < 0 || n > len(data) {
		return nil, nil, bad
	}
	if t.count, err = strconv.Atoi(counts); err != nil {
		return nil, nil, bad
	}
	if t.count >= 0 {
		if len(data) < hashLen {
			return nil, nil, bad
		}
		t.oid, data = data[:hashLen], data[hashLen:]
	}
	for range n {
		var child *cachedTree
		if child, data, err = parseCachedTree(data, hashLen, depth+1); err != nil {
			return nil, nil, err
		}
		t.below = append(t.below, child)
	}
	return t, data, nil
}

// invalidate marks every tree that holds path, and forgets one that has path for its name.
func (t *cachedTree) invalidate(path string) {
	t.count = -1
	name, rest, deeper := strings.Cut(path, "/")
	for i, child := range t.below {
		if child.name != name {
			continue
		}
		if deeper {
			child.invalidate(rest)
		} else {
			t.below = slices.Delete(t.below, i, i+1)
		}
		return
	}
}

func (t *cachedTree) append(out []byte) []byte {
	out = append(out, t.name...)
	out = append(out, 0)
	out = fmt.Appendf(out, "%d %d\n", t.count, len(t.below))
	if t.count >= 0 {
		out = append(out, t.oid...)
	}
	for _, child := range t.below {
		out = child.append(out)
	}
	return out
}

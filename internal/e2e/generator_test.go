package e2e_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A generator makes a stream of file changes from a seed: which they are depends on the seed alone, only how many there are
// depends on the time. So whoever knows seed and number knows the tree, and the tree at every moment before.

// filesMax is how many files a generator has at once.
const filesMax = 1200

// model is a tree that a generator makes, in memory.
type model struct {
	root  string
	rand  *rand.Rand
	names []string          // those that are there
	files map[string]string // path → "mode oid", as git would record it
	sum   [8]uint64         // of the entries, whatever their order: the tree's digest
	next  int
}

func newModel(seed uint64) *model {
	return &model{root: "made-" + strconv.FormatUint(seed, 10), rand: rand.New(rand.NewPCG(seed, 7)), files: map[string]string{}}
}

// step is one moment's change of a tree, the smallest there is: one call of the kernel's.
type step struct {
	do    string // write, cut, remove, move, run
	path  string
	to    string // of a move
	bytes []byte // of a write
}

// change returns the next file change, as the steps that it is made of.
func (m *model) change() []step {
	m.next++
	kind := m.rand.IntN(100)
	switch {
	case len(m.names) == 0, kind < 45 && len(m.names) < filesMax:
		name := fmt.Sprintf("%s/%c/%c/%d", m.root, 'a'+m.rand.IntN(6), 'a'+m.rand.IntN(6), m.next)
		return []step{{do: "cut", path: name}, {do: "write", path: name, bytes: m.text()}}
	case kind < 70:
		name := m.names[m.rand.IntN(len(m.names))]
		return []step{{do: "cut", path: name}, {do: "write", path: name, bytes: m.text()}}
	case kind < 80: // a rename, now and then over another file
		name, to := m.names[m.rand.IntN(len(m.names))], fmt.Sprintf("%s/%c/moved-%d", m.root, 'a'+m.rand.IntN(6), m.next)
		if other := m.names[m.rand.IntN(len(m.names))]; other != name && m.rand.IntN(4) == 0 {
			to = other
		}
		return []step{{do: "move", path: name, to: to}}
	case kind < 85:
		return []step{{do: "run", path: m.names[m.rand.IntN(len(m.names))]}}
	}
	return []step{{do: "remove", path: m.names[m.rand.IntN(len(m.names))]}}
}

// text is up to a page: a write of more is not one moment's.
func (m *model) text() []byte {
	out := fmt.Appendf(nil, "%s %d\n", m.root, m.next)
	for range m.rand.IntN(40) {
		out = fmt.Appendf(out, "%016x\n", m.rand.Uint64())
	}
	return out
}

// apply does a step in memory.
func (m *model) apply(s step) {
	mode := "100644"
	if was, ok := m.files[s.path]; ok {
		mode = was[:6]
	}
	switch s.do {
	case "cut", "write":
		m.set(s.path, mode+" "+blob(s.bytes))
	case "run":
		m.set(s.path, "100755"+m.files[s.path][6:])
	case "remove":
		m.set(s.path, "")
	case "move":
		entry := m.files[s.path]
		m.set(s.path, "")
		m.set(s.to, entry)
	}
}

// set makes a path's entry what is given; "" is none.
func (m *model) set(name, entry string) {
	if was, ok := m.files[name]; ok {
		m.add(name, was, true)
	} else if entry != "" {
		m.names = append(m.names, name)
	}
	if entry != "" {
		m.files[name] = entry
		m.add(name, entry, false)
		return
	}
	delete(m.files, name)
	at := slices.Index(m.names, name)
	m.names[at] = m.names[len(m.names)-1]
	m.names = m.names[:len(m.names)-1]
}

// add adds an entry to the sum, or takes it away.
func (m *model) add(name, entry string, away bool) {
	hash := sha256.Sum256([]byte(name + "\x00" + entry))
	for i := range m.sum {
		part := uint64(binary.LittleEndian.Uint32(hash[4*i:])) + 1
		if away {
			part = -part
		}
		m.sum[i] += part
	}
}

// digest names the tree as it is now.
func (m *model) digest() string {
	var raw []byte
	for _, part := range m.sum {
		raw = binary.LittleEndian.AppendUint64(raw, part)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// blob is what git calls some bytes.
func blob(text []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(text))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// perform does a step on the disk.
func (s step) perform() error {
	switch s.do {
	case "cut":
		if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(s.path, nil, 0o644)
	case "write":
		f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if _, err := f.Write(s.bytes); err != nil {
			return errors.Join(err, f.Close())
		}
		return f.Close()
	case "run":
		return os.Chmod(s.path, 0o755)
	case "remove":
		return os.Remove(s.path)
	}
	if err := os.MkdirAll(filepath.Dir(s.to), 0o755); err != nil {
		return err
	}
	return os.Rename(s.path, s.to)
}

// generate makes so many file changes a second for some time: generate SEED SECONDS RATE GATE. It then
// waits until its gate opens, and at its end looks at the disk itself and says how many changes it made and what came of them.
func generate(args []string) error {
	var numbers [3]int
	for i, a := range args[:len(numbers)] {
		n, err := strconv.Atoi(a)
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	m := newModel(uint64(numbers[0]))
	began := time.Now()
	last, late := time.Duration(numbers[1])*time.Second, time.Duration(0)
	count := 0
	for due := time.Duration(0); due < last; count++ {
		for _, s := range m.change() {
			if err := s.perform(); err != nil {
				return fmt.Errorf("change %d: %w", count, err)
			}
			m.apply(s)
		}
		due = time.Duration(count+1) * time.Second / time.Duration(numbers[2])
		if ahead := due - time.Since(began); ahead > time.Millisecond {
			time.Sleep(ahead)
		} else {
			late = max(late, -ahead)
		}
	}
	took := time.Since(began)
	for !opened(args[len(numbers)]) {
		time.Sleep(5 * time.Millisecond)
	}
	files, err := onDiskBelow(m.root)
	if err != nil {
		return err
	}
	if !maps.Equal(files, m.files) {
		return fmt.Errorf("the disk has %d files and not the %d that were made", len(files), len(m.files))
	}
	fmt.Printf("made %d changes in %.1fs, %d files, %s, late by %s\n", count, took.Seconds(), len(files), m.digest(), late.Round(time.Millisecond))
	return nil
}

// onDiskBelow is what git would record below a folder.
func onDiskBelow(root string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(name)
		mode := "100644"
		if info.Mode()&0o100 != 0 {
			mode = "100755"
		}
		all[name] = mode + " " + blob(raw)
		return err
	})
	return all, err
}

// made is a generator's own word on what it did.
type made struct {
	changes, files int
	digest         string
	text           string
}

// madeOf finds it in a transcript.
func madeOf(t *testing.T, transcript string) made {
	t.Helper()
	var m made
	var seconds, late string
	at := strings.Index(transcript, "made ")
	if at < 0 {
		t.Fatalf("the generator said nothing: %.2000q", transcript)
	}
	m.text, _, _ = strings.Cut(transcript[at:], `"`) // a line is JSON
	if _, err := fmt.Sscanf(m.text, "made %d changes in %s %d files, %s late by %s", &m.changes, &seconds, &m.files, &m.digest, &late); err != nil {
		t.Fatalf("%v: %q", err, m.text)
	}
	m.digest = strings.TrimSuffix(m.digest, ",")
	return m
}

// moments returns every tree that a generator's was at some moment, by its digest: the number of the change.
func moments(seed uint64, changes int) (all map[string]int, last *model) {
	m := newModel(seed)
	all = map[string]int{m.digest(): 0}
	for n := range changes {
		for _, s := range m.change() {
			m.apply(s)
			all[m.digest()] = n + 1
		}
	}
	return all, m
}

// digestOf is the digest of what a commit has below a generator's root, and what else differs from the base.
func digestOf(t *testing.T, gitDir, commit, root string, base map[string]string) (digest string, strangers []string) {
	t.Helper()
	m := &model{files: map[string]string{}}
	rest := map[string]string{}
	for name, entry := range listed(t, gitDir, commit) {
		if strings.HasPrefix(name, root+"/") {
			m.add(name, entry, false)
		} else {
			rest[name] = entry
		}
	}
	for name := range union(rest, base) {
		if rest[name] != base[name] {
			strangers = append(strangers, name)
		}
	}
	return m.digest(), strangers
}

// The generator is held to its word before anything is held to it.
func TestAGeneratorSaysWhatItMade(t *testing.T) {
	t.Chdir(t.TempDir())
	_, first := moments(3, 4000)
	all, last := moments(3, 4000)
	if last.digest() != first.digest() || len(all) < 4000 {
		t.Fatalf("the same seed gives %s and %s, in %d moments", last.digest(), first.digest(), len(all))
	}
	m := newModel(3)
	for range 600 {
		for _, s := range m.change() {
			if err := s.perform(); err != nil {
				t.Fatal(err)
			}
			m.apply(s)
		}
	}
	files, err := onDiskBelow(m.root)
	if err != nil || !maps.Equal(files, m.files) {
		t.Errorf("%d files on the disk, %d made: %v", len(files), len(m.files), err)
	}
	if all[m.digest()] == 0 || m.digest() == first.digest() {
		t.Error("a moment is not found by its digest")
	}
	kinds := map[string]int{}
	for name := range m.files {
		kinds[path.Base(name)[:1]]++
	}
	if kinds["m"] == 0 || len(m.files) < 50 {
		t.Errorf("the generator makes only %v", kinds)
	}
}

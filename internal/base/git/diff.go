package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/problem"
)

// depthMax is how many folders in each other are compared: more are nobody's work.
const depthMax = 4096

// Edits returns what differs between two trees, without rename detection, in path order.
func (d Dir) Edits(ctx context.Context, from, to OID) ([]Edit, error) {
	return d.EditsMax(ctx, from, to, math.MaxInt)
}

// ErrFar says that two trees differ by more than was asked for.
var ErrFar = errors.New("more differs than is looked at")

// EditsMax is Edits, and ErrFar once so many paths and folders differ: few objects can stand for any number of them.
func (d Dir) EditsMax(ctx context.Context, from, to OID, most int) ([]Edit, error) {
	s := d.Session(ctx)
	defer s.Close()
	c, err := s.compare(from, to, most)
	return c.edits, err
}

// compare tells what differs between two commits or trees.
func (s *Session) compare(from, to OID, most int) (comparing, error) {
	var roots [2]Entry
	for i, treeish := range []OID{from, to} {
		root, err := s.tree(treeish)
		if err != nil {
			return comparing{}, err
		}
		roots[i] = Entry{Mode: Folder, OID: root}
	}
	c := comparing{s: s, left: most}
	c.add(pair{from: roots[0], to: roots[1]})
	for len(c.todo) > 0 {
		if err := c.step(); err != nil {
			return comparing{}, err
		}
	}
	slices.SortFunc(c.edits, func(a, b Edit) int { return strings.Compare(a.Path, b.Path) })
	return c, nil
}

// comparing is one comparison of two trees.
type comparing struct {
	s     *Session
	left  int    // paths and folders that may still differ
	todo  []pair // places that differ and were not looked at
	edits []Edit
	made  []OID // the trees of the new side that differ
}

// pair is a place in both trees.
type pair struct {
	at       string
	depth    int
	from, to Entry
}

// step tells what differs at the places that were found last, and finds those below. Folders that are the same are not read.
func (c *comparing) step() error {
	rest := max(0, len(c.todo)-atOnce)
	now := slices.Clone(c.todo[rest:])
	c.todo = c.todo[:rest]
	var folders []OID
	for _, p := range now {
		if c.left--; c.left < 0 {
			return ErrFar
		}
		if p.depth > depthMax {
			return problem.Errorf(problem.Refused, "", "more than %d folders lie in each other at %.100q…", depthMax, p.at)
		}
		if p.from.Mode == Folder {
			folders = append(folders, p.from.OID)
		}
		if p.to.Mode == Folder {
			folders, c.made = append(folders, p.to.OID), append(c.made, p.to.OID)
		}
	}
	if err := c.s.read(slices.Clone(folders)); err != nil {
		return err
	}

	for _, p := range now {
		if from, to := p.from.File(), p.to.File(); from != to {
			c.edits = append(c.edits, Edit{Path: p.at, Old: from, New: to})
		}
		c.below(p)
	}
	for _, oid := range folders { // the next places have others
		delete(c.s.trees, oid)
	}
	return nil
}

// below finds what differs one folder deeper.
func (c *comparing) below(p pair) {
	from, to, folder := c.s.in(p.from), c.s.in(p.to), p.at
	if folder != "" {
		folder += "/"
	}
	for name := range from {
		c.add(pair{folder + name, p.depth + 1, from[name], to[name]})
	}
	for name := range to {
		if _, done := from[name]; !done {
			c.add(pair{folder + name, p.depth + 1, Entry{}, to[name]})
		}
	}
}

// add has a place looked at, if it differs.
func (c *comparing) add(p pair) {
	if p.from != p.to {
		c.todo = append(c.todo, p)
	}
}

// Whole reports whether d holds all that a commit brings beyond another: its tree, and what differs there. It asks the repository as it is.
func (d Dir) Whole(ctx context.Context, commit, beyond OID) (bool, error) {
	s := d.Session(ctx)
	defer s.Close()
	_, objects, err := s.brought(commit, beyond)
	if err == nil {
		err = s.r.many("info", objects, func(OID, header) error { return nil }, func(oid OID) error {
			there, err := s.r.resolve(string(oid))
			if err == nil && there == "" {
				err = errMissing
			}
			return err
		})
	}
	if errors.Is(err, errMissing) || problem.KindOf(err) == problem.NotFound {
		return false, nil
	}
	return err == nil, err
}

// parseRaw reads `:mode mode oid oid status`.
func parseRaw(meta string) (FileStat, error) {
	f := strings.Fields(strings.TrimPrefix(meta, ":"))
	if len(f) != 5 || !strings.HasPrefix(meta, ":") {
		return FileStat{}, fmt.Errorf("unexpected diff record %q", meta)
	}
	return FileStat{Old: side(f[0], f[2]), New: side(f[1], f[3]), Status: f[4][:1]}, nil
}

func side(mode, oid string) Entry {
	if mode == "000000" {
		return Entry{}
	}
	return Entry{Mode: Mode(mode), OID: OID(oid)}
}

// DiffMemoryMax is how much memory a program has that compares lines. It takes 43 bytes for each line of a file beside the file itself:
// without a limit 3 GB for 64 MiB of empty lines, of the machine that all agents work on.
const DiffMemoryMax = 1 << 30

// ErrDiffMemory says that lines cannot be compared in DiffMemoryMax.
var ErrDiffMemory = errors.New("comparing lines takes more than 1 GiB of memory")

// compareLines runs a command that compares lines. In a repository without a work tree no attribute says which files have some: git from 2.43
// to 2.45 would take those of HEAD, which agents write. Errors: ErrDiffMemory.
func compareLines(ctx context.Context, d Dir, c Cmd) ([]byte, error) {
	c.DataMax = DiffMemoryMax
	c.Config = append(c.Config, "attr.tree="+string(EmptyTree("sha1")))
	out, err := d.Run(ctx, c)
	var failed *Failure
	if errors.As(err, &failed) && slices.ContainsFunc(noMemory, func(words string) bool { return strings.Contains(failed.Stderr, words) }) {
		return nil, fmt.Errorf("%w: %w", ErrDiffMemory, err)
	}
	return out, err
}

// noMemory is how git says that it gets no memory, in its own words and the system's.
var noMemory = []string{"ut of memory", "Cannot allocate memory"}

// Stat returns what differs between two trees file by file, with renames and line counts, in path order. Both may take minutes and
// gigabytes where files have many lines: beyond the time that it has for them, and DiffMemoryMax, every file is Uncounted.
func (d Dir) Stat(ctx context.Context, from, to OID, within time.Duration) ([]FileStat, error) {
	timed, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	stats, err := statsOf(timed, d, from, to, "-M", "--numstat")
	if err == nil || ctx.Err() != nil || timed.Err() == nil && !errors.Is(err, ErrDiffMemory) {
		return stats, err
	}
	stats, err = statsOf(ctx, d, from, to, "--no-renames")
	for i := range stats {
		stats[i].Uncounted = true
	}
	return stats, err
}

func statsOf(ctx context.Context, d Dir, from, to OID, how ...string) ([]FileStat, error) {
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--no-ext-diff", "--no-textconv", "--no-abbrev"}, how...)
	out, err := compareLines(ctx, d, Cmd{Args: append(args, string(from), string(to))})
	if err != nil {
		return nil, err
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var stats []FileStat
	at := map[string]int{}
	i := 0
	for i < len(fields) && strings.HasPrefix(fields[i], ":") {
		s, err := parseRaw(fields[i])
		if err != nil {
			return nil, err
		}
		need := 1
		if s.Status == "R" || s.Status == "C" {
			need = 2
		}
		if i+need >= len(fields) {
			return nil, fmt.Errorf("diff ends in the middle of a record")
		}
		if need == 2 {
			s.From = fields[i+1]
		}
		s.Path = fields[i+need]
		i += 1 + need
		at[s.Path] = len(stats)
		stats = append(stats, s)
	}
	for ; i < len(fields) && fields[i] != ""; i++ {
		n := strings.SplitN(fields[i], "\t", 3)
		if len(n) != 3 {
			return nil, fmt.Errorf("unexpected line counts %q", fields[i])
		}
		path := n[2]
		if path == "" { // a rename: both paths follow
			if i+2 >= len(fields) {
				return nil, fmt.Errorf("diff ends in the middle of line counts")
			}
			path = fields[i+2]
			i += 2
		}
		k, ok := at[path]
		if !ok {
			return nil, fmt.Errorf("line counts for %q, which did not change", path)
		}
		if n[0] == "-" {
			stats[k].Binary = true
			continue
		}
		stats[k].Added, _ = strconv.Atoi(n[0])
		stats[k].Removed, _ = strconv.Atoi(n[1])
	}
	return stats, nil
}

// Patch writes a unified diff with renames. Binary files are data that `git apply` takes, or a notice.
// No attribute, filter or external program takes part as long as d has no work tree of its own. Errors: ErrDiffMemory, after what was written.
func (d Dir) Patch(ctx context.Context, w io.Writer, from, to OID, binary bool) error {
	args := []string{"diff-tree", "-r", "-p", "-M", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"}
	if binary {
		args = append(args, "--binary")
	}
	_, err := compareLines(ctx, d, Cmd{Args: append(args, string(from), string(to)), Stdout: w})
	return err
}

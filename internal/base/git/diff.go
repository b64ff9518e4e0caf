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
	var roots [2]Entry
	for i, treeish := range []OID{from, to} {
		root, err := s.tree(treeish)
		if err != nil {
			return nil, err
		}
		roots[i] = Entry{Mode: Folder, OID: root}
	}
	c := comparing{s: s, left: most}
	if err := c.compare("", 0, roots[0], roots[1]); err != nil {
		return nil, err
	}
	slices.SortFunc(c.edits, func(a, b Edit) int { return strings.Compare(a.Path, b.Path) })
	return c.edits, nil
}

// comparing is one comparison of two trees.
type comparing struct {
	s     *Session
	left  int // paths and folders that may still differ
	edits []Edit
}

// compare tells what differs at a place and below it. Folders that are the same are not read.
func (c *comparing) compare(at string, depth int, from, to Entry) error {
	if from == to {
		return nil
	}
	if c.left--; c.left < 0 {
		return ErrFar
	}
	if depth > depthMax {
		return problem.Errorf(problem.Refused, "", "more than %d folders lie in each other at %.100q…", depthMax, at)
	}
	var sides [2]map[string]Entry
	for i, e := range []*Entry{&from, &to} {
		if e.Mode != Folder {
			continue
		}
		in, err := c.s.read(e.OID)
		if err != nil {
			return err
		}
		sides[i], *e = in, Entry{}
	}
	if from != to {
		c.edits = append(c.edits, Edit{Path: at, Old: from, New: to})
	}

	below := func(name string) error {
		place := name
		if at != "" {
			place = at + "/" + name
		}
		return c.compare(place, depth+1, sides[0][name], sides[1][name])
	}
	for name := range sides[0] {
		if err := below(name); err != nil {
			return err
		}
	}
	for name := range sides[1] {
		if _, done := sides[0][name]; done {
			continue
		}
		if err := below(name); err != nil {
			return err
		}
	}
	return nil
}

// Whole reports whether d holds all that a commit brings beyond another: its tree, and what differs there. It asks the repository as it is.
func (d Dir) Whole(ctx context.Context, commit, beyond OID) (bool, error) {
	edits, err := d.Edits(ctx, beyond, commit)
	if problem.KindOf(err) == problem.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r := d.reader(ctx)
	defer r.close()
	for _, e := range edits {
		if e.New.Absent() || e.New.Mode == Submodule {
			continue
		}
		if oid, err := r.resolve(string(e.New.OID)); err != nil || oid == "" {
			return false, err
		}
	}
	return true, nil
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

// Stat returns what differs between two trees file by file, with renames and line counts, in path order.
func (d Dir) Stat(ctx context.Context, from, to OID) ([]FileStat, error) {
	out, err := d.Run(ctx, Cmd{Args: []string{"diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-ext-diff", "--no-textconv", "--no-abbrev", string(from), string(to)}})
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
// No attribute, filter or external program takes part as long as d has no work tree of its own.
func (d Dir) Patch(ctx context.Context, w io.Writer, from, to OID, binary bool) error {
	args := []string{"diff-tree", "-r", "-p", "-M", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"}
	if binary {
		args = append(args, "--binary")
	}
	_, err := d.Run(ctx, Cmd{Args: append(args, string(from), string(to)), Stdout: w})
	return err
}

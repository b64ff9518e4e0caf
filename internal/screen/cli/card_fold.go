package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const (
	foldFrom     = 16  // files that a card names before it folds them by folder
	foldMin      = 3   // files of a folder that are worth a line of their own
	markedMin    = 4   // marks that say the same and are worth a line together; half of them are named
	madeMax      = 200 // characters of the command that made a change
	diffAtOnce   = 30  // lines of a diff that a person is shown with the card
	diffBytesMax = 8 << 10
)

// folded is the status of a line that stands for several files of a folder; their number follows it.
const folded = "folder "

// foldMarks are the marks in lines. Where there are many, those that say the same have one line, and what few say comes first: so each
// reason is seen, whatever names an agent gave its files.
func foldMarks(marks []api.Mark, folds bool) (lines []string) {
	saying := map[string][]string{}
	var says []string // in the order of their lines
	for _, m := range marks {
		name := inert.Path(m.Path)
		if !folds {
			lines = append(lines, name+": "+inert.Line(m.Says))
			continue
		}
		if saying[m.Says] == nil {
			says = append(says, m.Says)
		}
		saying[m.Says] = append(saying[m.Says], name)
	}
	slices.SortStableFunc(says, func(a, b string) int { return cmp.Compare(len(saying[a]), len(saying[b])) })
	for _, s := range says {
		names, more := saying[s], ""
		if n := len(names); n >= markedMin {
			names, more = names[:markedMin/2], fmt.Sprintf(" and %d more", n-markedMin/2)
		}
		lines = append(lines, strings.Join(names, ", ")+more+": "+inert.Line(s))
	}
	return lines
}

// foldFiles joins the files of a folder into one line, where there are many. A file with a note or a mark stays, and so does one that
// goes away, for it is what a person has to see: where not all marks are known, all files stay. approval show names every path.
func foldFiles(c api.Card) []api.FileLine {
	files := c.Files
	if len(files) < foldFrom || c.MarksTotal > len(c.Marks) {
		return files
	}
	marked := map[string]bool{}
	for _, m := range c.Marks {
		marked[m.Path] = true
	}
	foldable := func(f api.FileLine) bool {
		return f.Note == "" && f.From == "" && f.Status != "deleted" && !marked[f.Path]
	}
	in := map[string]int{}
	for _, f := range files {
		if foldable(f) {
			in[path.Dir(f.Path)]++
		}
	}

	var out []api.FileLine
	at := map[string]int{} // where a folder's line stands
	for _, f := range files {
		dir := path.Dir(f.Path)
		if !foldable(f) || in[dir] < foldMin {
			out = append(out, f)
			continue
		}
		i, seen := at[dir]
		if !seen {
			i = len(out)
			at[dir] = i
			out = append(out, api.FileLine{Path: dir + "/", Status: folded + strconv.Itoa(in[dir]), Uncounted: f.Uncounted})
		}
		out[i].Added += f.Added
		out[i].Removed += f.Removed
	}
	return out
}

// filesIn returns for how many files a folded line stands.
func filesIn(f api.FileLine) (n int, is bool) {
	number, is := strings.CutPrefix(f.Status, folded)
	if !is {
		return 1, false
	}
	n, err := strconv.Atoi(number)
	return n, err == nil
}

// standFor is how many files some lines of a card name.
func standFor(files []api.FileLine) (n int) {
	for _, f := range files {
		in, _ := filesIn(f)
		n += in
	}
	return n
}

// errLong says that a diff is too long to be shown unasked.
var errLong = errors.New("too long to be shown at once")

// brief keeps what is written as long as it is short.
type brief struct{ bytes.Buffer }

func (b *brief) Write(p []byte) (int, error) {
	if b.Len()+len(p) > diffBytesMax || bytes.Count(b.Bytes(), []byte("\n"))+bytes.Count(p, []byte("\n")) > diffAtOnce {
		return 0, errLong
	}
	return b.Buffer.Write(p)
}

// tab is how wide code is set in where a terminal's own tab would not be counted.
const tab = "    "

// printShortDiff shows a change's diff below its card if it is short enough to be read at once. One that
// cannot be had is what [d]iff is for, which says why.
func printShortDiff(ctx context.Context, c *client.Client, s sheet, change string) {
	var diff brief
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what is too long is not read to its end
	err := client.Copy(ctx, c, api.ChangeDiff, change, &diff)
	if errors.Is(err, errLong) {
		s.line("")
		s.line("the diff is long: d shows it")
	}
	if err != nil || diff.Len() == 0 {
		return
	}
	s.line("")
	for line := range strings.Lines(diff.String()) {
		line = inert.Line(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", tab))
		switch {
		case strings.HasPrefix(line, "index "): // two ids that nobody compares by eye
		case columns(line)+len(agentMark) > s.width:
			s.rows(agentMark, agentMark+inert.Onward, line) // no line of a diff begins so
		case strings.HasPrefix(line, "+"):
			s.line("%s%s", agentMark, s.green(line))
		case strings.HasPrefix(line, "-"):
			s.line("%s%s", agentMark, s.red(line))
		default:
			s.line("%s%s", agentMark, line)
		}
	}
}

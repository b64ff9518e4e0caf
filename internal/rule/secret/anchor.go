package secret

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// anchor is a set of words one of which stands in every match of an expression (or of one branch of it),
// with what can stand before and from there on.
type anchor struct {
	words  []string // lower case, ASCII
	before *reach
	after  *reach // from the word's first byte on
	glance glance
	check  func() *regexp.Regexp // holds at the word's first byte wherever a match does; cheap. nil: there is none
	sight  *reach                // how far check can look
}

const (
	anchorWordsMax = 64
	anchorBytesMax = 16
	anchorBytesMin = 2 // shorter words stand everywhere
	lettersMax     = 8 // of a class that makes words
	headMax        = 128
)

// anchors returns the anchors of an expression and the number of runs in their reaches; nil if there is no good set: then
// only searching the whole text will do.
func anchors(expression string) (as []anchor, runs int) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, 0
	}
	for _, p := range anchorsOf(flatten(re)) {
		a := anchor{words: p.words}
		a.before = measure(p.before, &runs)
		a.after = measure(p.after, &runs)
		head := headOf(unasserted(p.after))
		a.sight = measure(head, &runs)
		a.glance = glanceAt(head)
		whole := &syntax.Regexp{Op: syntax.OpConcat, Flags: syntax.Perl, Sub: head}
		a.check = sync.OnceValue(func() *regexp.Regexp {
			check, _ := regexp.Compile(`\A(?:` + expressionOf(whole) + `)`) // one that does not compile rules out nothing
			return check
		})
		as = append(as, a)
	}
	return as, runs
}

func wordsOf(as []anchor) (words [][]string) {
	for _, a := range as {
		words = append(words, a.words)
	}
	return words
}

// place is an anchor in the making.
type place struct {
	words         []string
	before, after []*syntax.Regexp
}

func (p place) quality() int { return shortest(p.words) }

func shortest(words []string) int {
	n := len(words[0])
	for _, w := range words {
		n = min(n, len(w))
	}
	return n
}

// flatten returns the parts in a row that an expression is, without captures.
func flatten(re *syntax.Regexp) []*syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture:
		return flatten(re.Sub[0])
	case syntax.OpConcat:
		var parts []*syntax.Regexp
		for _, sub := range re.Sub {
			parts = append(parts, flatten(sub)...)
		}
		return parts
	}
	return []*syntax.Regexp{re}
}

// anchorsOf returns the best places of the parts in a row: the longest shortest word. nil: none is good.
func anchorsOf(parts []*syntax.Regexp) []place {
	var best []place
	bestQuality := anchorBytesMin - 1
	consider := func(ps []place) {
		if len(ps) == 0 {
			return
		}
		quality := anchorBytesMax
		for _, p := range ps {
			quality = min(quality, p.quality())
		}
		if quality > bestQuality {
			best, bestQuality = ps, quality
		}
	}
	words, from := []string{""}, 0
	for i, part := range parts {
		exact := exactly(part)
		if product := cross(words, exact); product != nil {
			words = product
			continue
		}
		consider([]place{{words, parts[:from], parts[from:]}})
		consider(anchorsWithin(parts, from, i))
		words, from = []string{""}, i+1
		if exact != nil {
			words, from = exact, i
		}
	}
	if from < len(parts) {
		consider([]place{{words, parts[:from], parts[from:]}})
	}
	for i := range best {
		best[i].words = trim(best[i].words)
	}
	return best
}

// anchorsWithin looks for places inside part i, which is no plain set of words; the parts from the given one to it are.
func anchorsWithin(parts []*syntax.Regexp, from, i int) []place {
	part := parts[i]
	var out []place
	add := func(ps []place, rest *syntax.Regexp) {
		for _, p := range ps {
			p.before = slices.Concat(parts[:i], p.before)
			p.after = slices.Concat(p.after, []*syntax.Regexp{rest}, parts[i+1:])
			out = append(out, p)
		}
	}
	switch part.Op {
	case syntax.OpAlternate:
		for _, branch := range part.Sub {
			n := len(out)
			// What all branches begin with stands before them: the words go on across.
			for _, p := range anchorsOf(slices.Concat(parts[from:i], flatten(branch))) {
				p.before = slices.Concat(parts[:from], p.before)
				p.after = slices.Concat(p.after, parts[i+1:])
				out = append(out, p)
			}
			if len(out) == n {
				return nil
			}
		}
	case syntax.OpPlus:
		more := &syntax.Regexp{Op: syntax.OpStar, Flags: part.Flags, Sub: part.Sub}
		add(anchorsOf(flatten(part.Sub[0])), more)
	case syntax.OpRepeat:
		if part.Min < 1 {
			return nil
		}
		more := &syntax.Regexp{Op: syntax.OpRepeat, Flags: part.Flags, Sub: part.Sub, Min: part.Min - 1, Max: part.Max - 1}
		if part.Max < 0 {
			more.Max = -1
		}
		add(anchorsOf(flatten(part.Sub[0])), more)
	}
	return out
}

// exactly returns every word that the expression matches, in lower case; nil if they are too many or not ASCII. The few letters
// beyond ASCII that fold to ASCII are left to the sieve, which knows them.
func exactly(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r >= utf8.RuneSelf {
				return nil
			}
		}
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCharClass:
		return letters(re.Rune)
	case syntax.OpCapture:
		return exactly(re.Sub[0])
	case syntax.OpQuest:
		if sub := exactly(re.Sub[0]); sub != nil {
			return union([]string{""}, sub)
		}
	case syntax.OpConcat:
		words := []string{""}
		for _, sub := range re.Sub {
			if words = cross(words, exactly(sub)); words == nil {
				return nil
			}
		}
		return words
	case syntax.OpAlternate:
		var words []string
		for _, sub := range re.Sub {
			more := exactly(sub)
			if more == nil {
				return nil
			}
			if words = union(words, more); len(words) > anchorWordsMax {
				return nil
			}
		}
		return words
	case syntax.OpRepeat:
		if re.Min != re.Max || re.Max > anchorBytesMax {
			return nil
		}
		words := []string{""}
		for range re.Min {
			if words = cross(words, exactly(re.Sub[0])); words == nil {
				return nil
			}
		}
		return words
	}
	return nil
}

// letters returns the members of a small class.
func letters(ranges []rune) []string {
	var words []string
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			lower := r
			switch {
			case r == '\u212a' || r == '\u017f': // fold to k and s
				lower = unicode.ToLower(unicode.SimpleFold(r))
			case r >= utf8.RuneSelf:
				return nil
			}
			if words = union(words, []string{strings.ToLower(string(lower))}); len(words) > lettersMax {
				return nil
			}
		}
	}
	return words
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, w := range b {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// cross returns each word of a followed by each of b; nil if there are too many, or if either is nil.
func cross(a, b []string) []string {
	if len(a)*len(b) > anchorWordsMax || b == nil {
		return nil
	}
	var out []string
	for _, x := range a {
		for _, y := range b {
			out = union(out, []string{x + y})
		}
	}
	return out
}

func trim(words []string) []string {
	var out []string
	for _, w := range words {
		out = union(out, []string{w[:min(len(w), anchorBytesMax)]})
	}
	return out
}

// unasserted returns the parts without the assertions that stand before the first byte: the check sees nothing of
// what is before the word, so \b and the like cannot be decided there.
func unasserted(parts []*syntax.Regexp) []*syntax.Regexp {
	out := slices.Clone(parts)
	for i, part := range out {
		out[i] = withoutAssertions(part)
		if words := exactly(part); words == nil || shortest(words) > 0 {
			break
		}
	}
	return out
}

func withoutAssertions(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	if len(re.Sub) == 0 {
		return re
	}
	copied := *re
	copied.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		copied.Sub[i] = withoutAssertions(sub)
	}
	return &copied
}

// headOf returns the beginning of the parts in a row, up to and with the least of the first long repetition:
// what matches the parts begins with what matches the head.
func headOf(parts []*syntax.Regexp) []*syntax.Regexp {
	var head []*syntax.Regexp
	for _, part := range parts {
		short, whole := headOfOne(part)
		head = append(head, short)
		if !whole {
			break
		}
	}
	return head
}

func headOfOne(re *syntax.Regexp) (head *syntax.Regexp, whole bool) {
	switch re.Op {
	case syntax.OpStar:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}, false
	case syntax.OpPlus:
		head, _ := headOfOne(re.Sub[0])
		return head, false
	case syntax.OpRepeat:
		if re.Max >= 0 && re.Max-re.Min <= headMax {
			return re, true
		}
		if re.Min == 0 {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}, false
		}
		if _, simple := headOfOne(re.Sub[0]); !simple {
			head, _ := headOfOne(re.Sub[0])
			return head, false
		}
		return &syntax.Regexp{Op: syntax.OpRepeat, Flags: re.Flags, Sub: re.Sub, Min: re.Min, Max: re.Min}, false
	case syntax.OpConcat, syntax.OpCapture:
		parts := flatten(re)
		short := headOf(parts)
		whole := len(short) == len(parts)
		if whole {
			_, whole = headOfOne(parts[len(parts)-1])
		}
		return &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags, Sub: short}, whole
	case syntax.OpAlternate:
		out := &syntax.Regexp{Op: syntax.OpAlternate, Flags: re.Flags}
		whole := true
		for _, sub := range re.Sub {
			short, w := headOfOne(sub)
			out.Sub = append(out.Sub, short)
			whole = whole && w
		}
		return out, whole
	}
	return re, true
}

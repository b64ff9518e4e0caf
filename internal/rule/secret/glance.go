package secret

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// glance is what the first bytes of a match can be, each by its place: the cheapest check of all.
type glance []*byteSet

const glanceMax = 12

func (g glance) holds(text string, at int) bool {
	if len(text)-at < len(g) {
		return false
	}
	for i, set := range g {
		if !set[text[at+i]] {
			return false
		}
	}
	return true
}

// glanceAt returns the glance of the parts in a row.
func glanceAt(parts []*syntax.Regexp) glance {
	g, _ := glanceRow(parts)
	return g[:min(len(g), glanceMax)]
}

// glanceRow: whole says that every match of the parts is exactly as long as the glance.
func glanceRow(parts []*syntax.Regexp) (g glance, whole bool) {
	for _, part := range parts {
		more, whole := glanceOne(part)
		g = append(g, more...)
		if !whole || len(g) >= glanceMax {
			return g, false
		}
	}
	return g, true
}

func glanceOne(re *syntax.Regexp) (glance, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return nil, true
	case syntax.OpLiteral:
		var g glance
		for _, r := range re.Rune {
			ranges := []rune{r, r}
			if re.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					ranges = append(ranges, f, f)
				}
			}
			set, ok := oneByte(ranges)
			if !ok {
				return g, false
			}
			g = append(g, set)
		}
		return g, true
	case syntax.OpCharClass:
		if set, ok := oneByte(re.Rune); ok {
			return glance{set}, true
		}
	case syntax.OpCapture, syntax.OpConcat:
		return glanceRow(re.Sub)
	case syntax.OpPlus:
		g, _ := glanceOne(re.Sub[0])
		return g, false
	case syntax.OpRepeat:
		sub, whole := glanceOne(re.Sub[0])
		if re.Min == 0 {
			return nil, re.Max == 0
		}
		g := sub
		for i := 1; whole && i < re.Min && len(g) < glanceMax; i++ {
			g = append(g[:len(g):len(g)], sub...)
		}
		return g, whole && re.Min == re.Max && len(g) < glanceMax
	case syntax.OpAlternate:
		return glanceEither(re.Sub)
	}
	return nil, false
}

func glanceEither(branches []*syntax.Regexp) (glance, bool) {
	var g glance
	whole := true
	for i, branch := range branches {
		more, w := glanceOne(branch)
		whole = whole && w && (i == 0 || len(more) == len(g))
		if i == 0 {
			for _, set := range more {
				copied := *set
				g = append(g, &copied)
			}
			continue
		}
		g = g[:min(len(g), len(more))]
		for at := range g {
			for b := range g[at] {
				g[at][b] = g[at][b] || more[at][b]
			}
		}
	}
	return g, whole
}

// oneByte returns a class's bytes if each member is one byte. The letters that fold to ASCII are left out: a text that has
// any is searched as a whole.
func oneByte(ranges []rune) (*byteSet, bool) {
	set := &byteSet{}
	for i := 0; i+1 < len(ranges); i += 2 {
		from, to := ranges[i], ranges[i+1]
		if from == to && (from == '\u212a' || from == '\u017f') {
			continue
		}
		if to >= utf8.RuneSelf {
			return nil, false
		}
		set.addRange(from, to)
	}
	return set, true
}

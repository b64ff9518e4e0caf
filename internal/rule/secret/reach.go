package secret

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// reach bounds how far an expression can match from a place in a text: it is what makes a window around a
// word large enough, so that searching the window finds exactly what searching the whole text does.
type reach struct {
	kind  reachKind
	bytes int      // fixed: at most so many
	set   *byteSet // run: any number of these bytes
	run   int      // run: its number within the expression
	times int      // repeat: the one sub so many times
	subs  []*reach // sequence, either, repeat
}

type reachKind int

const (
	fixed reachKind = iota
	run
	sequence
	either
	repeat
)

type byteSet [256]bool

// measure returns the reach of the parts in a row. runs counts the runs met so far.
func measure(parts []*syntax.Regexp, runs *int) *reach {
	out := &reach{kind: sequence}
	for _, part := range parts {
		sub := measureOne(part, runs)
		if n := len(out.subs); sub.kind == fixed && n > 0 && out.subs[n-1].kind == fixed {
			out.subs[n-1].bytes += sub.bytes
			continue
		}
		out.subs = append(out.subs, sub)
	}
	switch len(out.subs) {
	case 0:
		return &reach{kind: fixed}
	case 1:
		return out.subs[0]
	}
	return out
}

func measureOne(re *syntax.Regexp, runs *int) *reach {
	switch re.Op {
	case syntax.OpLiteral:
		n := 0
		for _, r := range re.Rune {
			n += widest(r, re.Flags&syntax.FoldCase != 0)
		}
		return &reach{kind: fixed, bytes: n}
	case syntax.OpCharClass:
		n := 1
		for _, r := range re.Rune {
			n = max(n, utf8.RuneLen(min(r, unicode.MaxRune)))
		}
		return &reach{kind: fixed, bytes: n}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return &reach{kind: fixed, bytes: utf8.UTFMax}
	case syntax.OpCapture, syntax.OpQuest, syntax.OpConcat:
		return measure(re.Sub, runs)
	case syntax.OpAlternate:
		return measureEither(re.Sub, runs)
	case syntax.OpStar, syntax.OpPlus:
		return measureRun(re.Sub[0], runs)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return measureRun(re.Sub[0], runs)
		}
		sub := measureOne(re.Sub[0], runs)
		if sub.kind == fixed {
			return &reach{kind: fixed, bytes: sub.bytes * re.Max}
		}
		return &reach{kind: repeat, times: re.Max, subs: []*reach{sub}}
	}
	return &reach{kind: fixed} // an assertion: no bytes
}

func measureEither(alternatives []*syntax.Regexp, runs *int) *reach {
	out := &reach{kind: either}
	longest, allFixed := 0, true
	for _, a := range alternatives {
		sub := measureOne(a, runs)
		out.subs = append(out.subs, sub)
		allFixed = allFixed && sub.kind == fixed
		longest = max(longest, sub.bytes)
	}
	if allFixed {
		return &reach{kind: fixed, bytes: longest}
	}
	return out
}

func measureRun(of *syntax.Regexp, runs *int) *reach {
	out := &reach{kind: run, set: &byteSet{}, run: *runs}
	*runs++
	out.set.add(of)
	return out
}

// widest is the most bytes that one rune of an expression can match.
func widest(r rune, fold bool) int {
	n := utf8.RuneLen(r)
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			n = max(n, utf8.RuneLen(f))
		}
	}
	return n
}

// add adds every byte that a match of the expression can hold.
func (s *byteSet) add(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			s.addRange(r, r)
			if re.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					s.addRange(f, f)
				}
			}
		}
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			s.addRange(re.Rune[i], re.Rune[i+1])
		}
	case syntax.OpAnyChar:
		s.addRange(0, unicode.MaxRune)
	case syntax.OpAnyCharNotNL:
		s.addRange(0, '\n'-1)
		s.addRange('\n'+1, unicode.MaxRune)
	}
	for _, sub := range re.Sub {
		s.add(sub)
	}
}

func (s *byteSet) addRange(from, to rune) {
	for r := from; r <= min(to, utf8.RuneSelf-1); r++ {
		s[r] = true
	}
	if to >= utf8.RuneSelf {
		for b := utf8.RuneSelf; b < 256; b++ {
			s[b] = true
		}
	}
}

// walker evaluates reaches over one text. It remembers each run's last stretch, so that many places
// in the same stretch cost one walk.
type walker struct {
	text   string
	ahead  []stretch // by run
	behind []stretch
}

type stretch struct{ from, to int } // half-open; empty: none yet

func newWalker(text string, runs int) *walker {
	return &walker{text: text, ahead: make([]stretch, runs), behind: make([]stretch, runs)}
}

// forward returns a place that no match of r reaches beyond if it starts at or before at.
func (w *walker) forward(r *reach, at int) int {
	switch r.kind {
	case fixed:
		return min(at+r.bytes, len(w.text))
	case run:
		return w.runForward(r, at)
	case sequence:
		for _, sub := range r.subs {
			at = w.forward(sub, at)
		}
	case either:
		far := at
		for _, sub := range r.subs {
			far = max(far, w.forward(sub, at))
		}
		return far
	case repeat:
		for range r.times {
			next := w.forward(r.subs[0], at)
			if next == at {
				break
			}
			at = next
		}
	}
	return at
}

func (w *walker) runForward(r *reach, at int) int {
	last := &w.ahead[r.run]
	if at >= last.from && at < last.to {
		return last.to
	}
	end := at
	for end < len(w.text) && r.set[w.text[end]] {
		end++
	}
	*last = stretch{at, end}
	return end
}

// backward is forward the other way.
func (w *walker) backward(r *reach, at int) int {
	switch r.kind {
	case fixed:
		return max(at-r.bytes, 0)
	case run:
		return w.runBackward(r, at)
	case sequence:
		for i := len(r.subs) - 1; i >= 0; i-- {
			at = w.backward(r.subs[i], at)
		}
	case either:
		far := at
		for _, sub := range r.subs {
			far = min(far, w.backward(sub, at))
		}
		return far
	case repeat:
		for range r.times {
			next := w.backward(r.subs[0], at)
			if next == at {
				break
			}
			at = next
		}
	}
	return at
}

func (w *walker) runBackward(r *reach, at int) int {
	last := &w.behind[r.run]
	if at > last.from && at <= last.to {
		return last.from
	}
	start := at
	for start > 0 && r.set[w.text[start-1]] {
		start--
	}
	*last = stretch{start, at}
	return start
}

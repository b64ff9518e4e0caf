package secret

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zricethezav/gitleaks/v8/config"

	"sallyport/internal/base/pattern"
)

// sieve finds what the rules find in a text, by looking for words first. For each rule it knows words one of which
// stands in every match, and how far a match can reach from there. One pass finds all words of all rules; a
// cheap expression checks each place; what passes becomes a window; and only windows are searched with the
// rule's whole expression. Windows are so large that the result is that of searching the whole text.
// It never changes after it is made.
type sieve struct {
	rules []rule
	auto  *automaton
	uses  []use                      // by word
	allow func() []*config.Allowlist // of the library, for all its rules
}

// use says what a word is for.
type use struct {
	keyword []int32 // rules that are tried only if this word is somewhere in the text
	anchor  []anchorOf
}

type anchorOf struct {
	rule   int32
	anchor int32
}

type rule struct {
	id       string
	severity Severity
	keywords []string                       // none: always tried
	words    [][]string                     // of each anchor
	anchors  func() (as []anchor, runs int) // made when the first of the words is found
	whole    bool                           // no anchors: the whole text is searched
	lines    bool                           // an allowlist looks at whole lines, so windows are whole lines
	pathOnly bool
	path     *regexp.Regexp // the library's rule holds for such paths only
	pathed   bool           // the library must be told the path

	detector func() *detector      // the library's rule, or
	own      *ownRule              // ours
	find     func() *regexp.Regexp // the expression
}

// hit is a finding that still knows the secret. It never leaves this package.
type hit struct {
	rule     string
	severity Severity
	line     int // of the match's begin, from 1; 0: the file as a whole
	last     int // line of its end
	at       int // where the match begins in the text
	secret   string
	own      bool
}

// slack is how much a window is larger than what a match can reach, on both sides: assertions look one rune further, and
// the window's ends must not pass for the text's.
const slack = 8

// folding are letters beyond ASCII that lower or fold to ASCII ones.
var folding = []string{"\u212a", "\u0130", "\u017f"}

// newSieve makes one of rules, and of what the library allows for all of its own.
func newSieve(rules []rule, allow func() []*config.Allowlist) *sieve {
	s := &sieve{rules: rules, allow: allow}
	words := map[string]int32{}
	var list []string
	word := func(w string) int32 {
		id, ok := words[w]
		if !ok {
			id = int32(len(list))
			words[w], list = id, append(list, w)
			s.uses = append(s.uses, use{})
		}
		return id
	}
	for n, r := range rules {
		for _, k := range r.keywords {
			u := &s.uses[word(k)]
			u.keyword = append(u.keyword, int32(n))
		}
		for i, anchor := range r.words {
			for _, w := range anchor {
				u := &s.uses[word(w)]
				u.anchor = append(u.anchor, anchorOf{int32(n), int32(i)})
			}
		}
	}
	for _, f := range folding {
		word(f)
	}
	s.auto = newAutomaton(list)
	return s
}

// loaded is the sieve of rules that were compiled already, and ours.
func loaded(cfg config.Config) *sieve {
	rules := slices.Clone(ours())
	for _, id := range slices.Sorted(maps.Keys(cfg.Rules)) {
		if r, ok := libraryRule(cfg, cfg.Rules[id]); ok {
			rules = append(rules, r)
		}
	}
	return newSieve(rules, func() []*config.Allowlist { return cfg.Allowlists })
}

// ours are our own rules, made once: they are the same for every sieve.
var ours = sync.OnceValue(func() []rule {
	rules := make([]rule, len(ownRules))
	for i := range ownRules {
		o, known := &ownRules[i], tabled[i]
		r := rule{id: o.id, severity: Critical, own: o, find: pattern.Of(o.expression), whole: known.whole, words: known.words}
		if o.general {
			r.severity = Error
		}
		r.anchors = sync.OnceValues(func() ([]anchor, int) { return anchors(o.expression) })
		rules[i] = r
	}
	return rules
})

// ofLibrary is a rule of the library. exact has it as it is, those that it requires, and what is allowed everywhere.
func ofLibrary(id string, exact func() config.Config) rule {
	r := rule{id: id, severity: Critical, detector: sync.OnceValue(func() *detector { return newDetector(exact(), exact().Rules[id]) })}
	if strings.Contains(strings.ToLower(id), "generic") {
		r.severity = Error
	}
	r.find = func() *regexp.Regexp { return exact().Rules[id].Regex }
	return r
}

func libraryRule(cfg config.Config, from config.Rule) (r rule, ok bool) {
	if from.SkipReport {
		return r, false
	}
	r = ofLibrary(from.RuleID, func() config.Config { return cfg })
	r.path = from.Path
	r.pathed = from.Path != nil || len(from.RequiredRules) > 0
	for _, a := range slices.Concat(cfg.Allowlists, from.Allowlists) {
		r.lines = r.lines || a.RegexTarget == "line"
		r.pathed = r.pathed || (len(a.Paths) > 0 && a.MatchCondition == config.AllowlistMatchAnd)
	}
	for _, a := range from.Allowlists {
		r.pathed = r.pathed || len(a.Paths) > 0
	}
	if from.Regex == nil {
		r.pathOnly, r.whole, r.find = true, true, nil
		return r, true
	}
	for _, k := range from.Keywords {
		k = strings.ToLower(k)
		if k == "" || strings.ContainsFunc(k, func(r rune) bool { return r >= 0x80 }) {
			r.keywords = nil // it is not for the automaton to say: always try
			break
		}
		if !slices.Contains(r.keywords, k) {
			r.keywords = append(r.keywords, k)
		}
	}
	as, runs := anchors(from.Regex.String())
	if r.whole = as == nil || len(from.RequiredRules) > 0; !r.whole {
		r.anchors = func() ([]anchor, int) { return as, runs }
		r.words = wordsOf(as)
	}
	return r, true
}

// state is what one text's scan knows of one rule.
type state struct {
	on      bool
	whole   bool
	anchors []anchor
	runs    int
	looked  int // bytes that checks have looked at
	walk    *walker
	windows []stretch
}

// scan returns every hit in text, which is at path (may be ""). Hits of the library's rules are filtered as the library
// does. It ends early with the context's error.
func (s *sieve) scan(ctx context.Context, path, text string) ([]hit, error) {
	states := make([]state, len(s.rules))
	places, few := s.auto.find(text, len(text)/4+1024)
	s.enable(states, places, text, few)
	s.disable(states, path)
	for i, p := range places {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, of := range s.uses[p.word].anchor {
			if st := &states[of.rule]; st.on && !st.whole {
				s.rules[of.rule].look(st, of.anchor, text, int(p.at))
			}
		}
	}
	var hits []hit
	lines := lineCounter{text: text}
	for i := range s.rules {
		if st := &states[i]; st.on && (st.whole || len(st.windows) > 0) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			more, err := s.search(ctx, &s.rules[i], st, path, &lines)
			if err != nil {
				return nil, err
			}
			hits = append(hits, more...)
		}
	}
	if ctx.Err() != nil { // the library ends quietly
		return nil, context.Cause(ctx)
	}
	return specific(hits), nil
}

// enable decides which rules are tried, as the library does: by its keywords anywhere in the text.
func (s *sieve) enable(states []state, places []found, text string, few bool) {
	n := int32(len(s.uses) - len(folding))
	exotic := !few
	seen := make([]bool, len(s.uses))
	for _, p := range places {
		seen[p.word] = true
		exotic = exotic || p.word >= n
	}
	if exotic {
		// Too many words to look at each, or letters that fold to ASCII: search whole texts, as the library would.
		s.auto.mark(strings.ToLower(text), seen)
	}
	for i := range states {
		states[i].on = len(s.rules[i].keywords) == 0
		// Ours look for names and forms in ASCII alone: what only folds to one is read by nobody as that name.
		states[i].whole = s.rules[i].whole || (exotic && (s.rules[i].own == nil || !few))
	}
	for w, yes := range seen {
		if yes {
			for _, r := range s.uses[w].keyword {
				states[r].on = true
			}
		}
	}
}

// disable ends what the library would end at once for the path, once for all windows.
func (s *sieve) disable(states []state, path string) {
	skip := path != "" && slices.ContainsFunc(s.allow(), func(a *config.Allowlist) bool {
		return a.MatchCondition == config.AllowlistMatchOr && a.PathAllowed(path)
	})
	for i := range states {
		r := &s.rules[i]
		if r.own == nil && (skip || r.path != nil && !r.path.MatchString(path)) {
			states[i].on = false
		}
	}
}

// look opens a window around a word if a match can stand there.
func (r *rule) look(st *state, n int32, text string, at int) {
	if st.anchors == nil {
		st.anchors, st.runs = r.anchors()
	}
	a := &st.anchors[n]
	if !a.glance.holds(text, at) {
		return
	}
	if st.walk == nil {
		st.walk = newWalker(text, st.runs)
	}
	if n := len(st.windows); n > 0 && st.windows[n-1].to == len(text) && st.windows[n-1].from == 0 {
		return
	}
	to := min(st.walk.forward(a.sight, at)+slack, len(text))
	// Where a file is dense with a rule's words, searching it once is cheaper.
	if st.looked += to - at; st.looked > 4*len(text)+64<<10 {
		st.whole = true
		return
	}
	if check := a.check(); check != nil && !check.MatchString(text[at:to]) {
		return
	}
	w := stretch{
		from: max(st.walk.backward(a.before, at)-slack, 0),
		to:   min(st.walk.forward(a.after, at)+slack, len(text)),
	}
	if r.lines {
		w.from = max(strings.LastIndexByte(text[:w.from], '\n')-slack, 0)
		if i := strings.IndexByte(text[w.to:], '\n'); i >= 0 {
			w.to = min(w.to+i+slack, len(text))
		} else {
			w.to = len(text)
		}
	}
	if n := len(st.windows); n > 0 && w.from <= st.windows[n-1].to && w.from >= st.windows[n-1].from {
		st.windows[n-1].to = max(st.windows[n-1].to, w.to)
		return
	}
	st.windows = append(st.windows, w)
}

// merged returns windows in order, none touching another, on boundaries of runes.
func merged(windows []stretch, text string) []stretch {
	slices.SortFunc(windows, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	var out []stretch
	for _, w := range windows {
		for back := 0; back < 3 && w.from > 0 && text[w.from]&0xc0 == 0x80; back++ {
			w.from--
		}
		if n := len(out); n > 0 && w.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, w.to)
			continue
		}
		out = append(out, w)
	}
	return out
}

func (s *sieve) search(ctx context.Context, r *rule, st *state, path string, lines *lineCounter) ([]hit, error) {
	text := lines.text
	windows := []stretch{{0, len(text)}}
	if !st.whole {
		windows = merged(st.windows, text)
		sum := 0
		for _, w := range windows {
			sum += w.to - w.from + 256
		}
		if sum > len(text) {
			windows = []stretch{{0, len(text)}}
		}
	}
	if !r.pathed {
		path = ""
	}
	var hits []hit
	for _, w := range windows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if r.own != nil {
			hits = append(hits, r.searchOwn(w, lines)...)
			continue
		}
		if whole := w.to-w.from == len(text); !whole {
			found, cut := r.tryWindow(text, w)
			if cut {
				st.whole = true
				return s.search(ctx, r, st, path, lines)
			}
			if !found {
				continue
			}
		}
		before := lines.before(w.from)
		raw := lineCounter{text: text[w.from:w.to]}
		if r.crowds(raw.text) {
			return nil, errCrowded
		}
		for _, f := range r.detector().find(ctx, path, raw.text) {
			h := hit{rule: f.RuleID, severity: r.severity}
			if !r.pathOnly {
				h.line, h.last, h.secret = before+f.StartLine+1, before+f.EndLine+1, f.Secret
				h.at = w.from + raw.offset(f.StartLine, f.StartColumn)
			}
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// tryWindow says whether the expression matches in a window at all, and whether a match touches an end of it that
// is none of the text's: that one may be there only because the text was cut, and hide another.
func (r *rule) tryWindow(text string, w stretch) (found, cut bool) {
	for _, m := range r.find().FindAllStringIndex(text[w.from:w.to], -1) {
		found = true
		cut = cut || (m[0] == 0 && w.from > 0) || (w.from+m[1] == w.to && w.to < len(text))
	}
	return found, cut
}

func (r *rule) searchOwn(w stretch, lines *lineCounter) []hit {
	var hits []hit
	body := 0 // where that of the last hit ends
	for _, m := range r.find().FindAllStringSubmatchIndex(lines.text[w.from:w.to], -1) {
		from, to := w.from+m[0], w.from+m[1]
		if from < body {
			continue // it is a part of it
		}
		match := lines.text[from:to]
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				from, to = w.from+m[i], w.from+m[i+1]
				break
			}
		}
		if r.own.innocent != nil && r.own.innocent(match, lines.text[from:to]) {
			continue
		}
		line := lines.before(from) + 1
		if r.own.body != nil {
			to = r.own.body(lines.text, to)
			body = to
		}
		hits = append(hits, hit{rule: r.id, severity: r.severity, line: line, last: line, at: from, secret: lines.text[from:to], own: true})
	}
	return hits
}

// specific drops the hits of general rules where a rule for the kind of secret has one on the same line that holds it.
func specific(hits []hit) []hit {
	general := func(h hit) bool { return strings.Contains(strings.ToLower(h.rule), "generic") }
	better := map[int][]string{} // by line
	for _, h := range hits {
		if !h.own && !general(h) && len(better[h.line]) < perLineMax {
			better[h.line] = append(better[h.line], h.secret)
		}
	}
	return slices.DeleteFunc(hits, func(h hit) bool {
		return general(h) && slices.ContainsFunc(better[h.line], func(s string) bool { return strings.Contains(s, h.secret) })
	})
}

// lineCounter counts line ends, quickly when asked in rising order.
type lineCounter struct {
	text  string
	at    int
	count int
}

func (l *lineCounter) before(at int) int {
	if at < l.at {
		l.at, l.count = 0, 0
	}
	l.count += strings.Count(l.text[l.at:at], "\n")
	l.at = at
	return l.count
}

// offset returns where a match begins that the library says is at a line and a column: it counts lines from 0, and columns
// from 1 on the first line and from the line end before on all others.
func (l *lineCounter) offset(line, column int) int {
	if line < l.count {
		l.at, l.count = 0, 0
	}
	for l.count < line {
		i := strings.IndexByte(l.text[l.at:], '\n')
		if i < 0 {
			break
		}
		l.at += i + 1
		l.count++
	}
	at := l.at + column - 1
	if line > 0 {
		at--
	}
	return max(min(at, len(l.text)), 0)
}

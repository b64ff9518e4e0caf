package conversion

import (
	"bytes"
	"cmp"
	"strings"
)

// ends is what becomes of the ends of lines, as in git's convert.c.
type ends int

const (
	asTheyAre ends = iota
	toLF           // a text: what comes in has LF, what goes out is as it is
	toCRLF         // a text: LF in the store, CRLF in the checkout
	autoLF         // the same if it looks like a text, and has no CRLF in the store
	autoCRLF
)

// action is all that git does to a path. Two that are equal do the same.
type action struct {
	filter   string // its name; "" = none
	encoding string
	ident    bool
	ends     ends
}

// why says what a path is converted by, and where that stands; a source of "" is git's configuration.
type why struct{ says, source string }

// action returns what git does to the file at p.
func (s *Set) action(p string) (action, why) {
	has := s.of(p)
	a, because := action{}, why{}
	tell := func(name string) {
		if because.says == "" {
			because = why{has[name].says(name), has[name].source}
		}
	}
	for _, name := range []string{"filter", "working-tree-encoding", "ident"} {
		g := has[name]
		if !converts(name, g) {
			continue
		}
		switch tell(name); name {
		case "filter":
			a.filter = g.value
		case "ident":
			a.ident = true
		default:
			a.encoding = g.value
		}
	}
	var from string
	a.ends, from = s.ends(has)
	switch {
	case a.ends == asTheyAre || because.says != "":
	case from == "":
		because = s.config.why()
	default:
		tell(from)
	}
	return a, because
}

// converts reports whether an attribute by itself makes the checkout hold other bytes.
func converts(name string, g given) bool {
	if g.value == "" || g.is("unset") || g.is("unspecified") {
		return false
	}
	switch name {
	case "filter": // also one that nobody has configured here
		return true
	case "working-tree-encoding":
		return !strings.EqualFold(g.value, "utf-8") && !strings.EqualFold(g.value, "utf8")
	case "ident":
		return g.is("set")
	case "eol":
		return g.value == "crlf"
	}
	return false
}

func (g given) is(word string) bool { return g.plain && g.value == word }

// says is an attribute as it is written.
func (g given) says(name string) string {
	switch {
	case g.is("set"):
		return name
	case g.is("unset"):
		return "-" + name
	case g.is("unspecified"):
		return "!" + name
	}
	return name + "=" + g.value
}

// ends returns what becomes of the ends of lines, and the attribute that says so; "" is the configuration.
func (s *Set) ends(has map[string]given) (is ends, from string) {
	const undefined, text, auto = -1, -2, -3
	is = undefined
	for _, name := range []string{"text", "crlf"} { // the old name counts where the new one says nothing
		switch g := has[name]; {
		case is != undefined:
		case g.is("set"):
			is, from = text, name
		case g.is("unset"):
			return asTheyAre, name
		case g.plain:
		case g.value == "input":
			is, from = toLF, name
		case g.value == "auto":
			is, from = auto, name
		}
	}
	if g := has["eol"]; !g.plain {
		switch {
		case is == auto && g.value == "lf":
			return autoLF, "eol"
		case is == auto && g.value == "crlf":
			return autoCRLF, "eol"
		case g.value == "lf":
			return toLF, "eol"
		case g.value == "crlf":
			return toCRLF, "eol"
		}
	}
	switch is {
	case text:
		if s.config.crlf() {
			return toCRLF, from
		}
		return toLF, from
	case auto:
		if s.config.crlf() {
			return autoCRLF, from
		}
		return autoLF, from
	case undefined:
		switch s.config.auto {
		case "true":
			return autoCRLF, ""
		case "input":
			return autoLF, ""
		}
		return asTheyAre, ""
	}
	return is, from
}

// config is what git's configuration says of the ends of lines.
type config struct {
	auto string // core.autocrlf: true, input, or false
	eol  string // core.eol
}

// crlf reports whether a text has CRLF in the checkout where its attributes do not say.
func (c config) crlf() bool { return c.auto == "true" || c.auto != "input" && c.eol == "crlf" }

func (c config) why() why {
	return why{says: "core.autocrlf=" + cmp.Or(c.auto, "false")}
}

// needs reports whether what an action does depends on the bytes.
func (a action) needs() bool {
	return a.filter == "" && a.encoding == "" && (a.ident || a.ends != asTheyAre && a.ends != autoLF)
}

// effect is what an action does to bytes of the store.
type effect struct {
	out bool // the checkout holds other ones
	in  bool // git would store other ones if the checkout held these
}

// on returns the effect on bytes that were looked at; nil if action.needs said no.
func (a action) on(l *look) effect {
	if a.filter != "" || a.encoding != "" {
		return effect{true, true}
	}
	e := effect{}
	if a.needs() {
		if a.ident && l.ident {
			e = effect{true, true}
		}
		switch a.ends {
		case toLF:
			e.in = e.in || l.crlf > 0
		case toCRLF:
			e.out, e.in = e.out || l.lf > 0, e.in || l.crlf > 0
		case autoCRLF: // what has a CR, or is no text, is left alone
			e.out = e.out || l.lf > 0 && l.crlf == 0 && !l.binary()
		}
	}
	return e
}

// look is what git asks of bytes before it converts them (gather_stats).
type look struct {
	lf, crlf, cr              int // without its other half, both, CR alone
	nul, printable, unprinted int
	ident                     bool // there is what may be a keyword

	last byte
	any  bool
	tail []byte // of what was written before, for a keyword across two writes
}

const keyword = "$Id"

// Write looks at more bytes.
func (l *look) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for _, c := range b {
		if l.any && l.last == '\r' {
			if c == '\n' {
				l.crlf++
				l.last = 0 // it is counted
				continue
			}
			l.cr++
		}
		l.any, l.last = true, c
		switch {
		case c == '\r':
		case c == '\n':
			l.lf++
		case c == 127:
			l.unprinted++
		case c >= 32 || c == '\b' || c == '\t' || c == '\033' || c == '\014':
			l.printable++
		default:
			if c == 0 {
				l.nul++
			}
			l.unprinted++
		}
	}
	joined := append(l.tail, b...)
	l.ident = l.ident || bytes.Contains(joined, []byte(keyword))
	l.tail = bytes.Clone(joined[max(0, len(joined)-len(keyword)+1):])
	return len(b), nil
}

// binary reports whether git takes the bytes for no text.
func (l *look) binary() bool {
	lone, unprinted := l.cr, l.unprinted
	if l.any && l.last == '\r' {
		lone++
	}
	if l.any && l.last == '\032' {
		unprinted-- // an end of file of old
	}
	return lone > 0 || l.nul > 0 || l.printable>>7 < unprinted
}

package policy

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"sallyport/internal/base/inert"
)

// TooLong stands in Marking.Text for a file whose text was too large to be looked through.
const TooLong = "\x00too long"

// blanksMax is how many blanks in a row, with something behind them, are nothing strange: a screen is not so wide.
const blanksMax = 100

// Hides reports whether a text has what a reader does not see. If it has, marks need the base's side too.
func Hides(text string) bool { return hiddenIn("", text) != "" }

// hiddenIn says what a reader does not see in the lines that were added. A binary has no reader.
func hiddenIn(old, new string) string {
	if new == TooLong {
		return "it is too large for the host to look for what a reader does not see"
	}
	if Binary(new) || !suspicious(new) {
		return ""
	}
	new, old = strings.TrimPrefix(new, "\ufeff"), strings.TrimPrefix(old, "\ufeff")
	for _, line := range addedLines(old, new) {
		if why := unseen(line); why != "" {
			return why
		}
	}
	return ""
}

// binaryBytes is how far git looks for a zero byte: a file with one in there is binary data to it, any other is shown as text.
const binaryBytes = 8000

// Binary says whether a diff shows nothing of a text; on a card it is uninspectable.
func Binary(text string) bool { return strings.IndexByte(text[:min(len(text), binaryBytes)], 0) >= 0 }

// suspicious is quick: most texts have neither.
func suspicious(text string) bool {
	blanks := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= '\x7f' || c < 0x20 && c != '\n' && c != '\t' && c != '\f':
			return true
		case c == ' ' || c == '\t':
			if blanks++; blanks > blanksMax/8 {
				return true
			}
		default:
			blanks = 0
		}
	}
	return false
}

// unseen says what of a line a reader does not see.
func unseen(line string) string {
	blanks, last := 0, rune(0)
	for i, r := range line {
		switch {
		case r == ' ' || r == '\u00a0' || r == '\u3000':
			blanks++
		case r == '\t':
			blanks += 8
		default:
			if blanks > blanksMax {
				return fmt.Sprintf("a line added to it has text behind %d blanks, where few look", blanks)
			}
			blanks = 0
		}
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return fmt.Sprintf("a line added to it holds %U, which makes text read in another order than it runs", r)
		case r == '\x1b' || r == '\b' || r == '\r' || r == '\x7f' || r >= 0x80 && r < 0xa0:
			return fmt.Sprintf("a line added to it holds %U, by which a terminal hides or overwrites text", r)
		case r == '\u2028' || r == '\u2029':
			return fmt.Sprintf("a line added to it holds %U, which ends a line for some programs and none for a reader", r)
		case invisible(r) && !joins(r, last, line[i+utf8.RuneLen(r):]):
			return fmt.Sprintf("a line added to it holds %U, which is invisible", r)
		}
		last = r
	}
	return ""
}

// invisible says whether a rune takes no place: what Unicode lets a program show as nothing, and what formats.
func invisible(r rune) bool {
	return inert.Inkless(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// joins says whether an invisible rune does what it is for: it joins or parts letters of a script that needs it, or pictures, or
// picks a form of the letter before it.
func joins(r, before rune, rest string) bool {
	after, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\u200c' || r == '\u200d':
		return before > 0x2ff && !unicode.In(before, unicode.Latin, unicode.Greek, unicode.Cyrillic) && after > 0x2ff
	case r == '\ufe0e' || r == '\ufe0f': // a picture or a letter, once behind what can be either
		return before > 0 && !invisible(before)
	case unicode.In(before, unicode.Mongolian) && !invisible(before) && unicode.Is(mongolianForms, r):
		return true
	case unicode.Is(unicode.Variation_Selector, r):
		return unicode.In(before, unicode.Han) && (r >= 0xe0100 || r < '\ufe03') || r == '\ufe00' &&
			unicode.In(before, unicode.Sm, unicode.Myanmar, unicode.Phags_Pa)
	case r >= 0x13430 && r <= 0x1343f: // how hieroglyphs stand together
		return unicode.In(before, unicode.Egyptian_Hieroglyphs)
	}
	return r >= 0xe0020 && r <= 0xe007f && (before == '\U0001F3F4' || before >= 0xe0020 && before <= 0xe007f) // flags
}

// mongolianForms pick the form of a Mongolian letter, or part a vowel from its word.
var mongolianForms = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x180b, Hi: 0x180f, Stride: 1}}}

// neighbours are the names of folders by what they look like, each folder looked through once: a change may add any number of files to one.
type neighbours struct {
	names   func(folder string) []string
	folders map[string]map[string][]string
}

// likeMax is how many names of one look are kept: one of them is another than the one that is asked about.
const likeMax = 2

// like returns a name of a folder that looks like another and is not that; "" if there is none. Of two that are plain ASCII none is
// taken for the other.
func (n *neighbours) like(folder, name string) string {
	looks, known := n.folders[folder]
	if !known {
		looks = map[string][]string{}
		for _, other := range n.names(folder) {
			key := looksOf(other)
			if len(looks[key]) < likeMax {
				looks[key] = append(looks[key], other)
			}
		}
		n.folders[folder] = looks
	}
	keys := []string{skeleton(name)}
	if !ascii(name) {
		keys = append(keys, asciiLook+skeleton(name))
	}
	for _, key := range keys {
		for _, other := range looks[key] {
			if other != name {
				return other
			}
		}
	}
	return ""
}

// asciiLook begins the look of what is plain ASCII; no name has it.
const asciiLook = "/"

func looksOf(name string) string {
	if ascii(name) {
		return asciiLook + skeleton(name)
	}
	return skeleton(name)
}

// twin says whether a new name can be taken for another: it mixes letters that look alike, or is one with its neighbour for the eye.
func (n *neighbours) twin(p string) string {
	folder := ""
	for _, part := range strings.Split(p, "/") {
		if script := mixed(part); script != "" {
			return "its name mixes Latin letters with " + script + " ones that look the same"
		}
		if other := n.like(folder, part); other != "" {
			return fmt.Sprintf("its name looks the same as %q beside it, and is another name", other)
		}
		if r := unseenIn(part); r != 0 {
			return fmt.Sprintf("its name holds %U, which nobody sees", r)
		}
		folder = path.Join(folder, part)
	}
	return ""
}

// unseenIn returns a rune of a name that nobody sees and that does nothing for those beside it; 0 if there is none.
func unseenIn(name string) rune {
	last := rune(0)
	for i, r := range name {
		if invisible(r) && !joins(r, last, name[i+utf8.RuneLen(r):]) {
			return r
		}
		last = r
	}
	return 0
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mixed names the other script of a word in a name that has Latin letters too.
func mixed(name string) string {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		if other := mixedWord(word); other != "" {
			return other
		}
	}
	return ""
}

func mixedWord(word string) string {
	latin, other := false, ""
	for _, r := range word {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.Is(unicode.Cyrillic, r):
			other = "Cyrillic"
		case unicode.Is(unicode.Greek, r) && r != '\u03bc' && r != '\u03a9' && r != '\u2126':
			other = "Greek"
		case unicode.Is(unicode.Armenian, r):
			other = "Armenian"
		case unicode.Is(unicode.Cherokee, r):
			other = "Cherokee"
		}
	}
	if latin {
		return other
	}
	return ""
}

// alike maps letters, in lower case, to the Latin ones that they look like.
var alike = map[rune]rune{
	// Cyrillic.
	'а': 'a', 'в': 'b', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'ё': 'e', 'ғ': 'f', 'һ': 'h', 'н': 'h', 'і': 'i', 'ї': 'i', 'ј': 'j', 'к': 'k',
	'ӏ': 'l', 'м': 'm', 'ո': 'n', 'п': 'n',
	'о': 'o', 'р': 'p', 'ԛ': 'q', 'г': 'r', 'ѕ': 's', 'т': 't', 'ѵ': 'v', 'ԝ': 'w', 'х': 'x', 'у': 'y', 'ү': 'y', 'з': '3',
	// Greek.
	'α': 'a', 'β': 'b', 'ϲ': 'c', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x',
	'γ': 'y', 'ω': 'w', 'σ': 'o',
	// Others.
	'օ': 'o', 'ս': 'u', 'ց': 'g', 'հ': 'h', 'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ⅼ': 'l', '’': '\'', '‐': '-', '‑': '-', '–': '-', '—': '-',
	'−': '-', '․': '.', '٫': ',', '∕': '/', '⁄': '/',
}

// Looks is what words look like: two with the same looks are one for the eye.
func Looks(words string) string { return skeleton(words) }

// skeleton is what a name looks like: names with one skeleton are one for the eye.
func skeleton(name string) string {
	if ascii(name) {
		return strings.ToLower(name)
	}
	var out strings.Builder
	for _, r := range norm.NFKD.String(name) {
		r = unicode.ToLower(r)
		if to, ok := alike[r]; ok {
			r = to
		}
		if !invisible(r) {
			out.WriteRune(r)
		}
	}
	return norm.NFC.String(out.String())
}

package secret

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// expressionOf writes a parsed expression as text that parses to the same. The standard library's String looks for the shortest
// flags, and for that at every letter of every class: a hundred thousand for each `[^…]`, at each start of a daemon.
func expressionOf(re *syntax.Regexp) string {
	var out strings.Builder
	writeExpression(&out, re)
	return out.String()
}

// noRune is a class of which no letter is one.
const noRune = `[^\x00-\x{10FFFF}]`

func writeExpression(out *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		out.WriteString(`(?:)`)
	case syntax.OpLiteral:
		flag := "-i"
		if re.Flags&syntax.FoldCase != 0 {
			flag = "i"
		}
		fmt.Fprintf(out, `(?%s:%s)`, flag, regexp.QuoteMeta(string(re.Rune)))
	case syntax.OpNoMatch:
		out.WriteString(noRune)
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			out.WriteString(noRune)
			return
		}
		out.WriteByte('[')
		for i := 0; i < len(re.Rune); i += 2 {
			fmt.Fprintf(out, `\x{%x}-\x{%x}`, re.Rune[i], re.Rune[i+1])
		}
		out.WriteByte(']')
	case syntax.OpAnyCharNotNL:
		out.WriteString(`(?-s:.)`)
	case syntax.OpAnyChar:
		out.WriteString(`(?s:.)`)
	case syntax.OpBeginLine:
		out.WriteString(`(?m:^)`)
	case syntax.OpEndLine:
		out.WriteString(`(?m:$)`)
	case syntax.OpBeginText:
		out.WriteString(`\A`)
	case syntax.OpEndText:
		out.WriteString(`\z`)
	case syntax.OpWordBoundary:
		out.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		out.WriteString(`\B`)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			writeExpression(out, sub)
		}
	default:
		writeGroup(out, re)
	}
}

// writeGroup writes what needs brackets around it: captures, alternatives and repetitions.
func writeGroup(out *strings.Builder, re *syntax.Regexp) {
	open := "(?:"
	if re.Op == syntax.OpCapture {
		open = "("
	}

	for i, sub := range re.Sub {
		if i == 0 {
			out.WriteString(open)
		} else {
			out.WriteByte('|')
		}
		writeExpression(out, sub)
	}
	out.WriteByte(')')

	switch re.Op {
	case syntax.OpStar:
		out.WriteByte('*')
	case syntax.OpPlus:
		out.WriteByte('+')
	case syntax.OpQuest:
		out.WriteByte('?')
	case syntax.OpRepeat:
		most := ""
		if re.Max >= 0 {
			most = strconv.Itoa(re.Max)
		}
		fmt.Fprintf(out, "{%d,%s}", re.Min, most)
	}
	if re.Flags&syntax.NonGreedy != 0 && re.Op != syntax.OpCapture && re.Op != syntax.OpAlternate {
		out.WriteByte('?')
	}
}

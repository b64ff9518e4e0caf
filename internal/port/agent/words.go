package agent

import (
	"errors"
	"fmt"
	"strings"
)

const (
	wordsBytesMax = 4096
	wordsMax      = 64
)

// Words splits a command line into its words as a shell does, with ', " and \, and nothing else: no variable, no pattern, no operator
// means anything. The error is one clause.
func Words(line string) ([]string, error) {
	if len(line) > wordsBytesMax {
		return nil, fmt.Errorf("it has %d bytes; %d is the limit", len(line), wordsBytesMax)
	}
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return nil, errors.New("it holds a control character")
	}
	var words []string
	var word strings.Builder
	quote, begun, escaped := byte(0), false, false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := range len(line) {
		c := line[i]
		switch {
		case escaped:
			if quote == '"' && c != '"' && c != '\\' {
				word.WriteByte('\\')
			}
			word.WriteByte(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ' || c == '\t':
			end()
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote in it has no end")
	}
	end()
	switch {
	case len(words) == 0 || words[0] == "":
		return nil, errors.New("it names no program")
	case len(words) > wordsMax:
		return nil, fmt.Errorf("it has %d words; %d is the limit", len(words), wordsMax)
	}
	return words, nil
}

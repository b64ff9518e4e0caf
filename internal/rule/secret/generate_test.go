package secret

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"unicode"
)

// sample returns a text that an expression matches, drawn by rnd. Assertions are left to the text around it.
func sample(re *syntax.Regexp, rnd *rand.Rand) string {
	var out strings.Builder
	draw(&out, re, rnd)
	return out.String()
}

func draw(out *strings.Builder, re *syntax.Regexp, rnd *rand.Rand) {
	times := func(n int) {
		for range n {
			draw(out, re.Sub[0], rnd)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 && rnd.IntN(4) == 0 {
				r = unicode.ToLower(r)
			}
			out.WriteRune(r)
		}
	case syntax.OpCharClass:
		var ascii []rune
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= min(re.Rune[i+1], '~'); r++ {
				if r >= ' ' || r == '\n' && rnd.IntN(8) == 0 {
					ascii = append(ascii, r)
				}
			}
		}
		if len(ascii) == 0 {
			ascii = re.Rune[:1]
		}
		out.WriteRune(ascii[rnd.IntN(len(ascii))])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteByte("abcXYZ019 _-"[rnd.IntN(12)])
	case syntax.OpStar:
		times(rnd.IntN(6))
	case syntax.OpPlus:
		times(1 + rnd.IntN(12))
	case syntax.OpQuest:
		times(rnd.IntN(2))
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + 20
		}
		times(re.Min + rnd.IntN(min(most-re.Min, 20)+1))
	case syntax.OpAlternate:
		draw(out, re.Sub[rnd.IntN(len(re.Sub))], rnd)
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			draw(out, sub, rnd)
		}
	}
}

// prose returns text without secrets, to stand around them.
func prose(rnd *rand.Rand, bytes int) string {
	words := strings.Fields(`the key of a map is a token the parser reads func return if err nil { } ( ) := = "a" 'b' access api auth
		password secret type struct string for range x1 42 0x1f // comment, see: config.go; value := lookup(name) sk- eyJ AKIA ghp_ https://example.org/a-b_c?d=e`)
	var out strings.Builder
	for out.Len() < bytes {
		out.WriteString(words[rnd.IntN(len(words))])
		out.WriteByte(" \n\t "[rnd.IntN(4)])
	}
	return out.String()
}

func random(rnd *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	return string(b)
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	alnum  = lower + upper + digits
	hexa   = "0123456789abcdef"
	url64  = alnum + "-_"
	std64  = alnum + "+/"
)

// known is one drawn secret of each known format, by the rule that must find it (CW-023, CW-027).
// Put together here, so that no scanner stumbles over this file.
func known(rnd *rand.Rand) map[string][]string {
	header := func(kind string) string { return "-----" + "BEGIN " + kind + "PRIVATE KEY" + "-----" }
	jwt := func(n int) string {
		return "ey" + "J" + random(rnd, url64, 10+rnd.IntN(40)) + ".ey" + "J" + random(rnd, url64, 12+rnd.IntN(200)) + "." + random(rnd, url64, n)
	}
	return map[string][]string{
		"openai-key": {"s" + "k-" + random(rnd, alnum, 32+rnd.IntN(20)), "s" + "k-" + random(rnd, alnum, 32), "s" + "k-proj-" + random(rnd, url64, 48+rnd.IntN(100))},
		"anthropic-key": {"s" + "k-ant-" + "api03-" + random(rnd, url64, 93) + "AA",
			"s" + "k-ant-" + random(rnd, url64, 24)},
		"github-token": {"gh" + "p_" + random(rnd, alnum, 36), "gh" + "o_" + random(rnd, alnum, 36), "gh" + "s_" + random(rnd, alnum, 36),
			"git" + "hub_pat_" + random(rnd, alnum, 22) + "_" + random(rnd, alnum, 59)},
		"slack-token": {"xo" + "xb-" + random(rnd, digits, 11) + "-" + random(rnd, alnum, 24), "xo" + "xb-1-a",
			"xo" + "xp-" + random(rnd, digits, 11) + "-" + random(rnd, digits, 11) + "-" + random(rnd, digits, 12) + "-" + random(rnd, hexa, 32),
			"xa" + "pp-1-A" + random(rnd, upper+digits, 10) + "-" + random(rnd, digits, 13) + "-" + random(rnd, hexa, 64)},
		"aws-access-key": {"AK" + "IA" + random(rnd, upper+digits, 16)},
		"google-api-key": {"AI" + "za" + random(rnd, url64, 35)},
		"jwt":            {jwt(43), jwt(342)},
		"private-key": {header("RSA "), header("EC "), header("OPENSSH "),
			header("RSA ") + "\n" + random(rnd, std64, 64) + "\n" + random(rnd, std64, 31) + "=\n-----" + "END RSA PRIVATE KEY-----"},
		"database-password": {"postgres" + "://u:" + "p@h/db", "mysql" + "://root:" + random(rnd, alnum+"!$%^&*()", 1+rnd.IntN(20)) + "@h:3306/x",
			"postgres" + "ql+psycopg2://svc:" + random(rnd, alnum, 12) + "@db/x"},
	}
}

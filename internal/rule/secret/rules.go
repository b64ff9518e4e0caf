package secret

import (
	"slices"
	"strings"

	"sallyport/internal/base/pattern"
)

// ownRule is one of the product's rules (CW-023, CW-027). No allowlist of expressions, words or paths holds for it.
type ownRule struct {
	id         string
	expression string                          // the secret is its first group that took part in the match; without groups the whole match
	general    bool                            // what it finds is likely a secret, not surely: an error, not critical
	body       func(text string, end int) int  // where the secret ends, if beyond the match at end
	innocent   func(match, secret string) bool // a match that cannot be a secret
}

// ownRules are all of them. Most look for a word that stands in no other text, so they cost nothing where it does not.
var ownRules = slices.Concat(knownRules, addressRules, loginRules, serviceRules)

// version is part of the digest: raise it when a rule or the way of searching changes what is found.
const version = "2"

// knownRules are those of CW-023 and CW-027. They have no boundary before them: in a binary or behind a decoder any byte can stand there.
var knownRules = []ownRule{
	{id: "anthropic-key", expression: `sk-ant-[a-zA-Z0-9_-]{16,}`},
	{id: "openai-key", expression: `sk-(?:(?:proj|svcacct|admin|None)-[a-zA-Z0-9_-]{32,}|[a-zA-Z0-9]{32,})`},
	{id: "github-token", expression: `gh[oprsu]_[a-zA-Z0-9]{36,}|github_pat_[a-zA-Z0-9_]{22,}`},
	{id: "slack-token", expression: `xox[abeoprs]-[0-9]+-[a-zA-Z0-9-]+|xapp-[0-9]+-[a-zA-Z0-9]+-[0-9]+-[a-zA-Z0-9]+`},
	{id: "aws-access-key", expression: `AKIA[0-9A-Z]{16}`},
	{id: "google-api-key", expression: `AIza[0-9A-Za-z_-]{35}`},
	{id: "jwt", expression: `eyJ[a-zA-Z0-9_-]{8,}\.(?:ey[a-zA-Z0-9_-]{8,}\.[a-zA-Z0-9_-]{10,}|[a-zA-Z0-9_-]{10,}(?:\.[a-zA-Z0-9_-]{10,}){3})`},
	{id: "private-key", body: keyBody,
		expression: `-----BEGIN (?:(?:RSA|EC|DSA|OPENSSH|ENCRYPTED|ANY|SSH2 ENCRYPTED) )?PRIVATE KEY-----|-----BEGIN PGP PRIVATE KEY (?:BLOCK)-----|PuTTY-User-Key-File-[0-9]: [a-z0-9-]{1,40}`},
	{id: "database-password", innocent: placeholderPassword,
		expression: `(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?)(?:\+[a-z0-9]{1,20})?://[^\s:/@"'<>]{0,128}:[^\s@/"']{1,256}@`},
}

// placeholder is what can stand for a password in a template and cannot stand for itself in a URL, where a brace, an angle
// bracket or a lone percent sign would have to be escaped.
var placeholder = pattern.Of(`^(?:%[svdq]|\*+|\$?\{[^{}]*\}|\{\{[^{}]*\}\}|\$\([^()]*\)|<[^<>]*>)$`)

func placeholderPassword(match, _ string) bool {
	password := match[:len(match)-1]
	_, password, _ = strings.Cut(password, "://")
	_, password, _ = strings.Cut(password, ":")
	return placeholder().MatchString(password)
}

var (
	keyEnd    = pattern.Of(`\A-----END [A-Z0-9 ]{1,40}-----`)
	keyHeader = pattern.Of(`\A(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Encryption|Public-Lines|Private-Lines|Private-MAC|Key-Derivation|Argon2-[A-Za-z]+): ?[^\n]{0,200}`)
)

// keyBody returns where the key ends whose header ends at end: lines of base64 and the headers that PEM, PGP and PuTTY know,
// also with the line breaks and quotes of program text between them.
func keyBody(text string, end int) int {
	const (
		lineMin    = 32
		headersMax = 32 // one after the other: no format has so many
	)
	at, long, headers := end, false, 0
	for at < len(text) {
		next := at
		for next < len(text) && strings.IndexByte(" \t\r\n\"'`+,;", text[next]) >= 0 {
			next++
		}
		if next+1 < len(text) && text[next] == '\\' && strings.IndexByte("nrt", text[next+1]) >= 0 {
			at = next + 2
			continue
		}
		rest := text[next:]
		if m := keyEnd().FindString(rest); m != "" {
			return next + len(m)
		}
		if m := keyHeader().FindString(rest); m != "" && headers < headersMax {
			at = next + len(m)
			headers++
			continue
		}
		stop := next
		for stop < len(text) && (base64Digit[text[stop]] >= 0 && text[stop] != '-' || text[stop] == '=') {
			stop++
		}
		n := stop - next
		if n == 0 || (n < lineMin && !long) {
			break
		}
		long, headers = n >= lineMin, 0
		at, end = stop, stop
	}
	return end
}

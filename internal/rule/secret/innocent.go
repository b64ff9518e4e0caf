package secret

import (
	"math"
	"strings"
	"unicode"

	"sallyport/internal/base/pattern"
)

// What looks like a secret and is none: what stands for one in a template, a word that everybody knows, a name in a program, a hash. A
// rule of ours asks here before it speaks.

// template is a value that something else is put in the place of.
var template = pattern.Of(`^(?:\$|%[A-Za-z(_]|#\{|@[A-Za-z_.-]+@|@[A-Za-z]+\(|\{\{?|<|\[|\(|&|env[:.(]|ENC\[|!(?:vault|Ref|Sub|GetAtt|secret|env_var)|vault[:/]|op://|ssm[:/]|secretsmanager:|arn:|file:|https?:|data:|ref\+|process\.|os\.|sys\.|self\.|this\.|String\.|config\.|settings\.|System\.|/[A-Za-z_.~]|\./|~/|\\)|[{<%]%|\{\{|\$\{|\$\(|%>|[>}]$|\.\.\.|…`)

// filler are words that stand where a secret would. A value that holds one may be an example's: filled decides.
var filler = pattern.Of(`(?i)example|changeme|change[_-]?(?:me|this|it)|placeholder|your[_-]?|_here|dummy|sample|redacted|removed|masked|xxxx|\*\*\*|todo|replace|insert|fake|not[_-]?(?:a[_-]?)?(?:real|secret|used|set)|passw(?:or)?d|passphrase|passcode|secret[_-]?(?:key|value|name)?$|undefined|mypass|default|invalid|wrong|mock|foobar|foo[_-]?bar|deadbeef|lorem|1234567|abcdef|abc123|qwerty|letmein|hunter2|correct[_-]?horse|test`)

// known are words that are no secret though a login needs one: with a few digits or signs behind it or not.
var knownWord = pattern.Of(`(?i)^(?:pass|pwd|secret|token|user|username|admin|administrator|root|guest|demo|foo|bar|baz|qux|abc|xyz|none|null|nil|true|false|empty|no|yes|string|str|text|bytes|value|required|optional|hidden|prompt|file|stdin|docker|postgres|mysql|mongo|mongodb|redis|rabbitmq|minio|minioadmin|sa|nobody|anonymous|apikey|key|auth|basic|bearer|local|dev|prod|app|db|database|service|client|server|login|toor|swordfish|opensesame|welcome|monkey|dragon|p[a4@][s5$][s5$](?:w[o0]?r?d?)?|s[e3]cr[e3]t|aes|des|rsa|md|sha|base|utf|scrypt|bcrypt|pbkdf|argon|argon2i?d?|(?:scram-)?sha-?[0-9]{1,3}(?:sum)?|hmac|oauth|tls|ssl|ssh|x|http|v)[-_.]?[0-9]{0,4}[!?.*]{0,3}$`)

// hashed are what is kept in the place of a password.
var hashed = pattern.Of(`^(?:\$(?:[0-9][a-z]?|2[abxy]?|apr1|argon2[a-z]*|pbkdf2[a-z0-9-]*|scrypt|y|gy|bcrypt|sha1|md5)\$|\{[A-Za-z0-9-]+\}|(?:sha(?:1|224|256|384|512)|md5|pbkdf2|bcrypt|scrypt|SCRAM-SHA)[-:_$])`)

// placeholding says whether a value stands for another, or is an example's.
func placeholding(value string) bool {
	return template().MatchString(value) || filled(value) || knownWord().MatchString(value) || hashed().MatchString(value) || dull(value)
}

// innocentWord is of what can be a word that a person chose.
func innocentWord(_, value string) bool { return placeholding(value) || !graphic(value) }

// innocentToken is of what a machine drew: an example's has too few different characters.
func innocentToken(_, value string) bool {
	if len(value) > 80 { // what is so long holds any short word by chance
		return dull(value)
	}
	low := strings.ToLower(value)
	for _, word := range []string{"example", "xxxx", "your", "placeholder", "changeme", "dummy", "mytoken", "redacted", "0123456789",
		"abcdefgh", "${", "{{", "<", "****", "...."} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return dull(value) || !strings.ContainsAny(value, "0123456789") && !humped(value)
}

// innocentPassword is of a value in quotes behind the name of a password: in the language files of programs the same place
// holds the word "password" in every language, so a word is none.
func innocentPassword(match, value string) bool {
	switch {
	case placeholding(value), !graphic(value), named(value):
		return true
	case strings.HasSuffix(match, "`") && strings.ContainsAny(value, "{}$"):
		return true
	}
	return !strong(value)
}

// innocentSetting is of the rest of a line behind the name of a password, without quotes. In a program the same is a
// name, a call or a type, so more is asked of it.
func innocentSetting(match, value string) bool {
	name := match[:strings.LastIndex(match, value)]
	if placeholding(value) || !graphic(value) {
		return true
	}
	if environment().MatchString(name) && !strings.ContainsAny(value, "()") { // a shell's, or an env file's: nothing else is written so
		return len(value) < 6 || strings.ContainsAny(value, ",")
	}
	if named(value) || strings.ContainsAny(value, "(){}[]<>") || strings.HasSuffix(value, ",") || strings.HasSuffix(value, ";") ||
		strings.HasSuffix(value, "\\") || codeLike().MatchString(value) {
		return true
	}
	return !strong(value) || len(value) < 8
}

var environment = pattern.Of(`[A-Z][A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|PASS|_PWD|PGPASSWORD|MYSQL_PWD|REDISCLI_AUTH)=$`)

// codeLike are names and expressions of programs.
var codeLike = pattern.Of(`^[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|->|::)[A-Za-z_][A-Za-z0-9_]*)+$|^[A-Za-z]+(?:_[A-Za-z]+)*_?[0-9]{0,2}$|^[0-9a-z]+\.[a-z]+$|[?|&+*]{2}|==`)

func innocentEnvironment(match, value string) bool {
	return placeholding(value) || !graphic(value) || len(value) < 6 || strings.ContainsAny(value, "(){}[]<>\\") || named(value) &&
		!strings.ContainsAny(value, "0123456789")
}

// innocentArgument is of what stands behind a flag for a password.
func innocentArgument(_, value string) bool {
	return placeholding(value) || !graphic(value) || named(value) || strings.HasPrefix(value, "-") || strings.ContainsAny(value, "(){}[]<>\\") || !strong(value)
}

// spoken are words that programs put into the names of what holds a secret; what is left beside them was drawn, or was not.
var spoken = pattern.Of(`(?i)private|public|secret|certificate|credential|password|token|key|test|mock|fake|default|invalid|wrong|example|sample|dummy`)

// innocentAssignment is of what stands behind the name of a secret or a key that a machine draws. Vendors write EXAMPLE, in
// capitals, into those of their documents.
func innocentAssignment(match, value string) bool {
	low := strings.ToLower(match[:len(match)-len(value)])
	if strings.Contains(low, "public") || strings.Contains(value, "EXAMPLE") || innocentToken(match, value) || placeholding(value) ||
		codeLike().MatchString(value) {
		return true
	}
	return !drawn(spoken().ReplaceAllString(value, ""))
}

// graphic says whether a value is one word of printable characters.
func graphic(value string) bool {
	for _, r := range value {
		if r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			return false
		}
	}
	return true
}

// named says whether a value is a name of programs rather than a secret: words of letters, put together in the usual ways, or an
// address, a selector, a path.
var namedForm = pattern.Of(`^[#.]?[A-Za-z]+(?:[-_./: ][A-Za-z]+)*[-_.:?!]?[0-9]?$|^[a-z0-9._+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+$|^[a-z]+://|^[A-Za-z0-9_-]*/[A-Za-z0-9_/.-]*$|^[A-Za-z]+(?:_[A-Za-z]+)*_?[0-9]{0,2}$`)

func named(value string) bool {
	if !namedForm().MatchString(value) {
		return false
	}
	return !humped(value) && strings.IndexFunc(value, unicode.IsDigit) < 0 || codeLike().MatchString(value) && !drawn(value)
}

// strong says whether a password is one that somebody chose to be one: letters and digits or signs, six at the least.
func strong(value string) bool {
	letters, digits, signs := classes(value)
	return len(value) >= 6 && letters > 0 && (digits > 0 || signs > 0 && len(value) >= 8) || humped(value)
}

func classes(value string) (letters, digits, signs int) {
	for _, r := range value {
		switch {
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		case strings.ContainsRune("!@#$%^&*+=?~", r):
			signs++
		}
	}
	return letters, digits, signs
}

// humped says whether letters change their case as no name does: three humps at the least that are shorter than a syllable.
func humped(value string) bool {
	humps, run := 0, 0
	upper := false
	for i, r := range value {
		if !unicode.IsLetter(r) {
			run = 0
			continue
		}
		if is := unicode.IsUpper(r); i == 0 || is != upper {
			if run > 0 && run < 2 && !upper {
				humps++
			}
			upper, run = is, 0
		}
		run++
	}
	return len(value) >= 12 && humps >= 2
}

// drawn says whether a value looks drawn: letters and digits in no order.
func drawn(value string) bool {
	letters, digits, _ := classes(value)
	if digits < 2 || letters < 2 || len(value) < 16 {
		return humped(value) && len(value) >= 20
	}
	lower := value == strings.ToLower(value) || value == strings.ToUpper(value)
	switch {
	case hexadecimal().MatchString(value):
		return len(value) >= 32 && entropy(value) > 3
	case lower:
		return len(value) >= 20 && entropy(value) > 3.5 && digits >= 4 && turns(value) >= 6
	}
	return entropy(value) > 3.5 && turns(value) >= 5
}

var hexadecimal = pattern.Of(`^(?:0x)?[0-9a-fA-F-]+$`)

// turns counts how often letters and digits take turns: in a name they hardly do.
func turns(value string) (n int) {
	last := 0
	for _, r := range value {
		kind := 0
		switch {
		case unicode.IsDigit(r):
			kind = 1
		case unicode.IsUpper(r):
			kind = 2
		case unicode.IsLetter(r):
			kind = 3
		}
		if kind != 0 && kind != last {
			if last != 0 {
				n++
			}
			last = kind
		}
	}
	return n
}

func entropy(value string) float64 {
	count := map[rune]int{}
	total := 0
	for _, r := range value {
		count[r]++
		total++
	}
	sum := 0.0
	for _, n := range count {
		p := float64(n) / float64(total)
		sum -= p * math.Log2(p)
	}
	return sum
}

// dull says whether a value has too few different characters to be drawn.
func dull(value string) bool {
	seen := map[rune]bool{}
	for _, r := range value {
		seen[r] = true
	}
	return len(seen) < 4 || len(value) >= 20 && len(seen) < 7
}

// number says whether a value is digits alone: a port.
func number(value string) bool {
	return strings.Trim(value, "0123456789") == ""
}

package secret

import (
	"strings"
	"unicode"

	"sallyport/internal/base/pattern"
)

// What an example is made of beside its filler. A value of these words alone, with signs between them and few digits, is nobody's
// password; one letter more, and it may be.
const (
	fillerWords = `examples?|change|changed|changeit|placeholders?|dummy|samples?|redacted|removed|masked|to|do|todo|replace|replaced|insert|inserted|fake|password[sz]?|passwords?|passwd|passphrases?|passcode|` +
		`undefined|mypass|defaults?|invalid|wrong|mock|mocked|foobared|foobar|dead|beef|lorem|ipsum|qwerty|letmein|hunter|correct|horse|battery|staple|tests?|testing|tested|tester|p[a4@][s5$]{2}w[o0]rd|sha[0-9]{1,3}`
	plainWords = `my|your|yours|our|the|an|is|are|was|in|of|for|from|with|without|and|or|on|at|by|as|be|it|its|this|that|here|there|me|you|us|please|must|should|can|will|goes|go|put|set|use|used|new|old|current|next|` +
		`another|other|one|two|three|first|second|third|last|real|really|actual|valid|strong|weak|super|very|secure|safe|random|long|longer|short|good|bad|right|same|different|unique|private|public|shared|local|remote|` +
		`dev|development|prod|production|stage|staging|env|environment|app|application|api|web|db|database|data|sql|postgres|postgresql|pg|mysql|maria|mongo|redis|rabbit|kafka|elastic|search|ldap|smtp|mail|email|imap|ftp|sftp|ssh|https?|` +
		`proxy|server|client|service|host|site|account|login|auth|oauth|basic|bearer|jwt|session|users?|name|username|admin|administrator|root|guest|owner|member|bot|agent|customer|tenant|org|company|team|group|role|alice|bob|john|jane|doe|joe|` +
		`keys?|tokens?|secrets?|secretly|pass|pwd|pin|code|phrase|word|words|credentials?|creds?|hash|salt|cert|certificate|ssl|tls|store|keystore|truststore|vault|wallet|values?|string|text|str|val|var|field|param|config|conf|settings?|options?|` +
		`temp|tmp|temporary|initial|init|demo|debug|localhost|docker|container|kube|helm|git|github|gitlab|npm|aws|gcp|azure|minio|unit|integration|run|runner|build|case|only|do|dont|never|always|not|non|yes|null|none|empty|blank|nil|true|false|some|any|` +
		`thing|something|anything|stuff|foo|bar|baz|qux|hello|hi|world|welcome|open|sesame|let|min|max|least|length|chars?|characters?|digits?|numbers?|hidden|bytes|file|path|url|id|uuid|base64|hex|encoded|encrypted|plain|hashed|source|target|kind|com|net|go|py|js|java|node|ruby|rust|` +
		`abcdef(?:g(?:h(?:i(?:j)?)?)?)?|abc|xyz|a|x`
)

// filled says whether a value is an example's: filler and its company from end to end.
func filled(value string) bool {
	if !filler().MatchString(value) || !whollyFiller().MatchString(value) {
		return false
	}
	digits, signs := 0, 0
	for _, run := range runs().FindAllString(value, -1) {
		switch first := rune(run[0]); {
		case unicode.IsDigit(first) && !counts(run):
			digits += len(run)
		case !unicode.IsDigit(first) && strings.Trim(run, run[:1]) != "": // one sign many times over is one
			signs += len(run)
		}
	}
	return digits <= fillerDigits && signs <= fillerSigns
}

// What of a filler may be neither a word nor in order: a year, and an exclamation or two.
const (
	fillerDigits = 4
	fillerSigns  = 6
)

var (
	whollyFiller = pattern.Of(`(?i)^(?:` + fillerWords + `|` + plainWords + `|[0-9]+|[^A-Za-z0-9])+$`)
	runs         = pattern.Of(`[0-9]+|[^A-Za-z0-9_. /:-]+`)
)

// counts says whether digits count up or down, or are one digit.
func counts(run string) bool {
	for _, order := range []string{"01234567890123456789", "98765432109876543210"} {
		if strings.Contains(order, run) {
			return true
		}
	}
	return strings.Trim(run, run[:1]) == ""
}

package secret

import (
	"encoding/base64"
	"strings"
)

// passwordNames say that what stands behind them is a password.
const passwordNames = `(?:(?i:passw(?:or)?d|passphrase|passcode)|(?i:_pass|_pwd|\.pass|-pass|\bpass)|[a-z]Pass|[a-z]Pwd|\b(?:pass|pwd)|PGPASSWORD|MYSQL_PWD|REDISCLI_AUTH)`

// loginRules find logins where configuration, scripts and code write them down.
var loginRules = []ownRule{
	{id: "password-assignment", innocent: innocentPassword,
		expression: passwordNames + `["'\x60]?\]?(?:[ \t]{0,3}:[ \t]{0,3}(?:&?str|string|String))?[ \t]{0,20}(?::=|=>|={1,3}|!==?|:|,)[ \t]{0,8}(?:[a-zA-Z]{0,2}"([^"\n\\]{5,})"|[a-zA-Z]{0,2}'([^'\n\\]{5,})'|\x60([^\x60\n\\]{5,})\x60|\\"([^"\n\\]{5,})\\")`},
	{id: "password-assignment", innocent: innocentSetting,
		expression: `(?m)^[ \t]*(?:-[ \t]+)?(?:export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|SET[ \t]+|setx[ \t]+|\$env:|-[ \t]+)?[A-Za-z0-9_.:$-]{0,100}` +
			`(?:(?i:passw(?:or)?d|passphrase|passcode)|(?i:[_.-]pass|[_.-]pwd)|pass|[a-z]Pass|[a-z]Pwd|REDISCLI_AUTH)[ \t]{0,20}[=:][ \t]{0,20}([^\s"'\x60]{4,})[ \t\r]*(?:[#;][^\n]*)?$`},
	{id: "password-assignment", innocent: innocentEnvironment,
		expression: `\b[A-Z0-9_]{0,60}(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)=([^\s"'\x60;&|]{5,})`},
	{id: "connection-string", innocent: innocentWord,
		expression: `(?i:;[ \t]{0,4}(?:password|pwd)[ \t]{0,4}=[ \t]{0,4})([^;"'<>\s]{4,})`},
	{id: "query-password", innocent: innocentWord, expression: `(?i:[?&](?:password|passwd|pwd)=)([^\s&"'<>#]{5,})`},
	{id: "xml-password", innocent: innocentArgument,
		expression: `(?i:<[a-z0-9:._-]{0,40}(?:password|passphrase|passwd)>)([^<>\s]{4,})(?i:</)`},
	{id: "xml-password", innocent: innocentArgument,
		expression: `(?i:(?:key|name)[ \t]{0,4}=[ \t]{0,4}["'][^"'\n]{0,60}(?:password|passphrase|apikey|api_key|token)["']\s{1,20}value[ \t]{0,4}=[ \t]{0,4}["'])([^"'\n<>]{5,})["']`},
	{id: "password-argument", innocent: innocentArgument,
		expression: `(?:^|[\s"'\[])--?(?:[a-z]{1,20}-)?(?:password|passwd|passphrase|pass)(?:[= ]|", ?"|', ?')["']?([^\s"'\x60,;|)]{5,})`},
	{id: "password-argument", innocent: innocentWord, expression: `sshpass[ \t]+-p[ \t]{0,3}["']?([^\s"']{4,})`},
	{id: "password-argument", innocent: innocentWord, expression: `mysql(?:dump|admin)?[ \t][^\n|;]{0,120}?[ \t]-p["']?([^\s"'|;-][^\s"'|;]{4,})`},
	{id: "password-argument", innocent: innocentWord,
		expression: `(?:docker|podman|helm|oras|nerdctl|buildah|skopeo|registry|az|oc)[ \t]+(?:registry[ \t]+)?login[ \t][^\n|;]{0,160}?(?:-p|-p=|--password|--token)[ \t=]["']?([^\s"'|;-][^\s"'|;]{4,})`},
	{id: "password-argument", innocent: innocentWord, expression: `redis-cli[ \t][^\n|;]{0,80}?-a[ \t]["']?([^\s"'|;-][^\s"'|;]{4,})`},
	{id: "password-argument", innocent: innocentWord,
		expression: `curl[ \t][^\n|;]{0,}?(?:-u|--user|--proxy-user)[ \t=]{0,2}["']?[^\s"':;|]{1,80}:([^\s"'|;]{4,})`},
	{id: "sql-password", innocent: innocentWord, expression: `(?i:identified[ \t]+(?:with[ \t]+["'\x60a-z0-9_]{1,40}[ \t]+)?by[ \t]+)'([^'\n]{4,})'`},
	{id: "sql-password", innocent: innocentWord, expression: `(?i:(?:user|role|login)\b[^\n;]{1,160}?password[ \t]*=?[ \t]*)N?'([^'\n]{4,})'`},
	{id: "password-directive", innocent: innocentWord,
		expression: `(?m)^[ \t]*(?:requirepass|masterauth|bindpw|rootpw|olcRootPW|smtp_sasl_password|enable secret|enable password)[ \t]+["']?([^\s"']{5,})`},

	{id: "registry-login", innocent: innocentToken,
		expression: `(?:_authToken|_auth|_password|npmAuthToken|npmAuthIdent)["']?[ \t]{0,4}[=:][ \t]{0,4}["']?([a-zA-Z0-9+/=_.~:-]{8,})`},
	{id: "registry-login", innocent: innocentAuth, expression: `"auth"[ \t]{0,4}:[ \t\n]{0,8}"([a-zA-Z0-9+/_-]{8,}={0,2})"`},
	{id: "registry-login", innocent: innocentToken, expression: `"(?:identitytoken|registrytoken)"[ \t]{0,4}:[ \t]{0,4}"([^"\s]{16,})"`},
	{id: "registry-login", innocent: innocentToken,
		expression: `:(?:rubygems_api_key|[a-z0-9_]{1,40}_api_key|rubygems)[ \t]{0,4}:[ \t]{1,4}["']?([a-zA-Z0-9_-]{16,})`},
	{id: "registry-login", innocent: innocentToken,
		expression: `(?m)^[ \t]*(?:token|secret-key|api-token|pypi-token\.[a-z0-9_-]{1,40}|http-basic\.[a-z0-9_.-]{1,60})[ \t]{0,8}=[ \t]{0,8}["']([a-zA-Z0-9+/=_.~ -]{16,})["']`},
	{id: "registry-login", innocent: innocentToken,
		expression: `"(?:github|gitlab|bitbucket)-(?:oauth|token)"\s{0,8}:\s{0,8}\{\s{0,40}"[^"\n]{3,100}"\s{0,4}:\s{0,4}(?:"|\{[^}]{0,80}"token"\s{0,4}:\s{0,4}")([a-zA-Z0-9_-]{16,})"`},
	{id: "registry-login", innocent: innocentToken, expression: `(?i:apikey|api-key|setapikey)[ \t=]{1,4}["']?(oy2[a-z0-9]{43})`},

	{id: "secret-assignment", general: true, innocent: innocentAssignment,
		expression: `(?i:secret|token|api[_.-]?key|access[_.-]?key|auth[_.-]?key|account[_.-]?key|private[_.-]?key|signing[_.-]?key|encryption[_.-]?key|master[_.-]?key|storage[_.-]?key|app[_.-]?key|secret[_.-]?key|secret[_.-]?key[_.-]?base|client[_.-]?key|licen[sc]e[_.-]?key|credentials?|webhook[_.-]?key|preshared[_.-]?key|hmac[_.-]?key)` +
			`(?i:[_.-]?(?:value|string|base))?["'\x60]?\]?[ \t]{0,8}(?::=|=>|={1,3}|:|,)[ \t]{0,8}(?:[a-zA-Z]{0,2}["'\x60])?([a-zA-Z0-9+/=_.~:-]{16,})(?:["'\x60\s;,<&)\]}]|$)`},
}

// innocentAuth says whether an "auth" is not the login of a registry: a name and a password in base64.
func innocentAuth(match, value string) bool {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	user, password, ok := strings.Cut(string(plain), ":")
	return err != nil || !ok || user == "" || password == "" || !legible(plain) || innocentWord(match, password)
}

package secret

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// addressRules find what an address carries: a login, or the one word that makes whoever knows it welcome.
var addressRules = []ownRule{
	{id: "url-password", innocent: innocentLogin,
		expression: `[a-zA-Z0-9]://[^\s:/?#@"'<>\x60\\]{0,128}:([^\s/:?@"'<>\x60\\]{3,})@[a-zA-Z0-9\[_{$]`},
	{id: "url-token", innocent: innocentUser,
		expression: `[a-zA-Z0-9]://([a-zA-Z0-9_.~=+-]{20,})(?::(?:x-oauth-basic)?)?@[a-zA-Z0-9\[]`},
	{id: "webhook-address", innocent: innocentToken, expression: `(?i:` + strings.Join([]string{
		`hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([a-z0-9]{6,}/[a-z0-9/_-]{16,})`,
		`discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/([0-9]{15,22}/[a-z0-9_-]{40,})`,
		`(?:outlook\.office(?:365)?|webhook\.office(?:365)?)\.com/webhook(?:b[0-9])?/([a-z0-9@-]{30,}/[a-z]{4,30}/[a-z0-9/_-]{30,})`,
		`chat\.googleapis\.com/v1/spaces/[a-z0-9_-]{6,}/messages\?([^\s"'<>\x60]{20,})`,
		`hooks\.zapier\.com/hooks/(?:catch|standard)/([0-9]{3,}/[a-z0-9]{5,})`,
		`maker\.ifttt\.com/(?:trigger|use)/?[^\s"'<>]{0,80}?(?:with/key/|use/)([a-z0-9_-]{16,})`,
		`hook\.[a-z0-9]{2,6}\.make\.com/([a-z0-9]{24,})`,
		`hook\.integromat\.com/([a-z0-9]{24,})`,
		`open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v2/)?hook/([a-z0-9-]{20,})`,
		`oapi\.dingtalk\.com/robot/send\?access_token=([a-z0-9]{32,})`,
		`qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=([a-z0-9-]{30,})`,
		`api\.netlify\.com/build_hooks/([a-f0-9]{20,})`,
		`api\.vercel\.com/v1/integrations/deploy/([a-z0-9_]{8,}/[a-z0-9]{8,})`,
		`pages/webhooks/deploy_hooks/([a-f0-9-]{30,})`,
		`api\.render\.com/deploy/srv-[a-z0-9]{8,}\?key=([a-z0-9_-]{8,})`,
		`hc-ping\.com/([a-f0-9]{8}-[a-f0-9-]{27}|[a-z0-9_-]{22}/[a-z0-9_-]+)`,
		`events\.pagerduty\.com/(?:integration|generic)/([a-z0-9]{32})`,
		`/hooks/([a-z0-9]{16,}(?:/[a-z0-9]{16,})?)`,
		`/webhooks?/([a-z0-9_-]{24,}(?:/[a-z0-9_-]{16,})?)`,
	}, "|") + `)`},
	{id: "signed-address", innocent: innocentToken,
		expression: `(?:[?&;]|\\u0026)(?:sig|Signature|X-Amz-Signature|X-Goog-Signature|se=[^&\s"']{6,40}&sig)=([a-zA-Z0-9%+/=_~-]{32,})`},
	{id: "query-token", innocent: innocentToken, general: true,
		expression: `[?&](?i:access_token|auth_token|api_?key|apikey|client_secret|private_token|token|subscription-key|code)=([a-zA-Z0-9%+/=_.~-]{20,})`},
	{id: "netrc-login", innocent: innocentWord,
		expression: `(?i:\b(?:machine[ \t]+[^\s]{1,}|default)\s+login\s+[^\s]+\s+(?:account\s+[^\s]+\s+)?password\s+)([^\s"'<>]{3,})`},
	{id: "pgpass-line", innocent: innocentWord,
		expression: `(?m)^[^\s:#/"'=,;]{1,}:(?:5432|543[0-9]|6432|6543|26257|\*):[^\s:/"'=,;]{1,64}:[^\s:/"'=,;]{1,64}:([^\s"'<>]{3,})[ \t\r]*$`},
	{id: "login-header", innocent: innocentHeader,
		expression: `(?i:authorization["']?\]?\s{0,4}(?::|=|=>|,)\s{0,4}\(?["'\x60]?(?:basic|bearer|bot|token|apikey|ssws|genie[kK]ey)[ \t]+)([a-zA-Z0-9+/=_.~:-]{16,})`},
}

// innocentLogin says whether a login in a URL is an example's.
func innocentLogin(match, password string) bool {
	user := match[strings.Index(match, "://")+3:]
	user, _, _ = strings.Cut(user, ":")
	if plain, err := url.PathUnescape(password); err == nil {
		password = plain
	}
	return password == user || innocentWord(match, password) || strings.ContainsAny(password, "[]()") || number(password)
}

// innocentUser says whether the user of a URL without a password is a name.
func innocentUser(match, user string) bool {
	return !drawn(user) || innocentToken(match, user)
}

// innocentHeader says whether what an Authorization header carries is an example's.
func innocentHeader(match, value string) bool {
	if strings.Contains(strings.ToLower(match), "basic") {
		plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
		_, password, ok := strings.Cut(string(plain), ":")
		return err != nil || !ok || password == "" || innocentWord(match, password)
	}
	return !drawn(value) || innocentToken(match, value)
}

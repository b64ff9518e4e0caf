package secret

// serviceRules find what services give out, by the form that each gives its own; those that gitleaks knows are left to it,
// unless it wants a word beside them that is not always there.
var serviceRules = []ownRule{
	{id: "aws-secret-key", innocent: innocentToken,
		expression: `(?i:aws.{0,12}secret.{0,12}key|secret_?access_?key|aws_secret|secretaccesskey)["'\x60]?\]?[ \t]{0,8}(?::=|=>|=|:|,|>)[ \t]{0,8}["'\x60]?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`},
	{id: "aws-session-key", innocent: innocentToken, expression: `\bASIA[0-9A-Z]{16}\b`},
	{id: "azure-key", innocent: innocentToken, expression: `(?:AccountKey|SharedAccessKey|SharedSecretIssuer|SharedSecretValue)=([A-Za-z0-9+/]{40,}={0,2})`},
	{id: "azure-key", innocent: innocentToken, expression: `(?:^|[^A-Za-z0-9+/])([A-Za-z0-9+/]{76}\+(?:ASt|AMC|ARm|AFu|ACR|AIo|AEh|ACDb)[A-Za-z0-9+/]{5}[AQgw](?:==)?)`},
	{id: "google-secret", innocent: innocentToken,
		expression: `GOCSPX-[A-Za-z0-9_-]{24,}|\bya29\.[A-Za-z0-9_-]{30,}|\b1//0[A-Za-z0-9_-]{40,}|\bGOOG1?[A-Z0-9]{20,60}\b`},
	{id: "cloud-token", innocent: innocentToken, expression: `\bdo[oprt]_v1_[a-f0-9]{64}|\bHRKU-[A-Za-z0-9_-]{36,}|\bv1\.0-[a-f0-9]{24}-[a-f0-9]{120,}|\bcf(?:ut|at|k)_[A-Za-z0-9_-]{36,}`},
	{id: "cloud-token", innocent: innocentToken, expression: `(?i:cloudflare|\bcf_|hetzner|hcloud|linode|vultr|scaleway|scw_|ovh_|heroku|fly_|railway|render|netlify|vercel|digitalocean)[a-z0-9_.-]{0,20}(?i:token|key|secret|password)["'\x60]?\]?[ \t]{0,8}(?::=|=>|=|:)[ \t]{0,8}["'\x60]?([A-Za-z0-9_-]{32,128})(?:[^A-Za-z0-9_.-]|$)`},
	{id: "host-token", innocent: innocentToken, expression: `\bnf[pcoub]_[A-Za-z0-9]{36,}|\bvc[piark]_[A-Za-z0-9]{24,}|\bsbp_(?:v0_)?[a-f0-9]{40}|\bsb_secret_[A-Za-z0-9_-]{20,}|\bnapi_[a-z0-9]{40,}|\brnd_[A-Za-z0-9]{28,}|\bfo1_[A-Za-z0-9_-]{40,}|\bdapi[a-f0-9]{32}|\bpscale_[a-z]{2,6}_[A-Za-z0-9_-]{32,}`},
	{id: "telegram-bot-token", innocent: innocentToken, expression: `[0-9]{8,10}:AA[A-Za-z0-9_-]{33}`},
	// The first part is a number in base64: three digits in four letters.
	{id: "discord-bot-token", expression: `(?:[MNO][DTjz][AEIMQ]|[MNO][DTjz][UYcgk])[wxyz0-5](?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){4,6}[A-Za-z0-9_-]{0,4}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}`},
	{id: "chat-token", innocent: innocentToken, expression: `\bxox[cd]-[A-Za-z0-9%_-]{20,}|\bxoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,}|\bsyt_[A-Za-z0-9]{4,}_[A-Za-z]{20}_[A-Za-z0-9]{6}`},
	{id: "package-token", innocent: innocentToken,
		expression: `\bnpm_[A-Za-z0-9]{36}|\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}|\brubygems_[a-f0-9]{48}|\bcio[A-Za-z0-9]{32}\b|\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{24,}|\boy2[a-z0-9]{43}\b|\bpackagist_[a-z]{3}_[a-f0-9]{60,}|\bCLOJARS_[a-z0-9]{60}|\bAKCp[A-Za-z0-9]{60,}|\bcmVmdGtu[A-Za-z0-9]{50,}`},
	{id: "forge-token", innocent: innocentToken, expression: `\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_.-]{20,}|\bATBB[A-Za-z0-9]{32}|\bAT(?:ATT|CTT)3[A-Za-z0-9_=-]{100,}|\bsgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}|\bCCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[a-f0-9]{40}|\bbk(?:ua|aj|ct)_[a-f0-9]{40}|\bghr_[A-Za-z0-9]{36,}`},
	{id: "payment-key", innocent: innocentToken, expression: `\b[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/=]{24,}|\bsq0(?:csp|atp)-[A-Za-z0-9_-]{22,}|\bEAAAE[A-Za-z0-9_-]{59}|\baccess_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}|\brzp_(?:live|test)_[A-Za-z0-9]{14}|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`},
	{id: "mail-key", innocent: innocentToken, expression: `\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}|\bx(?:keysib|smtpsib)-[a-f0-9]{64}-[A-Za-z0-9]{16}|\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}|\b[a-f0-9]{32}-us[0-9]{1,2}\b|\bkey-[a-f0-9]{32}\b|\bSK[a-f0-9]{32}\b`},
	{id: "model-key", innocent: innocentToken, expression: `\bgsk_[A-Za-z0-9]{40,}|\bhf_[A-Za-z0-9]{30,}|\br8_[A-Za-z0-9]{36,}|\bxai-[A-Za-z0-9]{60,}|\bpplx-[A-Za-z0-9]{40,}|\bsk-or-v1-[a-f0-9]{60,}|\btgp_v1_[A-Za-z0-9_-]{40,}|\bfw_[A-Za-z0-9]{22,}|\bnvapi-[A-Za-z0-9_-]{60,}|\bcsk-[a-z0-9]{40,}|\bpcsk_[A-Za-z0-9_]{50,}|\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}|\besecret_[A-Za-z0-9]{20,}|\bABSK[A-Za-z0-9+/]{100,}`},
	{id: "service-token", innocent: innocentToken,
		expression: `\bfig[dou]_?[rh]?_[A-Za-z0-9_-]{36,}|\bntn_[A-Za-z0-9]{40,}|\bsecret_[A-Za-z0-9]{43}\b|\blin_(?:api|oauth|wh)_[A-Za-z0-9]{32,}|\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}|\bpk_[0-9]{5,10}_[A-Z0-9]{32}|\b[12]/[0-9]{13,17}(?:/[0-9]{13,17})?:[a-f0-9]{32}|\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}|\bph[xs]_[A-Za-z0-9_]{40,}|\bsntr(?:ys|yu)_[A-Za-z0-9+/=_-]{60,}|\bNR(?:AK|II|SP|AA|IQ)-[A-Za-z0-9_-]{27,}|\bgl(?:c|sa)_[A-Za-z0-9+/_]{32,}|\bhca?[iem][kx]_[a-z0-9]{50,}|\bdt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}|\b(?:sdk|api|mob)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{40,}|\bpul-[a-f0-9]{40}|\bsk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}|\bops_eyJ[A-Za-z0-9+/=_-]{100,}|\bhv[sbr]\.[A-Za-z0-9_-]{24,}|\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}|\bAGE-SECRET-KEY-1[A-Z0-9]{58}|\btskey-[a-z]{3,12}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}|\bzpka_[a-z0-9]{32}_[a-z0-9]{8}|\bEZ[AT]K[A-Za-z0-9]{54}|\bsvcacct_[A-Za-z0-9]{30,}`},
	{id: "wireguard-key", innocent: innocentToken, expression: `(?:PrivateKey|PresharedKey|private-key|psk)[ \t]{0,8}[=:][ \t]{0,8}["']?([A-Za-z0-9+/]{43}=)`},
}

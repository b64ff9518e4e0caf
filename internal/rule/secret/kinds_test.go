package secret

import (
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/race/racetest"
)

// word draws a password as people choose them.
func word(rnd *rand.Rand) string {
	words := []string{"river", "Falcon", "copper", "Winter", "maple", "Rocket", "violet", "Harbor"}
	w := words[rnd.IntN(len(words))] + words[rnd.IntN(len(words))]
	return w + []string{"", "!", "#", "_"}[rnd.IntN(4)] + random(rnd, "23456789", 3)
}

// kinds are secrets as they stand in files, messages and logs; what is drawn comes with them. No literal of theirs stands here whole.
func kinds(rnd *rand.Rand) map[string]func() (text, drawn string) {
	draw := func(alphabet string, n int) string { return random(rnd, alphabet, n) }
	b64 := base64.StdEncoding.EncodeToString
	around := func(before string, make func() string, after string) func() (string, string) {
		return func() (string, string) { s := make(); return before + s + after, s }
	}
	of := func(alphabet string, n int) func() string {
		return func() string { return draw(alphabet, n-2) + draw(digits, 1) + draw(lower, 1) }
	}
	number := func(n int) func() string { return func() string { return draw(digits, n) } }
	hex := func(n int) func() string { return func() string { return draw(hexa, n) } }
	chosen := func() string { return word(rnd) }
	uuid := func() string {
		return draw(hexa, 8) + "-" + draw(hexa, 4) + "-4" + draw(hexa, 3) + "-a" + draw(hexa, 3) + "-" + draw(hexa, 12)
	}
	joined := func(parts ...func() string) func() string {
		return func() string {
			var out strings.Builder
			for _, p := range parts {
				out.WriteString(p())
			}
			return out.String()
		}
	}
	is := func(s ...string) func() string { return func() string { return strings.Join(s, "") } }
	snowflake := func() string {
		return strings.TrimRight(b64([]byte("1"+draw(digits, 17))), "=") + "." + draw(alnum, 6) + "." + draw(url64, 37) + "7"
	}
	return map[string]func() (string, string){
		// In addresses.
		"url https":           around("git clone https:/"+"/deploy:", chosen, "@git.corp.net/team/app.git"),
		"url of example.com":  around("remote = https:/"+"/ci:", of(alnum, 20), "@git.example.com/app"),
		"url redis":           around("REDIS_URL=redis:/"+"/:", of(alnum, 16), "@cache:6379/0"),
		"url amqp":            around("broker_url: amqps:/"+"/app:", chosen, "@mq.internal:5671/%2f"),
		"url mongodb+srv":     around("uri = \"mongodb+srv:/"+"/svc:", of(alnum, 14), "@c0.abcde.mongodb.net/prod\""),
		"url ftp":             around("lftp ftp:/"+"/backup:", chosen, "@files.corp.net"),
		"url smtp":            around("EMAIL_URL=smtp:/"+"/mailer:", of(alnum, 18), "@smtp.corp.net:587"),
		"url clickhouse":      around("dsn: clickhouse:/"+"/etl:", chosen, "@ch1:9000/db"),
		"url pip index":       around("index-url = https:/"+"/reader:", of(alnum, 24), "@pypi.corp.net/simple"),
		"url user token":      around("url = https:/"+"/", of(alnum, 40), "@github.com/team/app.git"),
		"url x-oauth-basic":   around("https:/"+"/", hex(40), ":x-oauth-basic@github.com/team/app.git"),
		"query password":      around("jdbc:mysql:/"+"/db:3306/x?user=app&password=", chosen, "&useSSL=true"),
		"slack webhook":       around("curl https://hooks.sla"+"ck.com/services/", joined(is("T"), of(upper+digits, 9), is("/B"), of(upper+digits, 9), is("/"), of(alnum, 24)), ""),
		"slack workflow":      around("https://hooks.sla"+"ck.com/workflows/", joined(is("T"), of(upper+digits, 9), is("/A"), of(upper+digits, 9), is("/"), number(18), is("/"), of(alnum, 24)), ""),
		"discord webhook":     around("https://disco"+"rd.com/api/webhooks/", joined(is("1"), number(17), is("2/"), of(url64, 68)), ""),
		"teams webhook":       around("https://corp.webhook.off"+"ice.com/webhookb2/", joined(uuid, is("@"), uuid, is("/IncomingWebhook/"), hex(32), is("/"), uuid), ""),
		"google chat webhook": around("https://chat.google"+"apis.com/v1/spaces/AAAAabcdEFG/messages?key=", joined(of(url64, 39), is("&token="), of(url64, 43)), ""),
		"mattermost webhook":  around("url: https://chat.corp.net/hoo"+"ks/", of(lower+digits, 26), ""),
		"rocket.chat webhook": around("https://rocket.corp.net/hoo"+"ks/", joined(of(alnum, 17), is("/"), of(alnum, 43)), ""),
		"zapier hook":         around("https://hooks.zap"+"ier.com/hooks/catch/", joined(is("12"), number(5), is("1/"), of(lower+digits, 7)), "/"),
		"dingtalk robot":      around("https://oapi.ding"+"talk.com/robot/send?access_token=", hex(64), ""),
		"feishu hook":         around("https://open.fei"+"shu.cn/open-apis/bot/v2/hook/", uuid, ""),
		"azure sas":           around("https://acct.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&si"+"g=", joined(of(alnum, 42), is("%3D")), ""),
		"signed s3":           around("https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Sig"+"nature=", hex(64), ""),
		"query token":         around("GET https://api.corp.net/v1/x?access_to"+"ken=", of(alnum, 32), "&page=2"),

		// Logins.
		"netrc":                around("machine api.corp.net login bot pass"+"word ", of(alnum, 20), "\n"),
		"netrc lines":          around("machine git.corp.net\n  login bot\n  pass"+"word ", chosen, "\n"),
		"pgpass":               around("db.corp.net:5432:app:svc:", chosen, "\n"),
		"pgpass any":           around("*:*:*:svc:", of(alnum, 16), "\n"),
		"npmrc token":          around("//registry.corp.net/:_auth"+"Token=", of(alnum, 36), "\n"),
		"npmrc uuid":           around("//registry.npmjs.org/:_auth"+"Token=", uuid, "\n"),
		"npmrc auth":           around("_au"+"th=", func() string { return b64([]byte("bot:" + word(rnd))) }, "\n"),
		"npmrc password":       around("//npm.corp.net/:_pass"+"word=", func() string { return b64([]byte(word(rnd) + "x")) }, "\n"),
		"yarnrc":               around("npmAuth"+"Token: \"", of(alnum, 40), "\"\n"),
		"pypirc":               around("[pypi]\nusername = bot\npass"+"word = ", chosen, "\n"),
		"docker config":        around(`{"auths":{"r.corp.net":{"au`+`th":"`, func() string { return b64([]byte("bot:" + word(rnd))) }, `"}}}`),
		"docker identity":      around(`{"identity`+`token":"`, of(alnum, 60), `"}`),
		"docker login":         around("docker login -u bot -p ", of(alnum, 20), " r.corp.net"),
		"maven":                around("<server><id>r</id><username>bot</username><pass"+"word>", chosen, "</password></server>"),
		"nuget":                around(`<add key="ClearText`+`Password" value="`, chosen, `" />`),
		"cargo":                around("[registries.corp]\nto"+"ken = \"", of(alnum, 40), "\"\n"),
		"crates.io":            around("token = \"", joined(is("ci", "o"), of(alnum, 32)), "\"\n"),
		"gem":                  around(":rubygems_api"+"_key: ", joined(is("ruby", "gems_"), hex(48)), "\n"),
		"gem of old":           around(":rubygems_api"+"_key: ", hex(32), "\n"),
		"composer":             around(`{"github-oa`+`uth": {"github.com": "`, hex(40), `"}}`),
		"authorization basic":  around("Author"+"ization: Basic ", func() string { return b64([]byte("bot:" + word(rnd))) }, "\n"),
		"authorization bearer": around(`headers={"Author`+`ization": "Bearer `, of(alnum, 40), `"}`),
		"a request":            around("cu"+"rl -u bot:", chosen, " https://api.corp.net/"),
		"sshpass":              around("sshpass -p '", chosen, "' ssh root@10.0.0.5"),
		"mysql argument":       around("mysqldump -h db -u root -p", chosen, " app > d.sql"),
		"redis-cli":            around("redis-cli -h cache -a ", of(alnum, 20), " ping"),
		"flag":                 around("./deploy --pass"+"word=", chosen, " --host db1"),

		// Assignments.
		"go":              around("pass"+"word := \"", chosen, "\"\n"),
		"go field":        around("cfg := Config{User: \"app\", Pass"+"word: \"", chosen, "\"}"),
		"python":          around("DB_PASS"+"WORD = '", chosen, "'\n"),
		"python dict":     around("conn = connect(**{'user': 'app', 'pass"+"wd': '", chosen, "'})"),
		"javascript":      around("const dbPass"+"word = '", chosen, "';"),
		"typescript":      around("private pass"+"word: string = \"", chosen, "\";"),
		"ruby":            around("config.pass"+"word = \"", chosen, "\""),
		"php":             around("define('DB_PASS"+"WORD', '", chosen, "');"),
		"php array":       around("'pass"+"word' => '", chosen, "',"),
		"java properties": around("spring.datasource.pass"+"word=", chosen, "\n"),
		"ini":             around("[client]\nuser=app\npass"+"word=", chosen, "\n"),
		"env":             around("DB_PASS"+"WORD=", chosen, "\n"),
		"env exported":    around("export PG"+"PASSWORD=", chosen, "\n"),
		"env a word":      around("MYSQL_ROOT_PASS"+"WORD=", func() string { return "gris" + draw("bcdfgkmp", 8) }, "\n"),
		"env in a line":   around("PG"+"PASSWORD=", chosen, " psql -h db -c 'select 1'"),
		"dockerfile":      around("ENV APP_PASS"+"WORD=", chosen, "\n"),
		"compose":         around("    environment:\n      - POSTGRES_PASS"+"WORD=", chosen, "\n"),
		"yaml":            around("db:\n  user: app\n  DB_PA"+"SS: ", chosen, "\n"),
		"yaml quoted":     around("smtp:\n  pass"+"word: \"", chosen, "\"\n"),
		"json":            around(`{"user": "app", "pass`+`word": "`, chosen, `"}`),
		"toml":            around("[database]\npass"+"word = \"", chosen, "\"\n"),
		"xml attribute":   around(`<datasource user="app" pass`+`word="`, chosen, `"/>`),
		"ansible":         around("ansible_become_pa"+"ss: ", chosen, "\n"),
		"gradle":          around("storePass"+"word=", chosen, "\n"),
		"ado.net":         around("Server=db;Database=app;User Id=sa;Pass"+"word=", chosen, ";Encrypt=true"),
		"odbc":            around("DRIVER={x};SERVER=db;UID=sa;PW"+"D=", chosen, ";"),
		"sql":             around("CREATE USER 'app'@'%' IDENTIFIED BY '", chosen, "';"),
		"postgres role":   around("ALTER ROLE app WITH LOGIN PASS"+"WORD '", chosen, "';"),
		"redis.conf":      around("require"+"pass ", chosen, "\n"),
		"passphrase":      around("signing.pass"+"phrase = '", chosen, "'\n"),
		"django key":      around("SECRET"+"_KEY = '", of(alnum, 50), "'\n"),
		"client secret":   around("client_sec"+"ret: \"", of(alnum, 40), "\"\n"),
		"webhook secret":  around("WEBHOOK_SEC"+"RET=", hex(40), "\n"),
		"jwt secret":      around("JWT_SEC"+"RET=", of(alnum, 44), "\n"),
		"laravel":         around("APP_"+"KEY=base64:", func() string { return b64([]byte(draw(alnum, 32))) }, "\n"),
		"rails":           around("secret_key"+"_base: ", hex(128), "\n"),

		// Clouds, without their neighbour.
		"aws secret key":    around("aws_secret_access"+"_key = ", joined(of(std64, 38), is("7k")), "\n"),
		"aws secret env":    around("AWS_SECRET_ACCESS"+"_KEY=", joined(of(std64, 38), is("7k")), "\n"),
		"aws secret json":   around(`"SecretAccess`+`Key": "`, joined(of(std64, 38), is("7k")), `"`),
		"azure account key": around("DefaultEndpointsProtocol=https;AccountName=a;Account"+"Key=", joined(of(std64, 86), is("==")), ";EndpointSuffix=core.windows.net"),
		"azure service bus": around("Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccess"+"Key=", joined(of(std64, 43), is("=")), ""),
		"gcp private key": around(`{"type":"service_account","private`+`_key":"`, func() string {
			return "-----" + `BEGIN PRIVATE KEY-----\n` + draw(std64, 64) + `\n` + draw(std64, 64) + `\n-----END ` + "PRIVATE KEY-----"
		}, `\n"}`),
		"google client":   around(`"client_secret":"`, joined(is("GOC", "SPX-"), of(url64, 28)), `"`),
		"cloudflare":      around("CLOUDFLARE_API_"+"TOKEN=", of(url64, 40), "\n"),
		"digitalocean":    around("token: ", joined(is("do", "p_v1_"), hex(64)), "\n"),
		"heroku":          around("HEROKU_API"+"_KEY=", uuid, "\n"),
		"heroku of today": around("x ", joined(is("HR", "KU-AA"), of(url64, 58)), "\n"),
		"hetzner":         around("HCLOUD_"+"TOKEN=", of(alnum, 64), "\n"),
		"netlify":         around("x ", joined(is("nf", "p_"), of(alnum, 36)), "\n"),
		"supabase":        around("x ", joined(is("sb", "p_"), hex(40)), "\n"),
		"ethereum":        around("PRIVATE_"+"KEY=0x", hex(64), "\n"),
		"wireguard":       around("[Interface]\nPrivate"+"Key = ", joined(of(std64, 43), is("=")), "\n"),

		// Bots and services.
		"telegram bot": around("bot = Bot(\"", joined(is("61"), number(6), is("22:A", "A"), of(url64, 33)), "\")"),
		"discord bot":  around("client.run('", snowflake, "')"),
		"slack cookie": around("cookie: d=", joined(is("xo", "xd-"), of(alnum, 60)), ""),
		"matrix":       around("x ", joined(is("sy", "t_"), of(lower, 8), is("_"), func() string { return draw(lower+upper, 20) }, is("_"), of(alnum, 6)), ""),
		"npm":          around("x ", joined(is("np", "m_"), of(alnum, 36)), ""),
		"docker hub":   around("x ", joined(is("dck", "r_pat_"), of(url64, 27)), ""),
		"nuget.org":    around("x ", joined(is("oy", "2"), of(lower+digits, 43)), ""),
		"gitlab":       around("x ", joined(is("gl", "pat-"), of(alnum, 20)), ""),
		"bitbucket":    around("x ", joined(is("AT", "BB"), of(alnum, 32)), ""),
		"circleci":     around("x ", joined(is("CCI", "PAT_"), of(alnum, 22), is("_"), hex(40)), ""),
		"buildkite":    around("x ", joined(is("bk", "ua_"), hex(40)), ""),
		"stripe":       around("x ", joined(is("sk", "_live_"), of(alnum, 24)), ""),
		"stripe hook":  around("x ", joined(is("wh", "sec_"), of(alnum, 32)), ""),
		"sendgrid":     around("x ", joined(is("S", "G."), of(url64, 22), is("."), of(url64, 43)), ""),
		"resend":       around("x ", joined(is("r", "e_"), of(alnum, 8), is("_"), of(alnum, 24)), ""),
		"mailgun":      around("x ", joined(is("ke", "y-"), hex(32)), ""),
		"mailchimp":    around("x ", joined(hex(32), is("-us", "12")), ""),
		"twilio":       around("x ", joined(is("S", "K"), hex(32)), ""),
		"groq":         around("x ", joined(is("gs", "k_"), of(alnum, 52)), ""),
		"hugging face": around("x ", joined(is("h", "f_"), of(alnum, 34)), ""),
		"replicate":    around("x ", joined(is("r", "8_"), of(alnum, 37)), ""),
		"xai":          around("x ", joined(is("xa", "i-"), of(alnum, 80)), ""),
		"openrouter":   around("x ", joined(is("sk", "-or-v1-"), hex(64)), ""),
		"langsmith":    around("x ", joined(is("ls", "v2_pt_"), hex(32), is("_"), hex(10)), ""),
		"figma":        around("x ", joined(is("fi", "gd_"), of(url64, 40)), ""),
		"notion":       around("x ", joined(is("nt", "n_"), of(alnum, 46)), ""),
		"linear":       around("x ", joined(is("lin", "_api_"), of(alnum, 40)), ""),
		"airtable":     around("x ", joined(is("pa", "t"), of(alnum, 14), is("."), hex(64)), ""),
		"asana":        around("x ", joined(is("1/12"), number(12), is("34:"), hex(32)), ""),
		"postman":      around("x ", joined(is("PM", "AK-"), hex(24), is("-"), hex(34)), ""),
		"posthog":      around("x ", joined(is("ph", "x_"), of(alnum, 43)), ""),
		"new relic":    around("x ", joined(is("NR", "AK-"), of(upper+digits, 27)), ""),
		"tailscale":    around("x ", joined(is("ts", "key-auth-"), of(alnum, 12), is("-"), of(alnum, 32)), ""),
		"vault":        around("x ", joined(is("hv", "s."), of(url64, 90)), ""),
		"terraform":    around("x ", joined(of(alnum, 14), is(".atl", "asv1."), of(url64, 67)), ""),
		"doppler":      around("x ", joined(is("dp", ".st."), of(alnum, 43)), ""),
		"launchdarkly": around("x ", joined(is("sd", "k-"), uuid), ""),
	}
}

// Each kind of secret is found in a file, and nothing of it is left in what is shown.
func TestEveryKindOfSecretIsFoundAndTakenOut(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	s, _ := scanners()
	all := kinds(rnd)
	if len(all) < 100 {
		t.Errorf("only %d kinds", len(all))
	}
	each := 5
	if racetest.Part() {
		each = 1
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		for range each {
			text, drawn := all[kind]()
			whole := "a line before\n" + text + "\na line after\n"
			if fs := scan(t, "src/app.txt", whole); len(fs) == 0 {
				t.Errorf("%s: not found: %q", kind, text)
				break
			}
			if shown := s.Redact(whole); strings.Contains(shown, drawn) || !strings.HasPrefix(shown, "a line before\n") || !strings.HasSuffix(shown, "\na line after\n") {
				t.Errorf("%s: shown as %q", kind, shown)
				break
			}
		}
	}
}

// A word that stands in examples does not make one of what a person chose.
func TestAPasswordThatHoldsAWordOfExamplesIsFound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	for _, word := range []string{"test", "Test", "default", "invalid", "sample", "dummy", "todo", "passwd", "abcdef", "1234567", "changeme", "example", "qwerty", "your_", "insert", "mock"} {
		drawn := random(rnd, alnum, 4) + "9k" + random(rnd, alnum, 4)
		for _, password := range []string{word + drawn, drawn + word, drawn[:5] + word + drawn[5:], word + "-" + drawn + "!"} {
			for _, text := range []string{`password = "` + password + `"`, "DB_PASSWORD=" + password, `{"password": "` + password + `"}`, "https:/" + "/ann:" + password + "@db.corp.lan/x"} {
				if fs := scan(t, "src/app.txt", "line one\n"+text+"\nline three\n"); len(fs) == 0 {
					t.Errorf("%q is taken for an example", text)
				}
			}
		}
	}
}

// What looks like a secret and is none: places for one, reads of one, hashes, types, words of documents and programs.
func TestWhatOnlyLooksLikeASecretIsLeftAlone(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	for _, text := range []string{
		// Places for one.
		"PASSWORD=${DB_PASSWORD}", "DB_PASS: ${{ secrets.DB_PASS }}", `password = "<password>"`, "password: xxxxxxxx", `password = "changeme"`, "DB_PASSWORD=changeme",
		`password: "{{ vault_db_password }}"`, "POSTGRES_PASSWORD=postgres", "MYSQL_ROOT_PASSWORD=root", `"password": "%s"`, "password=$1", "PASSWORD=$(cat /run/secrets/db)",
		"password: !vault |", "password: ENC[AES256_GCM,data:abc1]", "<password>${env.REPO_PASSWORD}</password>", "<password>{COQLCE6DU6GtcS5P=}</password>",
		"//registry.npmjs.org/:_authToken=${NPM_TOKEN}", "_auth=<base64 of user:password>", "machine example.com login USER password PASSWORD",
		"https:/" + "/user:password@example.com/", "https:/" + "/user:pass@host/path", "https:/" + "/$USER:$TOKEN@github.com/x", "https:/" + "/<user>:<token>@host",
		"https:/" + "/%s:%s@%s", "http:/" + "/localhost:8080/@scope/pkg", "see http:/" + "/host:80/a@b", "git@github.com:team/app.git", "ssh:/" + "/git@github.com/x",
		"https:/" + "/hooks.slack.com/services/YOUR/WEBHOOK/URL",
		"https:/" + "/discord.com/api/webhooks/{id}/{token}", "https:/" + "/api.telegram.org/bot<token>/sendMessage", "POST /hooks/pre-commit/install",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AccountKey=<key>;EndpointSuffix=core.windows.net", "Authorization: Bearer <token>",
		"Authorization: Bearer $TOKEN", `"Authorization": "Bearer " + token`, "token = \"YOUR_API_TOKEN_GOES_HERE_1\"", "SECRET_KEY = 'change-me-in-production-0123456789'",
		// Reads of one.
		`password := os.Getenv("APP_PASSWORD")`, `password = os.environ["DB_PASSWORD1"]`, "const password = process.env.DB_PASSWORD", "password = config.get('db.password2')",
		"password = getpass.getpass()", "PASSWORD=`pwgen 20 1`", `db.Password = cfg.Password`, "password = read_file('/run/secrets/db1')", "password=/run/secrets/db_password_1",
		`password_file: "/etc/app/db1.pass"`, `--password "$DB_PASSWORD"`, "--password-stdin", "curl -u user:$PASS https://x", "PGPASSWORD=$PGPASSWORD psql", "export OLDPWD=/home/u2", "PWD=/srv/app2",
		"redis://:${REDIS_PASSWORD}@cache:6379", "sshpass -p $PW ssh h", "pass: req.body.password1", "passwd = argv[2]", "bypass = cache2", "compass: north1",
		// Types and names.
		"Password string `json:\"password\"`", "password: string;", "password = fields.CharField(max_length=128)", "def f(password=None, pwd2=None):", "password VARCHAR(255) NOT NULL",
		"type PasswordHash [32]byte", "passwordField := \"user_password1\"", `<input type="password" name="password2" autocomplete="current-password">`, `label: "Password", type: "password"`,
		`"password": "Mot de passe"`, `"password": "Contraseña"`, `"passwordHelp": "At least 8 characters"`, "password: 'new-password'", `password: "auth.password"`, "PASSWORD_MIN_LENGTH=12", "password_digest: bcrypt",
		`passwordAlgorithm = "pbkdf2-sha256"`, "password_encryption = scram-sha-256", `password = "test1234"`, `password = "hunter2"`, "password = 'secret123'", `Password: "password123"`, "password: true", "pass: 12",
		`hashPassword("bcrypt", 10)`, "user.password, user.email2", `t.Run("wrong password", f)`, `if password == "" {`, "token: string", "secret_key: &str", "apiKey: config.apiKey2,", "secret := make([]byte, 32)",
		// Hashes and numbers.
		"password = \"$2b$12$" + random(rnd, alnum, 53) + "\"", "root:$6$" + random(rnd, alnum, 8) + "$" + random(rnd, alnum, 86) + ":19000:0:::", "password: \"{SSHA}" + random(rnd, std64, 32) + "\"",
		"commit " + random(rnd, hexa, 40), "sha256:" + random(rnd, hexa, 64), `"integrity": "sha512-` + random(rnd, std64, 86) + `=="`, "h1:" + random(rnd, std64, 43) + "=", "etag: \"" + random(rnd, hexa, 32) + "\"",
		"publicKeyToken=" + random(rnd, hexa, 16), "public_key: \"" + random(rnd, hexa, 64) + "\"", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + random(rnd, std64, 43), "id: 12345678:AB" + random(rnd, alnum, 20),
		"10.0.0.1:5432:up:2", "12:30:45:5432", "a:b:5432: c", "MTIzNDU2Nzg5MDEyMzQ1Njc4.png.gz", "https:/" + "/abc.ingest.sentry.io/12", "X-Amz-Signature=<signature>", "?sig={signature}", "&token=TOKEN",
		// Filler from end to end.
		`password = "my-test-password-1"`, "DB_PASSWORD=test_password_2024", `password: "ThisIsATestPassword!"`, "PASSWORD=default-admin-pass1", `passwd = "invalid_password_99"`, "APP_PASSWORD=Test1234!", `pass := "WrongPass123"`,
		"https:/" + "/admin:changeme123@db.example.com/", "--password=Replace-Me-1", "POSTGRES_PASSWORD=postgres-test-01", `Password: "fakePassword42"`, "requirepass foobared-test1", `"SessionToken": "AQoEXAMPLEH4` + random(rnd, alnum, 40) + `"`,
		`PrivateKey: testRSA2048PrivateKey,`, `password = "0000-1111-test"`, `Password: "xxxx-xxxx-xxxx1"`,
		// Documents.
		"The password is stored in the keychain; see login.", "Set `password` to the value of `DB_PASSWORD`.", "--password: the password to use (default: prompt)", "password: The password of the user",
		"IDENTIFIED BY 'password'", "requirepass foobared", "Basic dXNlcjpwYXNzd29yZA==", "token is required, secret is not", "machine learning password manager", "default password is admin",
	} {
		if fs := scan(t, "src/app.txt", "line one\n"+text+"\nline three\n"); len(fs) > 0 {
			t.Errorf("%q: %v", text, fs)
		}
	}
}

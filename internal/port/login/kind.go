package login

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// Kind is whose login one is: where its file is, what stands in it and where it is renewed.
type Kind struct {
	Name     string // codex, claude
	Folder   string // of the program, below its user's home folder
	Variable string // that names the folder where it is elsewhere
	File     string // in the folder
	Lock     string // a file in it that the program locks while it writes File; "" = it is not known to
	Again    string // the command by which a person logs in anew
	Renewal  string // URL at which it is renewed
	Client   string // as which: the program's own name there, which is public
	Account  string // header that says for which account a token is used; "" = none

	read func(raw []byte) (tokens, error)
	with func(doc object, a answer, now time.Time) error
}

// tokens are what a file holds.
type tokens struct {
	access, renewal secret.Value
	identity        secret.Value // says who the person is; it opens nothing
	account         string
	ends            time.Time // of access; zero = it is not known
}

// lasts reports whether the token is good for so long.
func (t tokens) lasts(now time.Time, span time.Duration) bool {
	return t.ends.IsZero() || now.Add(span).Before(t.ends)
}

// answer is what a renewal comes back with.
type answer struct {
	Access   string `json:"access_token"`
	Renewal  string `json:"refresh_token"` // "" = the one that was used is good for more
	Identity string `json:"id_token"`
	Seconds  int64  `json:"expires_in"`

	ends time.Time // of Access, as of when it came; zero = nothing says so
}

// object is a document of which what is not known stays as it is.
type object map[string]json.RawMessage

// into reads a part of the document; what is not there is left out.
func (o object) into(name string, to any) error {
	raw, ok := o[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	return json.Unmarshal(raw, to)
}

// set replaces a part of the document.
func (o object) set(name string, to any) error {
	raw, err := json.Marshal(to)
	o[name] = raw
	return err
}

var errNone = errors.New("it holds no login")

// Kinds are all that there are.
var Kinds = []Kind{Codex, Claude}

// Codex is the login of the OpenAI Codex CLI with a ChatGPT account.
var Codex = Kind{
	Name: "codex", Folder: ".codex", Variable: "CODEX_HOME", File: "auth.json", Lock: "auth.json.lock", Again: "codex login",
	Renewal: "https://auth.openai.com/oauth/token", Client: "app_EMoamEEZ73f0CkXaXp7hrann", Account: "ChatGPT-Account-ID",
	read: readCodex, with: renewedCodex,
}

// codexTokens is the part of its file that has them.
const codexTokens = "tokens"

func readCodex(raw []byte) (t tokens, err error) {
	var file struct {
		Key    string `json:"OPENAI_API_KEY"`
		Tokens struct {
			Identity string `json:"id_token"`
			Access   string `json:"access_token"`
			Renewal  string `json:"refresh_token"`
			Account  string `json:"account_id"`
		} `json:"tokens"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return t, errors.New("it is no JSON of the form that codex writes")
	}
	if file.Tokens.Access == "" && file.Key != "" {
		return t, errors.New("codex is logged in with an API key, which has no login to renew: name the key itself, by key: in the home's sallyport.yaml")
	}
	if file.Tokens.Access == "" {
		return t, errNone
	}
	t.access, t.renewal, t.identity = secret.Hold(file.Tokens.Access), secret.Hold(file.Tokens.Renewal), secret.Hold(file.Tokens.Identity)
	t.ends = ending(file.Tokens.Access)
	if credential.Sound(secret.Hold(file.Tokens.Account)) == nil { // it goes into a header
		t.account = file.Tokens.Account
	}
	return t, nil
}

func renewedCodex(doc object, a answer, now time.Time) error {
	part := object{}
	if err := doc.into(codexTokens, &part); err != nil {
		return err
	}
	identity := a.Identity
	if claims(identity) == nil { // codex reads no file with such a one
		identity = ""
	}
	for name, value := range map[string]string{"access_token": a.Access, "refresh_token": a.Renewal, "id_token": identity} {
		if value == "" {
			continue
		}
		if err := part.set(name, value); err != nil {
			return err
		}
	}
	return errors.Join(doc.set(codexTokens, part), doc.set("last_refresh", now.UTC().Format(time.RFC3339Nano)))
}

// ending is when a token says that it ends; zero if it does not. Nobody's signature is looked at: this is the person's own.
func ending(token string) time.Time {
	var said struct {
		Ends int64 `json:"exp"`
	}
	if json.Unmarshal(claims(token), &said) != nil || said.Ends <= 0 {
		return time.Time{}
	}
	return time.Unix(said.Ends, 0)
}

// claims are what a token of three parts says; nil if it is none.
func claims(token string) []byte {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || !json.Valid(raw) {
		return nil
	}
	return raw
}

// Claude is the login of Claude Code with a Claude account.
var Claude = Kind{
	Name: "claude", Folder: ".claude", Variable: "CLAUDE_CONFIG_DIR", File: ".credentials.json", Again: "claude /login",
	Renewal: "https://platform.claude.com/v1/oauth/token", Client: "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
	read: readClaude, with: renewedClaude,
}

// claudeTokens is the part of its file that has them.
const claudeTokens = "claudeAiOauth"

func readClaude(raw []byte) (t tokens, err error) {
	var file struct {
		Tokens struct {
			Access  string `json:"accessToken"`
			Renewal string `json:"refreshToken"`
			Ends    int64  `json:"expiresAt"` // Unix milliseconds
		} `json:"claudeAiOauth"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return t, errors.New("it is no JSON of the form that Claude Code writes")
	}
	if file.Tokens.Access == "" {
		return t, errNone
	}
	t.access, t.renewal = secret.Hold(file.Tokens.Access), secret.Hold(file.Tokens.Renewal)
	if file.Tokens.Ends > 0 {
		t.ends = time.UnixMilli(file.Tokens.Ends)
	}
	return t, nil
}

func renewedClaude(doc object, a answer, _ time.Time) error {
	part := object{}
	if err := doc.into(claudeTokens, &part); err != nil {
		return err
	}
	if err := part.set("accessToken", a.Access); err != nil {
		return err
	}
	if a.Renewal != "" {
		if err := part.set("refreshToken", a.Renewal); err != nil {
			return err
		}
	}
	if a.ends.IsZero() {
		delete(part, "expiresAt")
	} else if err := part.set("expiresAt", a.ends.UnixMilli()); err != nil {
		return err
	}
	return doc.set(claudeTokens, part)
}

package secret_test

import (
	"testing"

	"sallyport/internal/rule/secret"
)

func TestPathsThatHoldSecretsByCustom(t *testing.T) {
	for path, want := range map[string]string{
		".env": ".env", "a/.env": ".env", ".env.local": ".env.local", "x/.env.production": ".env.production",
		"credentials.json": "credentials.json", "deep/credentials.yml": "credentials.*", "service-account.json": "service-account.json",
		".npmrc": ".npmrc", "pkg/.pypirc": ".pypirc", "id_rsa": "id_rsa", "k/id_ed25519": "id_ed25519", "tls/server.pem": "*.pem",
		"server.key": "*.key", ".pem": "*.pem", "Server.KEY": "*.key", "secret/x": "secret/", "a/Secrets/b/c": "secrets/", "SECRETS/x": "secrets/",
		"secrets/": "secrets/", ".aws/config": ".aws/", "home/.ssh/known_hosts": ".ssh/", ".gnupg/x": ".gnupg/", ".config/gcloud/a/b": ".config/gcloud/",
		".ssh": ".ssh/", "a/../.env": ".env", "./.env": ".env", "../../root/.ssh/id": ".ssh/",
		// look-alikes
		".env.example": "", ".environment": "", "env": "", "a.env": "", "secret": "", "secrets": "", "secrets.go": "", "my-secrets/x": "",
		"secretsx/y": "", "keys.go": "", "monkey": "", "pem": "", "a.pem.txt": "", "credentials": "", "mycredentials.json": "", ".config/gcloud2/x": "",
		".config/other": "", "gcloud/x": "", "id_rsa.pub": "", "docs/aws/x": "", "": "", "internal/rule/secret.go": "", "a*key": "",
	} {
		rule, blocked := secret.PathRule(path)
		if rule != want || blocked != (want != "") {
			t.Errorf("%q: %q %v, want %q", path, rule, blocked, want)
		}
	}
}

package secret

import (
	"path"
	"strings"
)

// files are the names of files that hold secrets by custom (CW-022); * is a wildcard within the name.
var files = []string{
	".env", ".env.local", ".env.production", "credentials.json", "service-account.json", ".npmrc", ".pypirc",
	"id_rsa", "id_ed25519", "*.pem", "*.key", "credentials.*",
}

// folders hold secrets by custom, all that is below them included (CW-022).
var folders = []string{"secret", "secrets", ".aws", ".ssh", ".gnupg", ".config/gcloud"}

// PathRule says whether a path is one of those that hold secrets by custom (CW-022), and by which
// rule, as `*.pem` or `secrets/`. The path is relative, with slashes, as in a tree. Case does not count: a
// checkout on another system may not tell `.ENV` from `.env`.
func PathRule(name string) (rule string, blocked bool) {
	lower := strings.ToLower(strings.ReplaceAll(name, `\`, "/"))
	parts := strings.Split(strings.Trim(path.Clean("/"+lower), "/"), "/")
	for i := range parts {
		for _, folder := range folders {
			depth := strings.Count(folder, "/") + 1
			// The last part is a file. A file (or link, or submodule) named like a dot folder stands for the folder.
			if i+depth > len(parts) || (i+depth == len(parts) && folder[0] != '.' && !strings.HasSuffix(lower, "/")) {
				continue
			}
			if strings.Join(parts[i:i+depth], "/") == folder {
				return folder + "/", true
			}
		}
	}
	last := parts[len(parts)-1]
	for _, file := range files {
		if ok, err := path.Match(file, last); err == nil && ok {
			return file, true
		}
	}
	return "", false
}

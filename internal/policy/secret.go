package policy

import (
	"fmt"
	"strings"
)

// Constraints about secrets.
const (
	SecretFound = "secret"      // a secret in a file's new content (CW-023, CW-027)
	SecretPath  = "secret_path" // a path that holds secrets by custom (CW-022)
	NotScanned  = "not_scanned" // what could not be scanned is not clean (CW-025)
)

// Secret is what the scanner says of one changed path. It holds nothing of the secret (CW-024).
type Secret struct {
	File string // the changed path
	Kind string // the rule, as `aws-access-key` or, of a path, `*.pem`

	Line   int    // from 1; 0: the file as a whole
	Inside string // the member of an archive; "" = the file itself
	Name   bool   // the secret stands in the path, not in the content
	Path   bool   // the path is one that holds secrets by custom: Kind says which
	Failed string // why it could not be scanned, one clause; "" = it was
}

// What is named one by one; the rest is counted.
const (
	secretsPerFile   = 50
	secretsPerChange = 1000
)

// secrets turns what the scanner found into violations. A path that is gone, or is as the base has it, breaks nothing:
// taking a secret away is fine.
func (v *validator) secrets() {
	allow := v.globs("allow_secret_paths", v.rules.AllowSecretPaths)
	perFile, more := map[string]int{}, 0
	for _, s := range v.in.Secrets {
		c, ok := v.at[s.File]
		if !ok {
			v.add(s.File, Rule, Critical, "the scan for secrets names a path that the change does not have", "take a new checkpoint")
			continue
		}
		if c.gone() || c.same() || s.Path && len(v.rules.AllowSecretPaths) > 0 && allow.allow(c.Path) {
			continue
		}
		if perFile[c.Path]++; perFile[c.Path] > secretsPerFile || len(perFile) > secretsPerChange {
			more++
			continue
		}
		switch {
		case s.Failed != "":
			v.add(c.Path, NotScanned, Critical, "it was not scanned for secrets: "+s.inside()+s.Failed, undo(c)+", or store it in a form that can be looked into")
		case s.Path:
			v.add(c.Path, SecretPath, Critical, fmt.Sprintf("%q is where secrets are kept: no change lands there", s.Kind), undo(c)+", or let the home's owner allow the path: allow_secret_paths in policy.yaml")
		default:
			v.add(c.Path, SecretFound, Critical, s.where(), "take the secret out and have it replaced: whoever could read the file may know it")
		}
	}
	if more > 0 {
		v.add("", SecretFound, Critical, fmt.Sprintf("%d more secrets are not named one by one", more), "take them out too: sallyport secret scan finds all")
	}
}

// where says kind and place, never characters of the secret nor how long it is.
func (s Secret) where() string {
	var place []string
	if s.Line > 0 {
		place = append(place, fmt.Sprintf("line %d", s.Line))
	}
	if s.Inside != "" {
		place = append(place, fmt.Sprintf("of %q in it", s.Inside))
	}
	if s.Name {
		place = append(place, "in its name")
	}
	if len(place) == 0 {
		return "it is a secret: " + s.Kind
	}
	return "a secret: " + s.Kind + ", " + strings.Join(place, " ")
}

// inside names the member of an archive that could not be scanned.
func (s Secret) inside() string {
	if s.Inside == "" {
		return ""
	}
	return fmt.Sprintf("of %q in it, ", s.Inside)
}

package policy

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/inert"
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
	none := v.spared()
	perFile, more := map[string]int{}, 0
	for _, s := range v.in.Secrets {
		c, ok := v.at[s.File]
		if !ok {
			v.add(s.File, Rule, Critical, "the scan for secrets names a path that the change does not have", "take a new checkpoint")
			continue
		}
		if c.gone() || c.same() || s.Path && allow.allow(c.Path) {
			continue
		}
		if !s.Path && s.Failed == "" && !s.Name && none(c) {
			continue
		}
		if perFile[c.Path]++; perFile[c.Path] > secretsPerFile || len(perFile) > secretsPerChange {
			more++
			continue
		}
		switch {
		case s.Failed != "":
			v.add(c.Path, NotScanned, Critical, "the host could not scan it for secrets: "+s.inside()+s.Failed, undo(c)+
				", or store it in a form that the scan can read")
		case s.Path:
			v.add(c.Path, SecretPath, Critical, fmt.Sprintf("%q names a place where secrets are kept, and no change lands there", s.Kind),
				undo(c)+", or let the home's owner allow the path: allow_secret_paths in policy.yaml")
		default:
			v.add(c.Path, SecretFound, Critical, s.where(),
				"take the secret out, and revoke it where it is used, because whoever could read the file may know it; "+
					"if it is no secret, the home's owner writes allow_secrets: ["+spare(c)+
					"] in policy.yaml, or the path alone to allow whatever the file will hold")
		}
	}
	if more > 0 {
		v.add("", SecretFound, Critical, fmt.Sprintf("%d more secrets were found and are not listed one by one", more),
			"take them out too: sallyport secret scan finds all")
	}
}

// spared returns whether what looks like a secret in a change's content is none, by the home's word: a path, or a path with
// exactly the content that somebody has looked at.
func (v *validator) spared() func(Change) bool {
	type place struct {
		at   globs
		blob string
	}
	var places []place
	for _, entry := range v.rules.AllowSecrets {
		path, blob := entry, ""
		if i := strings.LastIndexByte(entry, '@'); i >= 0 && blobForm(entry[i+1:]) {
			path, blob = entry[:i], entry[i+1:]
		}
		if at := v.globs("allow_secrets", []string{path}); len(at) > 0 {
			places = append(places, place{at, blob})
		}
	}
	return func(c Change) bool {
		return slices.ContainsFunc(places, func(p place) bool {
			return strings.HasPrefix(string(c.New.OID), p.blob) && p.at.allow(c.Path)
		})
	}
}

// blobDigits is how many digits of a blob's id name it in a policy; fewer name none.
const blobDigits = 12

func blobForm(s string) bool {
	return len(s) >= blobDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// spare is the entry of allow_secrets that lets exactly this content stand at its path.
func spare(c Change) string {
	path := inert.Path(c.Path)
	if strings.ContainsAny(c.Path, `*?[]{}\"'`) || path != c.Path {
		path = "PATH"
	}
	return fmt.Sprintf("%q", path+"@"+string(c.New.OID)[:min(blobDigits, len(c.New.OID))])
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

package change

import "sallyport/internal/secret"

// secretRules names what a change is scanned by.
func (j Judging) secretRules() string {
	if j.Secrets == nil {
		return secret.Default().Digest()
	}
	return j.Secrets.Digest()
}

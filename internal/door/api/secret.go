package api

// Scan asks for secrets to be looked for.
type Scan struct {
	Path    string `json:"path"`    // absolute: the files below it
	History int    `json:"history"` // and in the last so many commits, if it is not 0
}

// SecretLine is one line of a scan for secrets; exactly one of its fields is set. The last line of a whole scan is Done.
type SecretLine struct {
	Finding  *SecretFinding  `json:"finding,omitempty"`
	Failed   *SecretFailure  `json:"failed,omitempty"`
	Progress *SecretProgress `json:"progress,omitempty"`
	Done     *SecretProgress `json:"done,omitempty"`
}

// SecretFinding says where a secret stands and what kind it is, never what it is.
type SecretFinding struct {
	File string `json:"file"`           // below the scanned folder; unescaped
	Line int    `json:"line,omitempty"` // from 1; 0: the name, or the file as a whole
	Kind string `json:"kind"`           // as aws-access-key
	Blob string `json:"blob,omitempty"` // of history: the git object that holds it
}

// SecretFailure names what could not be scanned: it is not clean.
type SecretFailure struct {
	File   string `json:"file"` // unescaped
	Reason string `json:"reason"`
}

// SecretProgress says how much has been scanned.
type SecretProgress struct {
	Files int64    `json:"files"`
	Bytes int64    `json:"bytes"`
	Rules []string `json:"rules,omitempty"` // files of the scanned folder that shaped the rules, as .gitleaks.toml
	Note  string   `json:"note,omitempty"`  // what of these counts for no change, and why
}

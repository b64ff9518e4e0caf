package policy

import "strings"

// contractFolders and contractNames are where what other programs rely on is written down.
var (
	contractFolders = map[string]bool{"migrations": true, "migration": true, "schema": true, "schemas": true, "openapi": true,
		"asyncapi": true, "proto": true, "protos": true, "contracts": true}
	contractNames = map[string]bool{"openapi": true, "swagger": true, "asyncapi": true, "schema": true, "events": true}
	contractEnds  = []string{".proto", ".avsc", ".graphql", ".graphqls", ".thrift", ".xsd", ".sql"}
)

// Contract reports whether a path is a contract, a schema, or decides how this host works: a
// change to one is always made in a shadow (SV-034). Case does not matter.
func Contract(path string) bool {
	path = strings.ToLower(path)
	switch path {
	case ".sallyport.yaml", "policy.yaml", "sallyport.yaml":
		return true
	}
	parts := strings.Split(path, "/")
	for _, folder := range parts[:len(parts)-1] {
		if contractFolders[folder] {
			return true
		}
	}
	name := parts[len(parts)-1]
	for _, end := range contractEnds {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	stem, end, _ := strings.Cut(name, ".")
	return contractNames[stem] && (end == "yaml" || end == "yml" || end == "json")
}

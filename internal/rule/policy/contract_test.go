package policy

import "testing"

func TestContractsAreKnownByTheirPath(t *testing.T) {
	for path, want := range map[string]bool{
		".sallyport.yaml": true, "sub/.sallyport.yaml": false, "api/openapi.yaml": true, "OpenAPI.JSON": true, "openapi.go": false,
		"db/migrations/1.sql": true, "db/Migrations/readme": true, "migrations": false, "a.proto": true, "proto/a.txt": true,
		"events.json": true, "events.txt": false, "schema.prisma": false, "internal/schema/x": true, "main.go": false, "": false,
	} {
		if Contract(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

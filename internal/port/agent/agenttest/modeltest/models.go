package modeltest

import "strings"

func modelsPath(path string) (list bool, one string) {
	path = strings.TrimSuffix(path, "/")
	if strings.HasSuffix(path, "/models") {
		return true, ""
	}
	if at := strings.LastIndex(path, "/models/"); at >= 0 {
		return false, path[at+len("/models/"):]
	}
	return false, ""
}

// modelEntry has what each vendor says of a model; a client reads its own.
func modelEntry(name string) object {
	return object{
		"id": name, "object": "model", "created": 1700000000, "owned_by": "test",
		"type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z",
		"name": "models/" + name, "displayName": name, "inputTokenLimit": 200000, "outputTokenLimit": 32000,
		"supportedGenerationMethods": []string{"generateContent", "countTokens"},
	}
}

func modelList(names []string) object {
	entries := []object{}
	first, last := "", ""
	for _, name := range names {
		entries = append(entries, modelEntry(name))
		if first == "" {
			first = name
		}
		last = name
	}
	return object{"object": "list", "data": entries, "has_more": false, "first_id": first, "last_id": last, "models": entries}
}

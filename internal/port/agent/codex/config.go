package codex

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

const (
	provider = "sallyport" // name of the host's route among codex's providers
	keyName  = "SALLYPORT_MODEL_KEY"
)

// environment is what codex gets beside what is ours: the order's, then what it may not change.
func environment(o agent.Order, home string) []string {
	return append(slices.Clone(o.Env), "CODEX_HOME="+home, keyName+"="+agent.DummyKey,
		"RUST_BACKTRACE=0") // its last words are what went wrong
}

// configuration is codex's config.toml: the model is the host's route, what would ask anybody else is off, and what a repository
// has in .codex, which may start programs and choose another model, is not read in any of dirs. Server is the command of the MCP server
// that has the host's tools; none if it is empty.
func configuration(o agent.Order, dirs, server []string) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if o.Model != "" {
		line("model = %s", quoted(o.Model))
	}
	if o.Base != "" {
		line("model_provider = %s", quoted(provider))
	}
	line(`approval_policy = "never"`)
	line(`sandbox_mode = "danger-full-access"`)
	line("check_for_update_on_startup = false")
	line(`web_search = "disabled"`)
	if o.Base != "" {
		line("[model_providers.%s]", provider)
		line("name = %s", quoted(provider))
		line("base_url = %s", quoted(o.Base))
		line(`wire_api = "responses"`)
		line("env_key = %s", quoted(keyName))
		line("requires_openai_auth = false")
		line("supports_websockets = false")
	}
	line("[features]")
	line("plugins = false")
	line("apps = false")
	line("unbounded_connection_retries = false") // else it waits for ever for a model that cannot be reached
	line("[analytics]")
	line("enabled = false")
	if len(server) > 0 {
		args := make([]string, 0, len(server))
		for _, arg := range server[1:] {
			args = append(args, quoted(arg))
		}
		line("[mcp_servers.%s]", agent.ToolsName)
		line("command = %s", quoted(server[0]))
		line("args = [%s]", strings.Join(args, ", "))
	}
	for _, dir := range dirs {
		line("[projects.%s]", quoted(dir))
		line(`trust_level = "untrusted"`)
	}
	return []byte(b.String())
}

// quoted is a basic string of TOML, whose escapes are those of JSON.
func quoted(s string) string {
	raw, err := json.Marshal(strings.ToValidUTF8(s, ""))
	if err != nil {
		panic(err) // a text always can be
	}
	return strings.ReplaceAll(string(raw), "\x7f", `\u007f`)
}

// projects are the folders that codex may take for the project that it works in.
func projects(dir string) []string {
	dirs := []string{sandbox.Mountpoint}
	for at := filepath.Clean(dir); at != "/" && at != "."; at = filepath.Dir(at) {
		if !slices.Contains(dirs, at) {
			dirs = append(dirs, at)
		}
	}
	return dirs
}

// instructionsName is the file in codex's home in which it takes what it is told in every session.
const instructionsName = "AGENTS.md"

// configure writes codex's own files anew, whatever its last turn has made of them.
func configure(home string, files map[string][]byte) error {
	for name, text := range files {
		if err := agent.WriteOwn(filepath.Join(home, name), text); err != nil {
			return fmt.Errorf("write its settings: %w", err)
		}
	}
	return nil
}

package acp

import (
	"encoding/json"
	"strings"

	"sallyport/internal/port/agent"
)

// gemini asks for edits, commands and fetches in its default mode; flags beat what the repository's own settings say. It is not gone on with:
// its transcript is broken by a start in the same minute, deleted by a later one, and holds answers of tools twice.
var gemini = dialect{
	model: true,
	files: func(place) map[string]string {
		return map[string]string{".gemini/settings.json": encoded(object{
			"general": object{
				"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "sessionRetention": object{"enabled": false},
				"maxAttempts": 3, // it waits in silence: with its own ten for more than two minutes
			},
			"privacy":   object{"usageStatisticsEnabled": false},
			"telemetry": object{"enabled": false},
			"security":  object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": false}},
			"tools":     object{"sandbox": false},
			"ide":       object{"enabled": false},
		})}
	},
	args: func(at place) []string { return named([]string{"--approval-mode", "default"}, "--model", at.Model) },
	env: func(place) []string {
		return []string{"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true"}
	},
}

// qwen asks for edits and commands in its default mode; the mode "auto" would ask its model about each command.
var qwen = dialect{
	model: true, loads: true, drains: true, unnamed: []agent.Wire{agent.Chat},
	files: func(at place) map[string]string {
		model := object{"generationConfig": object{"maxRetries": 0}} // it has rounds of its own around these
		if at.Model != "" {
			model["name"] = at.Model
		}
		return map[string]string{".qwen/settings.json": encoded(object{
			"$version":  4,
			"general":   object{"enableAutoUpdate": false, "gitCoAuthor": object{"commit": false, "pr": false}},
			"privacy":   object{"usageStatisticsEnabled": false},
			"telemetry": object{"enabled": false},
			"security":  object{"auth": object{"selectedType": "openai"}, "folderTrust": object{"enabled": false}},
			"model":     model,
			"tools":     object{"sandbox": false, "approvalMode": "default"},
			"ide":       object{"enabled": false},
			"ui":        object{"enableFollowupSuggestions": false},
			"memory":    object{"enableManagedAutoMemory": false, "enableManagedAutoDream": false, "enableAutoSkill": false},
		})}
	},
	args: func(at place) []string {
		return named([]string{"--approval-mode", "default", "--auth-type", "openai"}, "--model", at.Model)
	},
	env: func(at place) []string {
		env := []string{"QWEN_CODE_NO_RELAUNCH=true"}
		if at.Model != "" {
			env = append(env, "OPENAI_MODEL="+at.Model)
		}
		return env
	},
}

// codex's modes are those of its own sandbox, which works in none but ours: in all others its edits fail, or are put before a second
// model. In full access it asks nobody.
var codex = dialect{
	model: true, loads: true, titled: true, disguise: systemError,
	files: func(at place) map[string]string { return map[string]string{".codex/config.toml": codexConfig(at)} },
	env: func(at place) []string {
		pinned := object{"model_provider": "sallyport"} // else the repository's own settings choose
		if at.Model != "" {
			pinned["model"] = at.Model
		}
		raw, _ := json.Marshal(pinned) // plain data
		return []string{
			"CODEX_HOME=" + at.home + "/.codex", "INITIAL_AGENT_MODE=agent-full-access", "NO_BROWSER=1",
			"CODEX_ACP_PROMPT_SUGGESTIONS=false", "CODEX_CONFIG=" + string(raw),
		}
	},
}

func codexConfig(at place) string {
	var b strings.Builder
	if at.Model != "" {
		b.WriteString("model = " + quoted(at.Model) + "\n")
	}
	b.WriteString(`model_provider = "sallyport"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"

[model_providers.sallyport]
name = "sallyport"
base_url = ` + quoted(at.Base) + `
wire_api = "responses"
env_key = "OPENAI_API_KEY"
requires_openai_auth = false
supports_websockets = false

[features]
plugins = false
apps = false
unbounded_connection_retries = false

[analytics]
enabled = false

[projects.` + quoted(at.dir) + `]
trust_level = "untrusted"
`)
	return b.String()
}

// quoted is a TOML string, which one of JSON is too.
func quoted(s string) string {
	raw, _ := json.Marshal(s) // a string always can be
	return string(raw)
}

// systemError sees a failed turn that codex-acp ends as if it were done: the thread is in error, or nothing was used.
func systemError(u *turn, got turnOver) (string, bool) {
	if got.Reason != "end_turn" || u.thread != "systemError" && string(got.Usage) != "null" {
		return "", false
	}
	for _, said := range []string{u.trouble, u.stray} {
		if said != "" {
			return said, true
		}
	}
	return "it did not say why", true
}

// opencode takes its settings from the environment. Those of the repository are left out: they could run programs in its own process and
// name another endpoint, and with a plugin among them it waits minutes for a registry. What it is told about a repository is named here.
var opencode = dialect{
	model: true, loads: true, joins: true, late: true, unnamed: []agent.Wire{agent.Chat, agent.Responses, agent.Gemini},
	env: func(at place) []string {
		return []string{
			"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1",
			"OPENCODE_DISABLE_PROJECT_CONFIG=1",
			"OPENCODE_CONFIG_CONTENT=" + encoded(opencodeConfig(at)),
		}
	},
}

// opencodeWires are the packages by which opencode speaks a wire; all are in its program.
var opencodeWires = map[agent.Wire]struct{ npm, path string }{
	agent.Messages:  {"@ai-sdk/anthropic", "/v1"},
	agent.Chat:      {"@ai-sdk/openai-compatible", ""},
	agent.Responses: {"@ai-sdk/openai", ""},
	agent.Gemini:    {"@ai-sdk/google", "/v1beta"},
}

func opencodeConfig(at place) object {
	wire := opencodeWires[at.Wire]
	options := object{"baseURL": at.Base + wire.path, "apiKey": agent.DummyKey}
	c := object{
		"$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
		"instructions": []string{at.dir + "/AGENTS.md", at.dir + "/CLAUDE.md"},
		"permission":   object{"edit": "ask", "bash": "ask", "webfetch": "ask"},
	}
	model := strings.TrimPrefix(at.Model, "anthropic/")
	if at.Model == "" { // it knows Anthropic's and takes what it thinks best
		c["enabled_providers"] = []string{"anthropic"}
		c["provider"] = object{"anthropic": object{"options": options}}
		return c
	}
	c["enabled_providers"] = []string{"sallyport"}
	c["model"], c["small_model"] = "sallyport/"+model, "sallyport/"+model
	c["provider"] = object{"sallyport": object{
		"npm": wire.npm, "name": "sallyport", "options": options,
		"models": object{model: object{"name": model, "tool_call": true, "limit": object{"context": 200_000, "output": 8192}}},
	}}
	return c
}

package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
)

// gemini asks for edits, commands and fetches in its default mode; flags beat what the repository's own settings say. It is not gone on with:
// its transcript is broken by a start in the same minute, deleted by a later one, and holds answers of tools twice.
var gemini = dialect{
	model: true, instructions: ".gemini/GEMINI.md",
	files: func(at place) map[string]string {
		return map[string]string{".gemini/settings.json": encoded(object{
			"general": object{
				"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "sessionRetention": object{"enabled": false},
				"maxAttempts": 3, // it waits in silence: with its own ten for more than two minutes
			},
			"privacy":   object{"usageStatisticsEnabled": false},
			"telemetry": object{"enabled": false},
			"security":  object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": false}},
			"tools":     object{"sandbox": false, "exclude": at.off("web_fetch", "google_web_search")},
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
	model: true, loads: true, drains: true, instructions: ".qwen/QWEN.md", byHand: true, unnamed: []agent.Wire{agent.Chat},
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
			"tools":     object{"sandbox": false, "approvalMode": "default", "exclude": at.off("web_fetch", "web_search")},
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

// claude asks for edits and commands in its default mode; in the mode "auto" a second model would be asked about each. What a repository's
// settings say of its endpoint is overruled by those of the session.
var claude = dialect{
	model: true, loads: true, inSession: true,
	files: func(place) map[string]string {
		return map[string]string{".claude/settings.json": encoded(object{
			"permissions": object{"defaultMode": "default", "disableBypassPermissionsMode": "disable", "disableAutoMode": "disable"},
			"sandbox":     object{"enabled": false},
		})}
	},
	env: func(at place) []string {
		env := []string{
			"CLAUDE_CONFIG_DIR=" + at.home + "/.claude", "NO_BROWSER=1", "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION=false", "CLAUDE_CODE_MAX_RETRIES=2",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		}
		if at.Login {
			env = append(env, claudeModel(at)...)
		}
		if at.Chat {
			env = append(env, "ENABLE_TOOL_SEARCH=false") // else it does not see the host's tools before it looks for some
		}
		if at.Model != "" {
			env = append(env, "ANTHROPIC_MODEL="+at.Model, "ANTHROPIC_DEFAULT_HAIKU_MODEL="+at.Model, "CLAUDE_CODE_SUBAGENT_MODEL="+at.Model)
		}
		return env
	},
	session: func(at place) object {
		pinned := object{}
		if at.Base != "" {
			for _, v := range claudeModel(at) {
				name, value, _ := strings.Cut(v, "=")
				pinned[name] = value
			}
		}
		options := object{
			"title":    at.title(), // else it asks a model for one
			"settings": object{"env": pinned},
		}
		meta := object{"claudeCode": object{"options": options}}
		if off := at.off("WebFetch", "WebSearch"); len(off) > 0 {
			options["disallowedTools"] = off
		}
		if told := at.Foreword(false); told != "" {
			meta["systemPrompt"] = object{"append": told}
		}
		return meta
	},
}

// off are the tools that an agent does not get: those of its order, and those of the web if it may fetch nothing, for not all of them are
// of that kind, and asked about.
func (at place) off(web ...string) []string {
	all := append([]string{}, at.Off...)
	if slices.Contains(at.Denied, agent.Fetch) {
		all = append(all, web...)
	}
	return all
}

// claudeModel tells claude where its model is. With a login it asks as it does with one, which its endpoint wants.
func claudeModel(at place) []string {
	if at.Login {
		return []string{"ANTHROPIC_BASE_URL=" + at.Base, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=" + agent.DummyKey}
	}
	return usual(at)
}

// codex's modes are those of its own sandbox, which works in none but ours: in all others its edits fail, or are put before a second
// model. In full access it asks nobody.
var codex = dialect{
	model: true, loads: true, titled: true, instructions: ".codex/AGENTS.md", disguise: systemError,
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
	model: true, loads: true, joins: true, late: true, instructions: ".config/opencode/sallyport.md",
	unnamed: []agent.Wire{agent.Chat, agent.Responses, agent.Gemini},
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
		"instructions": []string{at.dir + "/AGENTS.md", at.dir + "/CLAUDE.md", at.home + "/.config/opencode/sallyport.md"},
		"permission":   opencodePermissions(at.Off),
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

// opencodeEdits are the tools of opencode whose permission is that of edit.
var opencodeEdits = []string{"write", "patch", "multiedit", "apply_patch"}

// opencodePermissions has opencode ask before it changes or runs something, and gives it none of the tools that are off: what is denied
// throughout is not shown to its model.
func opencodePermissions(off []string) object {
	all := object{"edit": "ask", "bash": "ask", "webfetch": "ask"}
	for _, name := range off {
		switch {
		case slices.Contains(stuck.ToolsOff, name): // they are claude's
		case slices.Contains(opencodeEdits, name):
			all["edit"] = "deny"
		default:
			all[name] = "deny"
		}
	}
	return all
}

package agent

// Login is the login of an agent's own program, and where its model is with it. It goes to its own vendor and to nobody else, and it
// serves that program and no other.
type Login struct {
	Of       string // the name of a login.Kind
	Endpoint Endpoint
}

// chatGPT is codex's: with it the model is asked elsewhere than with a key.
var chatGPT = Login{Of: "codex", Endpoint: Endpoint{
	Wire: Responses, Base: "https://chatgpt.com/backend-api/codex", Header: "Authorization", Prefix: "Bearer ", Login: true,
	Paths: []string{"/responses", "/models"}, Only: []string{"POST /responses", "POST /responses/compact", "GET /models"},
}}

// claudeAccount is Claude Code's.
var claudeAccount = Login{Of: "claude", Endpoint: func() Endpoint {
	e := endpoints[Messages]
	e.Header, e.Prefix, e.Login = "Authorization", "Bearer ", true
	return e
}()}

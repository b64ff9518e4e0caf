package agent

// Wire is the language of a model's endpoint.
type Wire string

const (
	Responses Wire = "responses" // OpenAI responses
	Chat      Wire = "chat"      // OpenAI chat completions
	Messages  Wire = "messages"  // Anthropic messages
	Gemini    Wire = "gemini"    // Google generateContent
)

// Endpoint is where an agent's model is and how it is asked. The host adds the credential: inside there is none.
type Endpoint struct {
	Wire   Wire
	Base   string   // URL on the host's side, without a slash at its end, such as https://api.openai.com/v1
	Header string   // that carries the credential: Authorization, x-api-key, x-goog-api-key
	Prefix string   // before it, such as "Bearer "
	Paths  []string // below Base, what may be asked for: /responses, /chat/completions, /models
	Only   []string // of that, what a model's work takes, method and whole path: egress.Route.Only
	// Keys are names of environment variables in which people keep the credential, in the order in which they are looked for.
	Keys []string
	// Bases are names of environment variables in which people say that the endpoint is elsewhere.
	Bases []string
	// Login says that what opens it is the login of the agent's own program.
	Login bool
	// Keyless endpoints may be asked without any: a model on this machine.
	Keyless bool
}

// ModelBase is the URL at which a program inside finds its endpoint: the host has added Endpoint.Base and the credential behind it.
const ModelBase = "http://127.0.0.1:3128/model"

// DummyKey is what an agent is given for a key: it opens nothing.
const DummyKey = "sallyport-has-the-key"

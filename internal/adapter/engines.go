package adapter

import (
	"sallyport/internal/agent"
	"sallyport/internal/agent/acp"
	"sallyport/internal/agent/api"
	"sallyport/internal/agent/codex"
	"sallyport/internal/agent/pi"
)

// Engines are those that a product's adapter has, by the name of their driver.
func Engines() map[string]agent.Engine {
	return map[string]agent.Engine{acp.Name: acp.Engine{}, api.Name: api.Engine{}, codex.Name: codex.Engine{}, pi.Name: pi.Engine{}}
}

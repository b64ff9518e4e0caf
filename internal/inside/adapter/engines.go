package adapter

import (
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/acp"
	"sallyport/internal/port/agent/api"
	"sallyport/internal/port/agent/codex"
	"sallyport/internal/port/agent/echo"
	"sallyport/internal/port/agent/pi"
)

// Engines are those that a product's adapter has, by the name of their driver.
func Engines() map[string]agent.Engine {
	return map[string]agent.Engine{acp.Name: acp.Engine{}, api.Name: api.Engine{}, codex.Name: codex.Engine{}, echo.Name: echo.Engine{}, pi.Name: pi.Engine{}}
}

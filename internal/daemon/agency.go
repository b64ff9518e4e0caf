package daemon

import (
	"slices"
	"time"

	"sallyport/internal/drive/live"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
)

// agency is what a home has chosen for its agents, as it counts now.
type agency struct{ settings *config.Settings }

var _ live.Agency = agency{}

// Chosen returns what the home says of an agent.
func (a agency) Chosen(name string) live.Choice {
	return choice(a.settings.Sallyport().Agents[config.AgentName(name)])
}

// Budgets returns what the home lets models use.
func (a agency) Budgets() budget.Limits {
	b := a.settings.Sallyport().Budgets
	return budget.Limits{
		TokensPerChange: int64(b.TokensPerChange), TokensPerHour: int64(b.TokensPerHour), TokensPerDay: int64(b.TokensPerDay),
		CostPerChange: budget.Money(b.CostPerChange), CostPerHour: budget.Money(b.CostPerHour), CostPerDay: budget.Money(b.CostPerDay),
	}
}

// choice turns an entry of agents: into what the path of a change knows.
func choice(a config.Agent) live.Choice {
	s := agent.Settings{Model: string(a.Model), Base: string(a.Base), Wire: agent.Wire(a.Wire), Rounds: a.Rounds}
	if len(a.Args) > 0 {
		s.Args = config.Strings(a.Args)
	}
	for name, value := range a.Env {
		s.Env = append(s.Env, string(name)+"="+string(value))
	}
	slices.Sort(s.Env)
	for kind, p := range a.Permissions {
		if s.Permissions == nil {
			s.Permissions = map[string]bool{}
		}
		s.Permissions[string(kind)] = p == "allow"
	}
	return live.Choice{
		Price:    budget.Price{Input: budget.Money(a.Price.Input), Cached: budget.Money(a.Price.Cached), Output: budget.Money(a.Price.Output)},
		Settings: s, Key: credential.Reference(a.Key),
		Limits: sandbox.Limits{MemoryBytes: int64(a.Memory), Timeout: time.Duration(a.Timeout)},
	}
}

package live

import (
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
)

// Agency says what a home has chosen for its agents; it is read anew each time.
type Agency interface {
	// Chosen returns what the home says of a named agent; the zero Choice if it is silent.
	Chosen(name string) Choice
	// Budgets bound what the models of all agents use (CW-095).
	Budgets() budget.Limits
}

// Choice is what a home says of one agent.
type Choice struct {
	Settings agent.Settings
	Key      credential.Reference // where its model's key is; "" = where people keep it
	Price    budget.Price         // of its model
	Limits   sandbox.Limits       // instead of the home's for every sandbox; zero = as those
}

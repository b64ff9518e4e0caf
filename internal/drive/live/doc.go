// Package live has what every session of an agent needs of the host, whatever it works for: a place to work, what its sandbox shows,
// its program with the key of its model, a way out with an account of what is asked of it, and the budgets of what its model uses.
// It knows a subject, by name, and no row.
package live

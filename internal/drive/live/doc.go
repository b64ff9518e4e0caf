// Package live has what every session of an agent needs, whatever it works for: the way out of its sandbox, with an account of what
// is asked of it, and the budgets of what its model uses. It knows a session and the name of what it works for, and no row.
package live

// Package cli is the command line: it speaks to the home's daemon and shows what comes back.
//
// It decides nothing. What a repository, an agent or a person elsewhere wrote goes
// through package inert before it reaches a terminal.
package cli

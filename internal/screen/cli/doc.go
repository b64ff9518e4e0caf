// Package cli is the command line: it speaks to the home's daemon and shows what comes back.
//
// It decides nothing. What a repository, an agent or a person elsewhere wrote goes
// through package inert before it reaches a terminal.
//
// A command is a function new…Command in the file of its noun or verb (change.go, change_*.go); root.go
// lists them all. What commands share is app: the client, refusing, JSON, the pager and the prompt.
// What people read is written on a sheet. Commands that work on a change end in followThrough.
package cli

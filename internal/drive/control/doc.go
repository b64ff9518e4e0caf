// Package control moves a change along its path: next step, transactions, who is told.
//
// The row is the work. A reconciler claims every change whose next step is due
// and whose lease is free, runs that step, and writes the move and its audit
// entry in one transaction; a crash between any two instructions resumes from the row.
package control

// Package control runs the next step of every change, and has the verbs that the doors ask for.
//
// The row is the work. A reconciler claims every change whose next step is due
// and whose lease is free, and runs that step. The step writes its move and its audit entry
// in one transaction of the ledger; a crash between any two instructions resumes from the row.
package control

// Package budget counts what models use and holds it against what the owner allows (CW-095). It decides by numbers alone: who
// counts, writes them down and refuses is package control.
//
// Money is in millionths of whatever the owner counts in, and whole: what a request costs is rounded up once, so that a
// sum is never less than what was used.
package budget
